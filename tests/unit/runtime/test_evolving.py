"""Rows that arrived before a schema change, in the shape that they have after it."""

from __future__ import annotations

import datetime as dt
import decimal

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER, STRING, decimal_type
from viewkeeper.runtime.evolving import Evolution, as_after, foreseen
from viewkeeper.runtime.view import View
from viewkeeper.sources.interface import (
    RelationChange,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.parsing.parser import parse_view
from viewkeeper.views.upkeep import Upkeep

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BEFORE = Schema.of(id=INTEGER, name=STRING, qty=INTEGER)


def change(after: Schema | None, renamed: dict[str, str] | None = None, renamed_to=None):
    described = None if after is None else RelationSchema("r", after, ("id",), "new")
    before = RelationSchema("r", BEFORE, ("id",), "old")
    return SchemaChange(
        "a", {"at": 9}, "r", before, described, "…", False, renamed or {}, renamed_to
    )


def moved(schema_change: SchemaChange, source: str = "a") -> tuple:
    rows = RelationChange("r", ((1, "x", 5),), ((1, "y", 6),))
    other = RelationChange("other", (), ((1,),))
    origin = SourceTransaction(source, {"at": 1}, 1, NOW, (rows, other))
    return as_after(origin, schema_change).changes


OTHER = RelationChange("other", (), ((1,),))


def test_columns_keep_their_values_under_new_names_in_new_places():
    after = Schema.of(id=INTEGER, amount=INTEGER, name=STRING)
    rows = RelationChange("r", ((1, 5, "x"),), ((1, 6, "y"),))
    assert moved(change(after, {"qty": "amount"})) == (rows, OTHER)


def test_dropped_columns_go_and_new_ones_are_null_even_under_an_old_name():
    after = Schema.of(id=INTEGER, name=STRING, old_name=STRING)
    rows = RelationChange("r", ((1, None, "x"),), ((1, None, "y"),))
    assert moved(change(after, {"name": "old_name"})) == (rows, OTHER)


def test_a_relation_under_a_new_name_is_no_longer_kept_and_the_others_are():
    names = [RelationName("a", "r"), RelationName("a", "s")]
    known = Catalog(tuple(CatalogRelation(name, BEFORE, ("id",)) for name in names))
    text = "-- keep: a.r, a.s\nSELECT r.id, s.name FROM a.r r JOIN a.s s ON r.id = s.id"
    views = {"v": View(parse_view("v", text, known), text)}
    plan = foreseen(change(None, renamed_to="q"), views, Evolution(known))
    after = plan.views(views)["v"]
    assert dict(after.definition.settings)["keep"] == "a.s"
    assert [store.name for store in Upkeep(after.definition).stores] == ["keep.a.s"]
    again = Catalog(tuple(CatalogRelation(RelationName("a", n), BEFORE) for n in "qs"))
    assert parse_view("v", after.text, again).relations == after.definition.relations


def test_a_wider_type_holds_the_same_values():
    after = Schema.of(id=INTEGER, name=STRING, qty=decimal_type(20, 0))
    (rows, _) = moved(change(after))
    assert rows.inserted == ((1, "y", decimal.Decimal(6)),)


def test_renamed_and_dropped_relations_and_those_of_other_sources():
    renamed = RelationChange("s", ((1, "x", 5),), ((1, "y", 6),))
    assert moved(change(None, renamed_to="s")) == (renamed, OTHER)
    assert moved(change(None)) == (OTHER,)
    assert moved(change(None), source="b")[0].relation == "r"
