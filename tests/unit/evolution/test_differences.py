"""One statement, taken apart into schema changes."""

from __future__ import annotations

import itertools

import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.evolution.changes import AddRelation, DropRelation, Rewrite, catalog_after
from viewkeeper.evolution.differences import differences
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

R = RelationName("s", "r")
COLUMNS = ("a", "b", "c")


def relation(columns: str, name: RelationName = R, key: str = "", **types) -> CatalogRelation:
    schema = Schema.of(**{c: types.get(c, INTEGER) for c in columns.split()})
    return CatalogRelation(name, schema, tuple(key.split()))


def texts(*arguments, **more) -> list[str]:
    return [str(change) for change in differences(*arguments, **more)]


@pytest.mark.parametrize(
    ("before", "after", "renamed", "expected"),
    [
        ("a b", "a b c", {}, ["add s.r.c bigint"]),
        ("a b", "a", {}, ["drop s.r.b"]),
        ("a b", "a c", {"b": "c"}, ["rename s.r.b to c"]),
        ("a b", "b", {"a": "b"}, ["drop s.r.b", "rename s.r.a to b"]),
        ("a b", "c a", {"a": "c", "b": "a"}, ["rename s.r.a to c", "rename s.r.b to a"]),
        ("a b", "a c", {}, ["drop s.r.b", "add s.r.c bigint"]),
        ("a b", "a c b", {}, ["add s.r.c bigint", "order s.r as a, c, b"]),
        ("a b c", "c a b", {}, ["order s.r as c, a, b"]),
    ],
)
def test_a_statement_comes_apart_in_a_possible_order(before, after, renamed, expected):
    assert texts(relation(before), relation(after), renamed) == expected


def test_two_columns_that_exchange_their_names_go_through_a_third():
    found = texts(relation("a b"), relation("b a"), {"a": "b", "b": "a"})
    assert found == ["rename s.r.a to a~", "rename s.r.b to a", "rename s.r.a~ to b"]


def test_relations_come_go_and_are_renamed():
    assert differences(None, relation("a")) == (AddRelation(R, relation("a").schema),)
    assert differences(relation("a"), None) == (DropRelation(R),)
    assert differences(None, None) == ()
    other = RelationName("s", "q")
    assert texts(relation("a"), relation("a", other)) == ["rename s.r to s.q"]
    assert differences(relation("a"), relation("a"), rewrites=True) == (Rewrite(R),)
    assert texts(relation("a"), relation("a", a=STRING)) == ["change s.r.a from bigint to string"]


def test_the_changes_lead_where_the_statement_led():
    """For every way to rename some of three columns, keep some and drop some."""
    tried = 0
    for kept in itertools.product(("a", "b", "c", "d", None), repeat=3):
        present = [name for name in kept if name is not None]
        if len(set(present)) != len(present) or not present:
            continue
        renamed = {
            old: new for old, new in zip(COLUMNS, kept, strict=True) if new not in (old, None)
        }
        before, after = relation("a b c"), relation(" ".join(present))
        catalog = Catalog((before,))
        for change in differences(before, after, renamed):
            catalog = catalog_after(catalog, change)
        assert set(catalog.relations[0].schema.names) == set(present), (kept, renamed)
        tried += 1
    assert tried > 50


@pytest.mark.parametrize(
    ("before", "after", "renamed", "expected"),
    [
        (("a b", "a"), ("a b", "a b"), {}, ["key s.r by a, b"]),
        (("a b", "a"), ("a b", ""), {}, ["key s.r by nothing"]),
        (("a b", ""), ("a b", "b"), {}, ["key s.r by b"]),
        (("a b", "a b"), ("a b", "b a"), {}, []),  # the same rows are told apart
        (("a b", "a"), ("c b", "c"), {"a": "c"}, ["rename s.r.a to c"]),
        (("a b", "a"), ("b", ""), {}, ["drop s.r.a"]),
        (("a b", "a"), ("b", "b"), {}, ["drop s.r.a", "key s.r by b"]),
        (("a b", "a b"), ("b", "b"), {}, ["drop s.r.a", "key s.r by b"]),
    ],
)
def test_another_primary_key_is_a_schema_change(before, after, renamed, expected):
    one, other = relation(before[0], key=before[1]), relation(after[0], key=after[1])
    assert texts(one, other, renamed) == expected
    catalog = Catalog((one,))
    for change in differences(one, other, renamed):
        catalog = catalog_after(catalog, change)
    assert set(catalog.relations[0].key) == set(after[1].split())


def test_the_key_is_known_before_rows_are_read_anew():
    found = texts(relation("a b", key="a"), relation("a b"), rewrites=True)
    assert found == ["key s.r by nothing", "rewrite s.r"]
