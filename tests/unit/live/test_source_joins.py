"""The SQL in which a source is asked to join its own relations."""

from __future__ import annotations

from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.live.questions import source_joins
from viewkeeper.live.questions.source_joins import source_join
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import Occurrence, RelationName, Term

SCHEMA = Schema.of(k=INTEGER, a=INTEGER, n=STRING)


def assembly(*pairs: tuple[str, str]) -> Assembly:
    """o and p at one source (p in a schema of its own), c at another."""
    occurrences = (
        Occurrence("o", RelationName("s", "orders"), SCHEMA),
        Occurrence("p", RelationName("s", "lager.p`art"), SCHEMA),
        Occurrence("c", RelationName("t", "customers"), SCHEMA),
    )
    predicates = tuple(Comparison("=", Column(left), Column(right)) for left, right in pairs)
    return Assembly(Term(occurrences, predicates, (Output("n", Column("o.n")),)))


def test_the_engine_joins_by_integers_and_looks_up_the_keys_of_what_is_given():
    joined = assembly(("o.k", "p.a"), ("o.n", "p.n"), ("c.k", "o.a"))
    together = source_join(joined, frozenset("c"), ("o", "p"))
    assert together is not None
    assert together.lookup == ("c.k", "o.a")
    # Text is compared here: databases do not agree what is equal.
    assert together.equalities == (("o.k", "p.a"),)
    assert len(together.predicates) == 2
    [(sql, keys)] = together.queries("postgres", [1, 2])
    assert keys == 2
    assert sql == (
        'SELECT "o"."k", "o"."a", "o"."n", "p"."k", "p"."a", "p"."n" '
        'FROM "public"."orders" AS "o", "lager"."p`art" AS "p" '
        'WHERE "o"."k" = "p"."a" AND "o"."a" IN (1, 2)'
    )
    [(sql, _)] = together.queries("mariadb", None)
    assert "FROM `orders` AS `o`, `lager`.`p``art` AS `p` WHERE `o`.`k` = `p`.`a`" in sql


def test_many_keys_are_asked_for_in_several_texts(monkeypatch):
    monkeypatch.setattr(source_joins, "KEYS_PER_QUERY_MAX", 2)
    together = source_join(assembly(("o.k", "p.a"), ("c.k", "o.a")), frozenset("c"), ("o", "p"))
    assert together is not None
    assert [keys for _, keys in together.queries("sqlite", [1, 2, 3, 4, 5])] == [2, 2, 1]
    assert list(together.queries("sqlite", [])) == []


def test_what_would_be_a_product_or_could_not_be_looked_up_is_asked_one_by_one():
    assert source_join(assembly(("o.n", "p.n")), frozenset(), ("o", "p")) is None
    assert source_join(assembly(("o.k", "p.a")), frozenset("c"), ("o", "p")) is None
    assert source_join(assembly(("o.k", "p.a")), frozenset(), ("o",)) is None
    assert source_join(assembly(("o.k", "p.a")), frozenset(), ("o", "p")) is not None
