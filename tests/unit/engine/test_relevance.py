"""Which views some transactions concern."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from unit.engine.small_group import CATALOG, SCHEMA
from viewkeeper.arrow import arrow_schema
from viewkeeper.engine.integrator import Integrator
from viewkeeper.engine.relevance import ROWS_LOOKED_AT_MAX, Relevance
from viewkeeper.project.views_folder import parsed_views
from viewkeeper.simulator.engine.sources import START, position
from viewkeeper.sources.interface import RelationChange, SourceTransaction
from viewkeeper.sources.transaction_block import ChangedRows, TransactionBlock
from viewkeeper.views.definition import RelationName

TEXTS = {
    "all": "SELECT k FROM s.r",
    "low": "SELECT k FROM s.r WHERE k < 10",
    "named": "SELECT k FROM s.r WHERE name = 'x'",
    "other": "SELECT k FROM t.r",
}


@pytest.fixture
def relevance():
    return Relevance(parsed_views(TEXTS, CATALOG))


def arrival(deleted=(), inserted=()):
    change = RelationChange("r", deleted, inserted)
    integrator = Integrator([RelationName("s", "r")])
    return integrator.arrived(SourceTransaction("s", position(1), 1, START, (change,)))


def block(*rows):
    places, counts = np.arange(len(rows)), np.ones(len(rows), np.int64)
    table = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], arrow_schema(SCHEMA)
    )
    changes = {"r": ChangedRows(SCHEMA, table, places, counts)}
    it = TransactionBlock("s", places, places, places + 1, lambda mark: {"n": mark}, changes)
    return Integrator([RelationName("s", "r")]).stretch_arrived(it)


def test_views_are_concerned_that_select_a_row(relevance):
    assert relevance.concerned([arrival(inserted=[(20, "y")])]) == ("all",)
    assert relevance.concerned([arrival(inserted=[(5, "y")])]) == ("all", "low")


def test_a_row_that_leaves_a_view_concerns_it(relevance):
    assert relevance.concerned([arrival([(5, "x")], [(20, "y")])]) == ("all", "low", "named")


def test_of_several_transactions_one_is_enough(relevance):
    some = [arrival(inserted=[(20, "y")]), arrival(inserted=[(21, "x")])]
    assert relevance.concerned(some) == ("all", "named")


def test_of_a_block_the_rows_are_looked_at(relevance):
    assert relevance.concerned([block((20, "y"), (21, "y"))]) == ("all",)
    assert relevance.concerned([block((20, "y"), (5, "y"))]) == ("all", "low")


@pytest.mark.parametrize("more", [0, 1])
def test_many_rows_are_taken_for_relevant(relevance, more):
    rows = [(20, "y")] * (ROWS_LOOKED_AT_MAX + more)
    concerned = ("all", "low", "named") if more else ("all",)
    assert relevance.concerned([arrival(inserted=rows)]) == concerned
    assert relevance.concerned([block(*rows)]) == concerned
