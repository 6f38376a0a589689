"""Changes as tables: which rows for which numbers, and nothing kept that nobody will ask for."""

from __future__ import annotations

import datetime as dt

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.engine.integrator import Integrator
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.sources.interface import RelationChange, SourceTransaction
from viewkeeper.views.definition import RelationName

NAME = RelationName("a", "r")
SCHEMA = Schema.of(id=INTEGER, text=STRING)
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def arrivals(*changes: tuple[list, list]):
    integrator = Integrator([NAME])
    return [
        integrator.arrived(
            SourceTransaction("a", {"at": n}, n, NOW, (RelationChange("r", *change),))
        )
        for n, change in enumerate(changes, 1)
    ]


def rows(table) -> list[tuple]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_numbers_select_rows_in_order_and_columns_are_chosen():
    tables = ChangeTables({NAME: SCHEMA})
    first, second, third = arrivals(([], [(1, "x")]), ([(1, "x")], [(1, "y")]), ([], [(2, None)]))
    tables.add([first])
    assert rows(tables.changes(NAME, [1], ["id"])) == [(1, 1, 1)]
    tables.add([second, third])
    everything = [(1, "x", 1, 1), (1, "x", 2, -1), (1, "y", 2, 1), (2, None, 3, 1)]
    assert rows(tables.changes(NAME, [1, 2, 3], ["id", "text"])) == everything
    assert rows(tables.changes(NAME, [1, 3], ["text"])) == [("x", 1, 1), (None, 3, 1)]


def test_what_is_forgotten_is_gone_and_the_rest_stays():
    tables = ChangeTables({NAME: SCHEMA})
    tables.add(arrivals(*[([], [(n, str(n))]) for n in range(10)]))
    tables.forget(7)
    assert rows(tables.changes(NAME, list(range(1, 11)), ["id"])) == [
        (7, 8, 1), (8, 9, 1), (9, 10, 1),
    ]  # fmt: skip
