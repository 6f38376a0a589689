"""Random views, classes inside classes, mean what DuckDB means by them; wrong variants do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import duckdb
import pytest

from unit.sql import rich
from unit.sql.oracle import answer, database
from unit.sql.random_texts import Texts
from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.expressions import TRUE
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import Grouping, RelationName, Step, ViewDefinition

Databases = list[tuple[dict[RelationName, Bag], duckdb.DuckDBPyConnection]]


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with ExitStack() as stack:
        each = [rich.random_contents(seed) for seed in (101, 102, 103)]
        yield [(contents, stack.enter_context(database(contents))) for contents in each]


def differs(definition: ViewDefinition, text: str, databases: Databases) -> bool:
    return any(
        evaluated(definition, contents.__getitem__) != answer(connection, text, definition.schema)
        for contents, connection in databases
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_random_view_means_what_duckdb_means_by_its_text(seed: int, databases: Databases) -> None:
    text = Texts(seed).view()
    assert not differs(parse_view("v", text, rich.CATALOG), text, databases), text


LEFT = "SELECT r.x, t.k FROM a.r r LEFT JOIN b.t t ON r.x = t.x"
NOT_IN = "SELECT r.x FROM a.r r WHERE r.x NOT IN (SELECT x FROM b.t WHERE x > 3)"


def with_groupings(definition: ViewDefinition, **changes: object) -> ViewDefinition:
    """A wrong variant: something about its groupings forgotten."""

    def changed(grouping: Grouping | None) -> Grouping | None:
        return None if grouping is None else replace(grouping, **changes)  # type: ignore[arg-type]

    def step(each: Step) -> Step:
        terms = tuple(replace(term, grouping=changed(term.grouping)) for term in each.terms)
        return replace(each, terms=terms)

    return replace(definition, steps=tuple(map(step, definition.steps)))


@pytest.mark.parametrize("text", [LEFT, NOT_IN])
@pytest.mark.parametrize("forgotten", [{"copies": None}, {"having": TRUE}], ids=str)
def test_a_wrong_variant_is_caught(
    text: str, forgotten: dict[str, object], databases: Databases
) -> None:
    definition = parse_view("v", text, rich.CATALOG)
    assert not differs(definition, text, databases)
    assert differs(with_groupings(definition, **forgotten), text, databases)


def test_the_random_views_are_of_many_classes() -> None:
    texts = [Texts(seed).view() for seed in range(60)]
    for word in ("LEFT JOIN", "FULL JOIN", "NOT EXISTS", "NOT IN", "GROUP BY", "EXCEPT", " OR "):
        assert any(word in text for text in texts), word
