"""Rich views mean what DuckDB means by their texts, on random rows with NULLs and duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import duckdb
import pytest

from unit.sql import rich
from unit.sql.oracle import answer, database
from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned

Contents = dict[RelationName, Bag]
Databases = list[tuple[Contents, duckdb.DuckDBPyConnection]]


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with ExitStack() as stack:
        each = [rich.random_contents(seed) for seed in range(12)]
        yield [(contents, stack.enter_context(database(contents))) for contents in each]


def narrowed(definition: ViewDefinition, contents: Contents) -> Contents:
    """What is left of the contents for a pruned definition."""
    columns = {o.name: o.schema.names for term in definition.all_terms for o in term.occurrences}
    return {
        name: bag.select(tuple(Output(c, Column(c)) for c in columns[name]))
        for name, bag in contents.items()
        if name in columns
    }


@pytest.mark.parametrize("text", rich.TEXTS)
def test_a_rich_view_means_what_duckdb_means_by_its_text(text: str, databases: Databases) -> None:
    definition = parse_view("v", text, rich.CATALOG)
    whole, narrow = WholeView(definition), WholeView(pruned(definition))
    rows = 0
    for seed, (contents, connection) in enumerate(databases):
        theirs = answer(connection, text, definition.schema)
        assert whole.evaluated(contents.__getitem__) == theirs, f"seed {seed}"
        fewer = narrowed(narrow.definition, contents)
        assert narrow.evaluated(fewer.__getitem__) == theirs, f"seed {seed}, pruned"
        rows += len(theirs)
    assert rows, "no seed gives a row, so nothing was compared"
