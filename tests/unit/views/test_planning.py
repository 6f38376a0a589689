"""What `explain` says is asked is what the protocol asks."""

from __future__ import annotations

import pytest

from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.types import INTEGER
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.messages import AnswerArrived, AskSource, Reflected, TransactionArrived
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import Transaction
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.planning import obstacles, reads, routes

SCHEMA = Schema(tuple(Field(name, INTEGER) for name in ("k", "a", "b", "c")))
CATALOG = Catalog(
    tuple(CatalogRelation(RelationName(f"s{n}", f"r{n}"), SCHEMA, ("k",)) for n in range(1, 5))
)

VIEWS = {
    "chain": "SELECT x.k FROM s1.r1 x JOIN s2.r2 y ON x.a = y.b JOIN s3.r3 z ON y.c = z.k",
    "star": "SELECT x.k FROM s1.r1 x JOIN s2.r2 y ON x.a = y.k JOIN s3.r3 z ON x.b = z.k",
    "several keys from two sides": (
        "SELECT x.k FROM s1.r1 x JOIN s2.r2 y ON x.a = y.a AND x.b = y.b "
        "JOIN s3.r3 z ON x.c = z.c AND y.k = z.k AND y.c = z.a"
    ),
    "self-join": "SELECT x.k FROM s1.r1 x JOIN s1.r1 y ON x.a = y.k JOIN s2.r2 z ON y.b = z.k",
    "product": "SELECT x.k FROM s1.r1 x CROSS JOIN s2.r2 y",
    "inequality": "SELECT x.k FROM s1.r1 x JOIN s2.r2 y ON x.a < y.b",
    "union": "SELECT x.k FROM s1.r1 x JOIN s2.r2 y ON x.a = y.k UNION ALL SELECT z.k FROM s3.r3 z",
}


def questions_of(definition, changed):
    """(term, alias, key columns) of every question that a change of one relation leads to."""
    manager = BatchedSweep(definition, Bag.of(definition.schema, ()))
    row = Bag.of(SCHEMA, [(1, 2, 3, 4)])
    transaction = Transaction(changed.source, 1, ((changed, row),))
    todo = list(manager.step(TransactionArrived(transaction)))
    asked = []
    while todo:
        action = todo.pop(0)
        if isinstance(action, AskSource):
            asked += [(part.term, part.alias, part.key_columns) for part in action.parts]
            empty = tuple(
                Bag.of(definition.terms[p.term].occurrence(p.alias).qualified_schema, ())
                for p in action.parts
            )
            known = 1 if action.source == changed.source else 0
            todo += manager.step(AnswerArrived(action.question, empty, Reflected(known)))
    return asked


@pytest.mark.parametrize("text", VIEWS.values(), ids=VIEWS)
def test_the_routes_are_the_questions_that_batched_sweep_asks(text):
    definition = parse_view("v", text, CATALOG)
    planned = routes(definition)
    for name in definition.relations:
        hops = [
            [(route.term, hop.alias, hop.key_columns) for hop in route.hops]
            for route in planned
            if route.name == name
        ]
        asked = questions_of(definition, name)
        assert sorted(asked) == sorted(hop for route in hops for hop in route)
        if len(hops) == 1:
            assert asked == hops[0]


def test_a_change_of_n_occurrences_asks_n_minus_1_questions():
    for route in routes(parse_view("v", VIEWS["chain"], CATALOG)):
        assert len(route.hops) == 2
        assert route.alias not in [hop.alias for hop in route.hops]


def test_only_columns_that_are_used_are_read():
    found = {str(r.name): r for r in reads(parse_view("v", VIEWS["chain"], CATALOG))}
    assert found["s1.r1"].columns == ("k", "a")
    assert found["s1.r1"].left_out == ("b", "c")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT x.a, count(*) AS n FROM s1.r1 x GROUP BY x.a", "GROUP BY"),
        ("SELECT count(*) AS n FROM s1.r1 x", "aggregate"),
        ("SELECT DISTINCT x.a FROM s1.r1 x", "DISTINCT"),
    ],
)
def test_what_is_not_linear_is_named(text, word):
    (reason,) = obstacles(parse_view("v", text, CATALOG))
    assert word in reason
    assert not obstacles(parse_view("v", VIEWS["union"], CATALOG))
