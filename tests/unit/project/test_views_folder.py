"""The views of a project may read each other; a change of one is a change of all that read it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.engine.schema_changes import Evolution, foreseen
from viewkeeper.errors import UsageError
from viewkeeper.project.view_files import WrittenViews
from viewkeeper.project.views_folder import parsed_views, read_views
from viewkeeper.sources.interface import RelationSchema, SchemaChange, ToldColumns
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.entries import Definition, ViewState


def stored_views(texts, catalog, stored, anew=()):
    """The views that a project keeps; raises what is wrong with one."""
    read = read_views(WrittenViews(texts), catalog, stored, anew)
    for error in read.bad.values():
        raise error
    return read.views


CATALOG = Catalog((CatalogRelation(RelationName("shop", "orders"), Schema.of(k=INTEGER)),))
TEXTS = {
    "big": "SELECT k FROM shop.orders WHERE k > 5;\n",
    "number": "SELECT count(*) AS n FROM big",
    "other": "SELECT k FROM shop.orders",
}


def test_the_text_of_a_view_tells_of_those_that_it_reads() -> None:
    before = parsed_views(TEXTS, CATALOG)
    after = parsed_views(TEXTS | {"big": "SELECT k FROM shop.orders WHERE k > 6"}, CATALOG)
    changed = {name for name in TEXTS if before[name].text != after[name].text}
    assert changed == {"big", "number"}


def test_what_is_remembered_of_others_is_a_comment() -> None:
    number = parsed_views(TEXTS, CATALOG)["number"]
    assert parse_view("number", number.text, CATALOG, TEXTS) == number.definition


RICH = {
    "outer": "SELECT o.k, c.name FROM shop.orders o LEFT JOIN crm.customers c ON o.k = c.k",
    "exists": "SELECT o.k FROM shop.orders o WHERE EXISTS "
    "(SELECT 1 FROM crm.customers c WHERE c.k = o.k AND c.name <> 'x')",
    "with": "WITH big AS (SELECT k, name FROM crm.customers WHERE k > 5) "
    "SELECT b.name, COUNT(*) AS n FROM shop.orders o JOIN big b ON o.k = b.k GROUP BY b.name",
}
CUSTOMERS = RelationName("crm", "customers")
WIDER = Schema.of(k=INTEGER, title=STRING, since=INTEGER)


@pytest.mark.parametrize("name", RICH)
def test_a_rich_view_that_evolved_is_read_back_as_it_became(name: str) -> None:
    """Its new text can't be parsed again; what the ledger keeps of it is the definition itself."""
    schema = Schema.of(k=INTEGER, name=STRING)
    before = Catalog((*CATALOG.relations, CatalogRelation(CUSTOMERS, schema, ("k",))))
    view = parsed_views({name: RICH[name]}, before)[name]
    evolution, views = Evolution(before), {name: view}
    described = RelationSchema("customers", schema, ("k",), "1")
    titled = replace(described, schema=Schema.of(k=INTEGER, title=STRING), fingerprint="2")
    for change in (
        SchemaChange("crm", {}, "customers", described, titled, "", False, {"name": "title"}),
        SchemaChange("crm", {}, "customers", titled, None, "", False, {}, "clients"),
    ):
        plan = foreseen(change, views, evolution)
        views, evolution = plan.views(views), plan.evolution
    evolved = views[name]
    assert evolved.definition != view.definition
    stored = Definition.from_json(json.loads(json.dumps(evolved.stored().as_json())))
    state = ViewState(1, 1, 0, 0, 0, True, 0, 0, 1, stored)
    (again,) = stored_views({name: RICH[name]}, Catalog(()), {name: state}).values()
    assert (again.definition, again.text, again.origin) == (
        evolved.definition,
        evolved.text,
        RICH[name],
    )
    # Filled anew, it is over its relations as they are now.
    clients = CatalogRelation(RelationName("crm", "clients"), WIDER, ("k",))
    now = Catalog((*CATALOG.relations, clients))
    (anew,) = stored_views({name: RICH[name]}, now, {name: state}, [name]).values()
    assert {o.schema for t in anew.definition.all_terms for o in t.occurrences} >= {WIDER}
    with pytest.raises(UsageError) as caught:
        stored_views({name: RICH[name]}, CATALOG, {name: state}, [name])
    assert caught.value.code == "evolved-view-unreadable"
    assert "crm.clients" in caught.value.detail
    # The old file's meaning ends when its user writes another one, unless that says what the view is.
    other = {name: RICH[name].replace("name", "title").replace("customers", "clients")}
    (anew,) = stored_views(other, evolution.catalog, {name: state}).values()
    assert anew.origin == (RICH[name] if name == "exists" else "")


def test_a_view_over_one_that_evolved_is_read_back_though_its_own_text_stayed() -> None:
    """The file of the view that it reads still names the column as it was."""
    schema = Schema.of(k=INTEGER, name=STRING)
    before = Catalog((CatalogRelation(CUSTOMERS, schema, ("k",)),))
    texts = {"all": "SELECT k, name FROM crm.customers", "few": "SELECT k FROM all WHERE k < 3"}
    views, evolution = parsed_views(texts, before), Evolution(before)
    described = RelationSchema("customers", schema, ("k",), "1")
    titled = replace(described, schema=Schema.of(k=INTEGER, title=STRING), fingerprint="2")
    change = SchemaChange("crm", {}, "customers", described, titled, "", False, {"name": "title"})
    plan = foreseen(change, views, evolution)
    evolved = plan.views(views)
    stored = {
        name: ViewState(1, 1, 0, 0, 0, True, 0, 0, 1, view.stored())
        for name, view in evolved.items()
    }
    again = stored_views(texts, plan.evolution.catalog, stored)
    assert {n: v.definition for n, v in again.items()} == {
        n: v.definition for n, v in evolved.items()
    }


def test_a_table_that_was_gone_when_its_feed_was_opened_is_followed_by_what_we_know() -> None:
    """MariaDB renamed it on while the feed was opened anew: nobody there knows what it was."""
    before = Catalog((CatalogRelation(CUSTOMERS, Schema.of(k=INTEGER, name=STRING), ("k",)),))
    views = parsed_views({"all": "SELECT k, name FROM crm.customers"}, before)
    change = SchemaChange("crm", {}, "customers", None, None, "", False, {}, "clients")
    plan = foreseen(change, views, Evolution(before))
    (clients,) = plan.views(views)["all"].definition.relations
    assert clients == RelationName("crm", "clients")


def test_a_statement_is_believed_where_the_source_has_gone_on_since() -> None:
    """MariaDB says what its tables are now; by then, `name` was renamed twice and the table too."""
    before = Catalog((CatalogRelation(CUSTOMERS, Schema.of(k=INTEGER, name=STRING), ("k",)),))
    views = parsed_views({"all": "SELECT k, name FROM crm.customers"}, before)
    now = RelationSchema("customers", Schema.of(k=INTEGER, label=STRING, more=INTEGER), ("k",), "")
    evolution = Evolution(before)
    for old, new in (("NAME", "title"), ("title", "label")):
        for seen in (now, None):
            told = ToldColumns({old: new})
            change = SchemaChange("crm", {}, "customers", seen, seen, "", False, told=told)
            plan = foreseen(change, views, evolution)
            assert not plan.ended
            (all_,) = plan.views(views).values()
            assert f"customers.{new} AS name" in all_.text
        views, evolution = plan.views(views), plan.evolution
    told = ToldColumns({}, added=("more",))
    change = SchemaChange("crm", {}, "customers", now, now, "", False, told=told)
    assert foreseen(change, views, evolution).evolution.catalog.relations[0].schema == now.schema


def test_a_change_that_was_taken_before_a_kill_changes_nothing_when_it_comes_again() -> None:
    after = Schema.of(k=INTEGER, name=STRING, more=INTEGER)
    known = Catalog((CatalogRelation(CUSTOMERS, after, ("k",)),))
    views = parsed_views({"all": "SELECT k, name FROM crm.customers"}, known)
    old = RelationSchema("customers", Schema.of(k=INTEGER, name=STRING), ("k",), "")
    new = RelationSchema("customers", after, ("k",), "")
    plan = foreseen(
        SchemaChange("crm", {}, "customers", old, new, "", False), views, Evolution(known)
    )
    assert (plan.steps, plan.evolution.catalog) == ((), known)
