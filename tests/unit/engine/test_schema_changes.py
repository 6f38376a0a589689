"""Rows that arrived before a schema change, in the shape that they have after it."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.engine.schema_changes import Evolution, as_after, foreseen
from viewkeeper.engine.view import View
from viewkeeper.evolution.adaptation import Method
from viewkeeper.evolution.changes import relation_in
from viewkeeper.evolution.effects import Kind
from viewkeeper.sources.interface import (
    RelationChange,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
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


def test_a_view_that_nobody_could_keep_over_a_type_stops_with_the_reason():
    known = Catalog((CatalogRelation(RelationName("a", "r"), BEFORE, ("id",)),))
    texts = {
        "strict": "-- refresh: incremental-strict\nSELECT name, sum(qty) AS q FROM a.r GROUP BY name",
        "free": "SELECT name, sum(qty) AS q FROM a.r GROUP BY name",
    }
    views = {name: View(parse_view(name, text, known), text) for name, text in texts.items()}
    after = Schema.of(id=INTEGER, name=STRING, qty=DOUBLE)
    plan = foreseen(change(after), views, Evolution(known))
    assert list(plan.views(views)) == ["free"]
    assert plan.ended["strict"].kind is Kind.STOPPED
    assert "over doubles" in plan.ended["strict"].reason
    assert plan.views(views)["free"].choice.is_recomputed


def test_a_wider_type_holds_the_same_values():
    after = Schema.of(id=INTEGER, name=STRING, qty=decimal_type(20, 0))
    (rows, _) = moved(change(after))
    assert rows.inserted == ((1, "y", decimal.Decimal(6)),)


def test_renamed_and_dropped_relations_and_those_of_other_sources():
    renamed = RelationChange("s", ((1, "x", 5),), ((1, "y", 6),))
    assert moved(change(None, renamed_to="s")) == (renamed, OTHER)
    assert moved(change(None)) == (OTHER,)
    assert moved(change(None), source="b")[0].relation == "r"


def keyed_change(key: tuple[str, ...], *, rewrites: bool) -> SchemaChange:
    before = RelationSchema("r", BEFORE, ("id",), "old")
    after = RelationSchema("r", BEFORE, key, "new")
    return SchemaChange("a", {"at": 9}, "r", before, after, "…", rewrites)


def test_a_view_no_longer_rests_on_a_key_that_is_gone():
    known = Catalog(tuple(CatalogRelation(RelationName("a", n), BEFORE, ("id",)) for n in "rs"))
    text = "SELECT r.id, s.id AS other, s.name FROM a.r r JOIN a.s s ON r.qty = s.qty"
    text = f"-- protocol: strobe\n-- consistency: strong\n{text}"
    views = {"v": View(parse_view("v", text, known), text)}
    assert views["v"].choice.protocol == "strobe"
    plan = foreseen(keyed_change((), rewrites=False), views, Evolution(known))
    assert [effect.kind for effect in plan.effects] == [Kind.UNTOUCHED]
    after = plan.views(views)
    assert after["v"].definition.terms[0].occurrence("r").key == ()
    assert after["v"].text == text
    assert after["v"].choice.protocol == "batched-sweep"
    assert relation_in(plan.evolution.catalog, RelationName("a", "r")).key == ()

    # TRUNCATE: what the extent holds of the relation can't be told by the old key.
    truncated = replace(
        keyed_change((), rewrites=True), before=keyed_change((), rewrites=True).after
    )
    (effect,) = foreseen(truncated, after, plan.evolution).effects
    assert (effect.method, effect.method_reason) == (
        Method.RECOMPUTE,
        "the view does not show the key of a.r",
    )


def test_a_key_and_rows_that_change_at_once_are_taken_in_that_order():
    known = Catalog((CatalogRelation(RelationName("a", "r"), BEFORE, ("id",)),))
    text = "SELECT id, qty FROM a.r"
    views = {"v": View(parse_view("v", text, known), text)}
    plan = foreseen(keyed_change((), rewrites=True), views, Evolution(known))
    assert [str(step) for step in plan.steps] == ["key a.r by nothing", "rewrite a.r"]
    assert plan.effects[-1].method is Method.RECOMPUTE
