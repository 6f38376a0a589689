"""TPC-H's 22 queries: read or refused with the reason, and worth what DuckDB says they are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from unit.sql import tpch
from unit.sql.oracle import database
from viewkeeper.algebra.bag import Bag
from viewkeeper.errors import UsageError
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import RelationName, ViewDefinition

SEEDS = (1, 7, 17)
Databases = list[tuple[dict[RelationName, Bag], duckdb.DuckDBPyConnection]]
OUTCOMES = tpch.FOLDER / "outcomes.txt"


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with ExitStack() as stack:
        each = [tpch.contents(seed) for seed in SEEDS]
        yield [(contents, stack.enter_context(database(contents))) for contents in each]


def parsed(path: Path) -> ViewDefinition:
    return parse_view(path.stem, path.read_text(), tpch.CATALOG)


def outcome(path: Path) -> str:
    """One line of the table: the query, its steps, and whether it was accepted."""
    try:
        definition = parsed(path)
    except UsageError as error:
        return f"{path.stem}  refused: {error.message}"
    steps = ", ".join(step.name.relation for step in definition.steps) or "none"
    return f"{path.stem}  accepted, steps: {steps}"


def test_every_query_is_read_or_refused_with_the_reason(rewrite_corpus: bool) -> None:
    lines = [outcome(path) for path in tpch.QUERIES]
    table = "".join(f"{line}\n" for line in lines)
    if rewrite_corpus:
        OUTCOMES.write_text(table)
    assert table == OUTCOMES.read_text()
    assert len(lines) == 22
    assert sum("accepted" in line for line in lines) == 22


@pytest.mark.parametrize("path", tpch.QUERIES, ids=lambda path: path.stem)
def test_a_query_is_worth_what_duckdb_says(path: Path, databases: Databases) -> None:
    view = WholeView(parsed(path))
    found = 0
    for contents, connection in databases:
        ours = view.evaluated(contents.__getitem__)
        theirs = connection.execute(path.read_text()).fetchall()
        require_close(ours, theirs)
        found += sum(any(value is not None for value in row) for row in theirs)
    assert found, "no seed gives a row, so nothing was compared"


def require_close(ours: Bag, theirs: list[Any]) -> None:
    """Equal but for the last digits: DuckDB computes quotients and averages as doubles."""
    mine = sorted((row for row, count in ours for _ in range(count)), key=_order)
    assert len(mine) == len(theirs)
    for row, other in zip(mine, sorted(theirs, key=_order), strict=True):
        for value, expected in zip(row, other, strict=True):
            if isinstance(value, float | Decimal):
                assert float(value) == pytest.approx(float(expected), rel=1e-5, abs=1e-6)
            else:
                assert value == expected


def _order(row: Any) -> list[tuple[bool, str]]:
    """By what is no fraction first, so that fractions that differ a little do not disturb it."""
    exact = [v for v in row if isinstance(v, int | str | dt.date)]
    fractions = [f"{float(v):020.3f}" for v in row if isinstance(v, float | Decimal)]
    return [(value is None, str(value)) for value in (*exact, *fractions)]
