"""Files that lag behind their evolved views are understood; a bad one is wrong for itself alone."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.engine.schema_changes import Evolution, foreseen
from viewkeeper.engine.view import View
from viewkeeper.errors import UsageError
from viewkeeper.evolution.knowledge_file import read_knowledge
from viewkeeper.project.file_updates import updated_texts
from viewkeeper.project.view_files import WrittenViews
from viewkeeper.project.views_folder import ReadViews, read_views
from viewkeeper.sources.interface import RelationSchema, SchemaChange
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.entries import Definition, ViewState

ORDERS = CatalogRelation(
    RelationName("shop", "orders"), Schema.of(o_id=INTEGER, cust_id=INTEGER), ("o_id",)
)
CUSTOMERS = CatalogRelation(
    RelationName("crm", "customers"),
    Schema.of(cust_id=INTEGER, name=STRING, city=STRING),
    ("cust_id",),
)
PARTY = CatalogRelation(
    RelationName("erp", "party"), Schema.of(party_id=INTEGER, label=STRING), ("party_id",)
)
CATALOG = Catalog((ORDERS, CUSTOMERS, PARTY))
SALES = """-- consistency: strong
-- dispensable: city
SELECT o.o_id, c.name, c.city
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
"""
TEXTS = {"sales": SALES, "names": "SELECT name FROM crm.customers"}
KNOWLEDGE = tomllib.loads("""
[[replacements]]
relation = "crm.customers"
by = "erp.party"
containment = "equal"
attributes = { cust_id = "party_id", name = "label" }
""")


class Life:
    """Views that are kept while the customers' table changes; the ledger is remembered as text."""

    def __init__(self, texts: dict[str, str] = TEXTS, knowledge: dict = {}) -> None:  # noqa: B006
        self.texts, self.tables = texts, knowledge
        known = read_knowledge(knowledge, CATALOG).knowledge
        self.evolution = Evolution(CATALOG, known)
        self.views: dict[str, View] = dict(self.read(stored={}).views)
        self.ended: dict[str, Definition] = {}

    def read(self, texts=None, anew=(), stored=None) -> ReadViews:
        stored = self.stored if stored is None else stored
        written = WrittenViews(texts or self.texts)
        return read_views(written, self.evolution.catalog, stored, anew, self.tables)

    @property
    def stored(self) -> dict[str, ViewState]:
        kept = {name: view.stored() for name, view in self.views.items()} | self.ended
        texts = {name: json.dumps(each.as_json()) for name, each in kept.items()}
        again = {name: Definition.from_json(json.loads(text)) for name, text in texts.items()}
        return {n: ViewState(1, 1, 0, 0, 0, True, 0, 0, 1, each) for n, each in again.items()}

    def changes(self, after: Schema | None, renamed=None, *, relation="customers", to=None) -> None:
        name = RelationName("crm", relation)
        (before,) = (r for r in self.evolution.catalog.relations if r.name == name)
        described = RelationSchema(relation, before.schema, before.key, "1")
        key = tuple((renamed or {}).get(k, k) for k in before.key)
        later = None if after is None else replace(described, schema=after, key=key)
        if after is not None and not set(key) <= set(after.names):
            later = replace(described, schema=after, key=())
        change = SchemaChange("crm", {}, relation, described, later, "", False, renamed or {}, to)
        plan = foreseen(change, self.views, self.evolution)
        for view, effect in plan.ended.items():
            story = {"effect": effect.kind.value, "reason": effect.reason}
            stored = plan.with_lineage(self.views[view]).stored()
            self.ended[view] = replace(stored, evolved=story)
        self.views, self.evolution = plan.views(self.views), plan.evolution


TITLED = Schema.of(cust_id=INTEGER, title=STRING, city=STRING)


def renamed(knowledge: dict = {}) -> Life:  # noqa: B006
    life = Life(knowledge=knowledge)
    life.changes(TITLED, {"name": "title"})
    life.changes(None, to="clients")
    return life


def body(view: View) -> list[str]:
    return [line for line in view.text.splitlines() if not line.startswith("--")]


def test_an_edit_of_a_mere_header_after_a_rename_is_understood():
    life = renamed()
    edited = TEXTS | {"sales": SALES.replace("strong", "convergent")}
    read = life.read(edited)
    assert read.bad == {}
    sales = read.views["sales"]
    assert body(sales) == body(life.views["sales"])
    assert str(sales.definition.level) == "convergent"
    assert (sales.written, read.views["names"]) == (edited["sales"], life.views["names"])
    # And the next header, of the view that was kept from it, too.
    life.views["sales"] = sales
    again = life.read(TEXTS | {"sales": "-- a remark\n" + SALES})
    assert body(again.views["sales"]) == body(sales)


def test_a_query_that_is_edited_may_use_the_old_names_or_the_new_ones():
    life = renamed()
    for text in (
        "SELECT c.cust_id, c.name FROM crm.customers c",
        "SELECT c.cust_id, c.title AS name FROM crm.clients c",
    ):
        read = life.read(TEXTS | {"sales": text})
        assert read.bad == {}
        sales = read.views["sales"].definition
        assert sales.schema.names == ("cust_id", "name")
        assert sales.relations == (RelationName("crm", "clients"),)
        # Written by the names of now, it is no longer carried; but what others name is remembered.
        assert read.views["sales"].lineage


def test_a_view_written_with_new_names_still_follows_and_its_old_names_are_known_to_others():
    life = renamed(KNOWLEDGE)
    texts = TEXTS | {"sales": "SELECT c.title AS name FROM crm.clients c"}
    life.views["sales"] = life.read(texts).views["sales"]
    again = Schema.of(cust_id=INTEGER, label=STRING, city=STRING)
    life.changes(again, {"title": "label"}, relation="clients")
    found = life.read(texts | {"sales": "-- edited\n" + texts["sales"]})
    assert found.bad == {}
    assert "label AS name" in found.views["sales"].text
    lineage = life.views["sales"].lineage
    known = read_knowledge(KNOWLEDGE, life.evolution.catalog, lineage)
    assert [str(r.relation) for r in known.knowledge.replacements] == ["crm.clients"]
    assert known.notes == ()


def test_names_that_changed_places_are_not_taken_for_each_other():
    life = Life()
    swapped = Schema.of(cust_id=INTEGER, city=STRING, name=STRING)
    life.changes(swapped, {"name": "city", "city": "name"})
    sales = life.read(TEXTS | {"sales": "-- a remark\n" + SALES}).views["sales"]
    assert "c.city AS name" in sales.text
    assert "c.name AS city" in sales.text
    # A query that is written now means the names of now.
    fresh = life.read(TEXTS | {"names": "SELECT name, city FROM crm.customers"}).views["names"]
    assert fresh.origin == ""


def test_what_was_replaced_or_lost_is_carried_over_as_it_was_when_it_happened():
    life = renamed(KNOWLEDGE)
    life.changes(Schema.of(cust_id=INTEGER, title=STRING), relation="clients")
    life.changes(None, relation="clients")
    assert life.ended == {}
    sales = life.read(TEXTS | {"sales": "-- a remark\n" + SALES}).views["sales"]
    assert sales.definition.relations == (ORDERS.name, PARTY.name)
    assert sales.definition.schema.names == ("o_id", "name")
    assert sales.text == life.views["sales"].text


def test_a_bad_text_is_wrong_for_its_own_view_alone():
    life = renamed()
    read = life.read(TEXTS | {"sales": SALES.replace("c.city", "c.nothing")})
    assert list(read.views) == ["names"]
    assert read.bad["sales"].code == "unknown-relation"
    needed = SALES.replace("-- dispensable: city\n", "")
    life.changes(Schema.of(cust_id=INTEGER, title=STRING), relation="clients")
    read = life.read(TEXTS | {"sales": needed})
    assert list(read.views) == ["names"]
    assert read.bad["sales"].code == "view-outdated"
    assert "city is not dispensable" in read.bad["sales"].detail


def test_a_retired_view_is_filled_anew_as_soon_as_it_fits():
    life = renamed()
    life.changes(Schema.of(cust_id=INTEGER, city=STRING), relation="clients")
    assert life.ended["sales"].has_ended
    read = life.read()
    assert (dict(read.views), read.bad, sorted(read.ended)) == ({}, {}, ["names", "sales"])
    assert life.read(anew=["sales"]).bad["sales"].code == "evolved-view-unreadable"
    life.changes(TITLED, relation="clients")
    revived = life.read(anew=["sales"])
    assert revived.bad == {}
    assert revived.views["sales"].evolved is None
    assert "c.title AS name" in revived.views["sales"].text
    # Or its user writes another text.
    edited = life.read(TEXTS | {"sales": "SELECT cust_id, city FROM crm.clients"})
    assert edited.views["sales"].evolved is None


def test_a_view_that_stopped_is_filled_anew_when_its_user_casts():
    texts = {"few": "SELECT cust_id FROM crm.customers WHERE cust_id > 3"}
    life = Life(texts)
    life.changes(Schema.of(cust_id=STRING, name=STRING, city=STRING))
    assert life.ended["few"].evolved["effect"] == "stopped"
    assert life.read(anew=["few"]).bad["few"].code == "type-mismatch"
    cast = {"few": "SELECT cust_id FROM crm.customers WHERE CAST(cust_id AS BIGINT) > 3"}
    assert str(life.read(cast).views["few"].definition.schema.type_of("cust_id")) == "string"


def test_a_text_that_is_cast_back_is_understood_with_another_header():
    text = "SELECT cust_id FROM crm.customers WHERE name <> 'x'"
    life = Life({"some": text})
    life.changes(Schema.of(cust_id=INTEGER, name=INTEGER, city=STRING))
    assert "CAST(customers.name AS STRING) <> 'x'" in life.views["some"].text
    edited = life.read({"some": "-- consistency: strong\n" + text})
    assert edited.bad == {}
    assert body(edited.views["some"]) == body(life.views["some"])
    assert str(edited.views["some"].definition.level) == "strong"


def test_a_type_that_is_followed_leaves_the_users_own_text():
    life = Life({"names": "SELECT cust_id, name FROM crm.customers -- all of them"})
    life.changes(Schema.of(cust_id=INTEGER, name=INTEGER, city=STRING))
    view = life.views["names"]
    assert (view.origin, view.text) == ("", life.texts["names"])
    again = life.read().views["names"]
    assert again.definition == view.definition
    assert again.definition.schema.type_of("name") == INTEGER


# -- files brought up to date ------------------------------------------------------------------------

FORMS = {
    "plain": """-- consistency: strong
-- what the sales team looks at
-- dispensable: city, condition c.name
SELECT o.o_id,
       c.name, c.city -- as it was
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
WHERE c.name <> 'x'
""",
    "bare": "SELECT cust_id, name, upper(customers.name) AS big FROM crm.customers WHERE name > 'a'",
    "outer_join": "SELECT o.o_id, c.name FROM shop.orders o\n"
    "LEFT JOIN crm.customers c ON o.cust_id = c.cust_id",
    "exists": "SELECT o.o_id FROM shop.orders o WHERE EXISTS\n"
    "  (SELECT 1 FROM crm.customers c WHERE c.cust_id = o.cust_id AND c.name > 'n')",
    "with_it": "WITH few AS (SELECT name, cust_id FROM crm.customers)\nSELECT f.name FROM few f",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_brought_up_to_date_in_its_users_own_words(form):
    texts = {form: FORMS[form], "other": "SELECT o_id FROM shop.orders"}
    life = Life(texts)
    life.changes(TITLED, {"name": "title"})
    life.changes(None, to="clients")
    lagging = {name: view for name, view in life.views.items() if view.origin}
    new, left = updated_texts(lagging, texts, life.evolution.catalog)
    assert (list(new), left) == ([form], {})
    text = new[form]
    assert "crm.clients" in text
    for words in ("-- what the sales team looks at", "-- as it was", "LEFT JOIN", "EXISTS\n"):
        assert (words in text) == (words in FORMS[form]), text
    # It says what is kept: nothing is filled again, and there is nothing more to write.
    read = life.read(texts | new)
    assert read.bad == {}
    assert read.views[form].definition == life.views[form].definition
    assert read.views[form].written == life.views[form].written
    assert updated_texts(lagging, texts | new, life.evolution.catalog) == ({}, {})
    # And it is followed from there.
    life.views = dict(read.views)
    again = Schema.of(cust_id=INTEGER, label=STRING, city=STRING)
    life.changes(again, {"title": "label"}, relation="clients")
    later = life.read({**texts, form: "-- edited\n" + text})
    assert later.bad == {}
    assert "label" in later.views[form].text


def test_what_was_replaced_is_written_as_it_has_become_below_its_comments():
    life = renamed(KNOWLEDGE)
    life.changes(Schema.of(cust_id=INTEGER, title=STRING), relation="clients")
    life.changes(None, relation="clients")
    new, left = updated_texts(life.views, TEXTS, life.evolution.catalog)
    assert left == {}
    assert new["sales"].startswith("-- consistency: strong\nSELECT\n")
    assert "erp.party AS c" in new["sales"]
    assert life.read(TEXTS | new).views == life.read(TEXTS).views | life.read(TEXTS | new).views


def test_a_query_that_can_not_be_written_is_left_alone_by_name():
    texts = {
        "v": "SELECT o.o_id, c.name FROM shop.orders o LEFT JOIN crm.customers c USING (cust_id)"
    }
    life = Life(texts, KNOWLEDGE)
    life.changes(None)
    assert life.ended == {}
    new, left = updated_texts(life.views, texts, life.evolution.catalog)
    assert (new, left["v"].code) == ({}, "view-not-writable")


def test_no_error_is_hidden_when_all_are_bad():
    with pytest.raises(UsageError):
        raise next(iter(Life().read({"v": "SELECT nothing FROM crm.customers"}).bad.values()))
