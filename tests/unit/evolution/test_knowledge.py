"""The knowledge base: read from TOML, and what is left of it after schema changes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from unit.evolution.shop import (
    CATALOG,
    CUSTOMERS,
    JOIN,
    KNOWLEDGE,
    NAMES,
    PARTY,
    SALES,
    sales,
)
from viewkeeper.algebra.expressions import Call, Column
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.errors import UsageError
from viewkeeper.evolution.changes import (
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    catalog_after,
)
from viewkeeper.evolution.knowledge import Containment, JoinConstraint, offers
from viewkeeper.evolution.knowledge_file import entries_of, read_knowledge, view_tables
from viewkeeper.evolution.lineage import followed
from viewkeeper.evolution.preferences import Policy, preferences_of
from viewkeeper.evolution.quality import Extent
from viewkeeper.views.definition import RelationName

TEXT = """
[[knowledge.replacements]]
relation = "crm.customers"
by = "erp.party"
containment = "equal"
attributes = { cust_id = "party_id", name = "full_name", city = "upper(town)" }

[[knowledge.joins]]
left = "crm.customers"
right = "dir.names"
on = { cust_id = "id" }

[knowledge.views.sales]
dispensable = ["city", "relation c", "condition o.qty"]
irreplaceable = ["name"]
extent = "superset"
evolve = "approve"
"""


def knowledge(text: str):
    return read(text).knowledge


def read(text: str, catalog=CATALOG, lineage=()):
    return read_knowledge(tomllib.loads(text).get("knowledge", {}), catalog, lineage)


def test_the_whole_of_it():
    found = knowledge(TEXT)
    (replacement,) = found.replacements
    assert (replacement.relation, replacement.by) == (CUSTOMERS, PARTY)
    assert replacement.containment is Containment.EQUAL
    assert replacement.expression("name") == Column("full_name")
    assert replacement.expression("city") == Call("upper", (Column("town"),))
    assert found.joins == (JOIN,)
    assert found.joining(NAMES, CUSTOMERS) == (FROM_NAMES,)
    assert knowledge("") == type(found)()


FROM_NAMES = JoinConstraint(NAMES, CUSTOMERS, (("id", "cust_id"),))


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('by = "erp.party"', 'by = "crm.customers"', "by itself", ""),
        ('by = "erp.party"', "", "has no by", 'by = "source.table"'),
        ('"equal"', '"equals"', "equals is no containment", "did you mean equal?"),
        ("containment =", "contains =", "unknown entry contains", "did you mean containment?"),
        ("[[knowledge.joins]]", "[[knowledge.join]]", "unknown entry join", "did you mean joins?"),
        ("on = {", "on = { } # {", "has no on", "on = {"),
        ("upper(town)", "uper(town)", "uper", ""),
        ("upper(town)", "upper(town", "", ""),
        ('containment = "equal"', "trusted = true", "can't be trusted", "leave out trusted"),
        ('containment = "equal"', 'trusted = "yes"', "not true or false", ""),
    ],
)
def test_slips_are_pointed_out(old, new, message, hint):
    with pytest.raises(UsageError) as error:
        knowledge(TEXT.replace(old, new, 1))
    assert message in str(error.value)
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("old", "new", "note", "left"),
    [
        ('"erp.party"', '"erp.prty"', "no relation erp.prty (did you mean erp.party", []),
        ('"erp.party"', '"epr.party"', "no source epr (did you mean erp", []),
        ('"party_id"', '"partyid"', "partyid means nothing over erp.party", ["name", "city"]),
        ('cust_id = "party', 'cust = "party', "no column cust (did you mean", ["name", "city"]),
        ("upper(town)", "upper(twn)", "upper(twn) means nothing", ["cust_id", "name"]),
        ("upper(town)", "upper(party_id)", "upper(party_id) means", ["cust_id", "name"]),
    ],
)
def test_what_is_not_there_can_not_be_used_now_and_is_noted(old, new, note, left):
    """A table that was dropped or changed, or is yet to be made, ends no run."""
    found = read(TEXT.replace(old, new, 1))
    (told,) = found.notes
    assert note in told
    assert told.startswith("replacement 1 in [knowledge] can't be used now: ")
    attributes = [name for r in found.knowledge.replacements for name, _ in r.attributes]
    assert attributes == left
    assert found.knowledge.joins == (JOIN,)


def test_a_join_over_a_column_that_is_gone_is_noted():
    found = read(TEXT.replace('{ cust_id = "id" }', '{ cust_id = "number" }'))
    assert found.knowledge.joins == ()
    assert "dir.names has no column number" in found.notes[0]


# -- names that have changed since the file was written ----------------------------------------------


def changed(*changes):
    """The catalog after some changes, and what a view that reads customers remembers of them."""
    catalog, lineage = CATALOG, ()
    for change in changes:
        named = (CUSTOMERS, PARTY, NAMES, CLIENTS)
        lineage = followed(lineage, change, named, catalog, entries_of(TABLES))
        catalog = catalog_after(catalog, change)
    return catalog, lineage


TABLES = tomllib.loads(TEXT)["knowledge"]
CLIENTS = RelationName("crm", "clients")
SWAPPED = (
    RenameAttribute(CUSTOMERS, "name", "c"),
    RenameAttribute(CUSTOMERS, "city", "name"),
    RenameAttribute(CUSTOMERS, "c", "city"),
)


@pytest.mark.parametrize(
    "changes",
    [
        (RenameRelation(CUSTOMERS, "clients"),),
        (RenameRelation(CUSTOMERS, "clients"), RenameAttribute(CLIENTS, "name", "title")),
        SWAPPED,
        (RenameRelation(PARTY, "partners"),),
        (RenameAttribute(PARTY, "full_name", "title"), RenameRelation(NAMES, "labels")),
        (DropAttribute(PARTY, "town"), RenameAttribute(PARTY, "full_name", "town")),
    ],
)
def test_names_in_the_file_are_followed_after_a_restart_as_they_were_before_it(changes):
    catalog, lineage = changed(*changes)
    expected = knowledge(TEXT)
    for change in changes:
        expected = expected.after(change)
    found = read(TEXT, catalog, lineage)
    assert found == type(found)(expected)


def test_a_replacement_of_another_type_is_looked_at_when_it_is_needed():
    """What it offers then is what fits: a text can still be text, a number has no upper case."""
    catalog, lineage = changed(ChangeType(PARTY, "town", STRING, INTEGER))
    (replacement,) = read(TEXT, catalog, lineage).knowledge.replacements
    assert [name for name, _ in replacement.attributes] == ["cust_id", "name", "city"]
    (party,) = (r for r in catalog.relations if r.name == PARTY)
    assert [name for name, _ in offers(party, replacement).attributes] == ["cust_id", "name"]


def test_a_file_that_is_brought_up_to_date_needs_no_memory():
    catalog, lineage = changed(RenameRelation(CUSTOMERS, "clients"))
    text = TEXT.replace("crm.customers", "crm.clients")
    assert read(text, catalog, lineage) == read(text, catalog)


def test_an_entry_that_is_written_again_means_the_names_of_now():
    catalog, lineage = changed(*SWAPPED)
    text = TEXT.replace('name = "full_name", city = "upper(town)"', 'city = "full_name"')
    found = read(text, catalog, lineage)
    assert found.knowledge.replacements[0].expression("city") == Column("full_name")


def test_what_replaced_a_relation_that_is_gone_has_served_its_purpose():
    catalog, lineage = changed(RenameRelation(CUSTOMERS, "clients"), DropRelation(CLIENTS))
    found = read(TEXT, catalog, lineage)
    assert found == type(found)()


def test_renames_are_followed_on_both_sides():
    found = KNOWLEDGE
    for change in (
        RenameRelation(CUSTOMERS, "clients"),
        RenameAttribute(PARTY, "full_name", "title"),
        RenameRelation(PARTY, "partners"),
    ):
        found = found.after(change)
    first = found.replacements[0]
    assert (str(first.relation), str(first.by)) == ("crm.clients", "erp.partners")
    assert first.expression("name") == Column("title")
    assert str(found.joins[0]) == "crm.clients joins dir.names on cust_id = id"
    found = found.after(RenameAttribute(NAMES, "id", "number"))
    assert found.joins[0].on == (("cust_id", "number"),)


def test_what_is_dropped_stands_for_nothing_any_more():
    assert KNOWLEDGE.after(DropRelation(PARTY)).replacing(CUSTOMERS) == KNOWLEDGE.replacements[1:]
    left = KNOWLEDGE.after(DropAttribute(PARTY, "town")).replacements[0]
    assert [name for name, _ in left.attributes] == ["cust_id", "name"]
    assert KNOWLEDGE.after(DropRelation(NAMES)).joins == ()
    assert KNOWLEDGE.after(ChangeType(NAMES, "id", INTEGER, STRING)).joins == ()


def test_a_name_that_comes_back_is_anothers():
    assert KNOWLEDGE.after(DropRelation(CUSTOMERS)).replacements == ()
    found = KNOWLEDGE.after(DropAttribute(CUSTOMERS, "name"))
    found = found.after(RenameAttribute(CUSTOMERS, "city", "name"))
    assert found.replacements[0].attributes == (
        ("cust_id", Column("party_id")),
        ("name", Column("town")),
    )


def test_the_example_in_the_documentation_is_understood():
    page = (Path(__file__).parents[3] / "docs" / "evolution.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    found = knowledge(text)
    assert (len(found.replacements), len(found.joins)) == (1, 1)
    assert view_tables(tomllib.loads(text)["knowledge"]) == {"sales": {"dispensable": ["phone"]}}


def test_every_relation_it_names_must_be_followed():
    assert KNOWLEDGE.relations == (CUSTOMERS, PARTY, NAMES)


# -- what a view says ------------------------------------------------------------------------------

HEADER = """
-- dispensable: city, relation c, condition o.qty
-- irreplaceable: name
-- extent: superset
-- evolve: approve
"""


def test_a_header_and_the_file_say_the_same_things():
    text = HEADER.strip() + SALES
    from_header = preferences_of(sales(text).definition)
    tables = view_tables(tomllib.loads(TEXT)["knowledge"])
    from_file = preferences_of(sales().definition, tables["sales"])
    assert from_header == from_file
    assert from_header.as_dict() == {
        "dispensable": ["city", "relation c", "condition o.qty"],
        "irreplaceable": ["name"],
        "extent": "superset",
        "evolve": "approve",
    }
    assert from_header.policy is Policy.APPROVE
    assert from_header.extent is Extent.SUPERSET


def test_a_header_is_stronger_and_parts_add_up():
    text = "-- dispensable: city\n-- extent: any" + SALES
    found = preferences_of(sales(text).definition, {"dispensable": ["qty"], "extent": "subset"})
    assert found.dispensable.outputs == {"city", "qty"}
    assert found.extent is Extent.ANY


@pytest.mark.parametrize(
    ("header", "message", "hint"),
    [
        ("-- dispensable: town", "no output column town", ""),
        ("-- dispensable: nam", "no output column nam", "did you mean name?"),
        ("-- dispensable: relation x", "no relation x", ""),
        ("-- dispensable: condition o.o_id", "no condition o.o_id", "did you mean o.cust_id?"),
        ("-- dispensable: table c", "kind of dispensable part table", ""),
        ("-- extent: supperset", "no extent supperset", "did you mean superset?"),
        ("-- evolve: aprove", "no evolve aprove", "did you mean approve?"),
    ],
)
def test_a_part_that_the_view_does_not_have_is_refused(header, message, hint):
    with pytest.raises(UsageError) as error:
        preferences_of(sales(header + SALES).definition)
    assert message in error.value.message
    assert error.value.hint == hint


@pytest.mark.parametrize(
    "table", [{"dispensable": "city"}, {"dispensable": [1]}, {"dispensible": ["city"]}]
)
def test_a_bad_table_of_a_view_is_refused(table):
    with pytest.raises(UsageError, match="bad-knowledge"):
        preferences_of(sales().definition, table)
    with pytest.raises(UsageError, match="not a table of tables"):
        view_tables({"views": {"sales": 1}})
