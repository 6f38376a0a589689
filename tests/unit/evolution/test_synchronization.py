"""What a view becomes when a schema under it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unit.evolution.shop import (
    BY_NAMES,
    BY_PARTY,
    CATALOG,
    CUSTOMERS,
    JOIN,
    KNOWLEDGE,
    NAMES,
    ORDERS,
    PARTY,
    parts,
    sales,
)
from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import (
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    decimal_type,
)
from viewkeeper.evolution.changes import (
    AddAttribute,
    AddRelation,
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    Rewrite,
    catalog_after,
)
from viewkeeper.evolution.knowledge import Containment, Knowledge
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.evolution.synchronization import (
    Offered,
    Renamed,
    Retired,
    Synchronized,
    Untouched,
    synchronized,
)
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName
from viewkeeper.views.printing import view_sql


def after(change, view=None, knowledge=KNOWLEDGE, catalog=CATALOG):
    return synchronized(view or sales(), change, knowledge, catalog_after(catalog, change))


@pytest.mark.parametrize(
    "change",
    [
        AddRelation(RelationName("shop", "new"), Schema.of(a=INTEGER)),
        AddAttribute(PARTY, Field("phone", STRING)),
        DropRelation(NAMES),
        DropAttribute(PARTY, "town"),
        RenameRelation(NAMES, "labels"),
        ChangeType(ORDERS, "qty", INTEGER, INTEGER),
        Rewrite(PARTY),
    ],
)
def test_what_the_view_does_not_read_leaves_it_alone(change):
    found = after(change)
    assert isinstance(found, Untouched)
    assert view_sql(found.definition) == view_sql(sales().definition)


def test_a_new_attribute_is_offered_and_not_forced():
    found = after(AddAttribute(CUSTOMERS, Field("phone", STRING)))
    assert isinstance(found, Offered)
    assert found.field.name == "phone"
    assert "phone" not in found.definition.schema
    assert "phone" in found.definition.terms[0].occurrence("c").schema


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (RenameAttribute(CUSTOMERS, "name", "title"), "c.title AS name"),
        (RenameRelation(CUSTOMERS, "clients"), "crm.clients AS c"),
        (RenameAttribute(ORDERS, "cust_id", "client"), "o.client = c.cust_id"),
        (RenameAttribute(ORDERS, "qty", "pieces"), "o.pieces AS qty"),
    ],
)
def test_a_rename_goes_on_underneath_and_the_columns_stay(change, expected):
    found = after(change)
    assert isinstance(found, Renamed)
    assert expected in view_sql(found.definition)
    assert found.definition.schema == sales().definition.schema
    assert not found.mapping.touched


def test_a_relation_is_replaced_attribute_by_attribute():
    found = after(DropRelation(CUSTOMERS))
    assert isinstance(found, Synchronized)
    text = view_sql(found.definition)
    assert "erp.party AS c" in text
    assert "c.full_name AS name" in text
    assert "o.cust_id = c.party_id" in text
    assert found.mapping.extent is Extent.EQUAL
    assert found.mapping.touched == {"c"}
    assert "replace crm.customers by erp.party" in found.reason
    # The other one has no city, which the view needs.
    assert any("the column city is not dispensable" in other for other in found.others)


def test_one_lost_attribute_may_come_from_a_joined_relation():
    knowledge = Knowledge((BY_NAMES,), (JOIN,))
    found = after(DropAttribute(CUSTOMERS, "name"), knowledge=knowledge)
    assert isinstance(found, Synchronized)
    text = view_sql(found.definition)
    assert "crm.customers AS c" in text
    assert "c2.label AS name" in text
    assert "c.cust_id = c2.id" in text
    assert found.mapping.extent is Extent.EQUAL  # customers are a subset, joined by a key


def test_an_attribute_that_is_dispensable_is_dropped_where_nothing_supplies_it():
    view = sales(dispensable=parts("city"))
    found = after(DropAttribute(CUSTOMERS, "city"), view, Knowledge())
    assert isinstance(found, Synchronized)
    assert found.definition.schema.names == ("o_id", "qty", "cust_id", "name")
    assert found.mapping.extent is Extent.EQUAL
    assert not found.mapping.touched


def test_a_condition_goes_only_if_it_is_dispensable_too():
    gone = DropAttribute(ORDERS, "qty")
    view = sales(dispensable=parts("qty"))
    assert isinstance(after(gone, view), Retired)
    view = sales(dispensable=parts("qty", conditions="o.qty"))
    refused = after(gone, view)
    assert isinstance(refused, Retired)
    assert "the extent would be superset, and must be equal" in refused.reason
    view = sales(dispensable=parts("qty", conditions="o.qty"), extent=Extent.SUPERSET)
    found = after(gone, view)
    assert isinstance(found, Synchronized)
    assert len(found.definition.terms[0].predicates) == 1
    assert found.mapping.extent is Extent.SUPERSET


def test_a_dispensable_relation_goes_with_its_columns_and_conditions():
    view = sales(dispensable=parts("cust_id name city", "c"), extent=Extent.ANY)
    found = after(DropRelation(CUSTOMERS), view, Knowledge())
    assert isinstance(found, Synchronized)
    assert found.definition.schema.names == ("o_id", "qty")
    assert found.definition.relations == (ORDERS,)


def test_a_view_that_cant_be_saved_is_retired_with_all_reasons():
    found = after(DropRelation(ORDERS))
    assert isinstance(found, Retired)
    assert "the relation o is not dispensable" in found.reason


def test_what_is_irreplaceable_must_not_come_from_elsewhere():
    found = after(DropRelation(CUSTOMERS), sales(irreplaceable=parts("name")))
    assert isinstance(found, Retired)
    assert "the column name may not come from elsewhere" in found.reason
    found = after(DropRelation(CUSTOMERS), sales(irreplaceable=parts(relations="c")))
    assert "the relation c is not replaceable" in found.reason


@pytest.mark.parametrize(
    ("containment", "extent", "saved"),
    [
        (Containment.EQUAL, Extent.EQUAL, True),
        (Containment.SUBSET, Extent.EQUAL, False),
        (Containment.SUBSET, Extent.SUPERSET, True),
        (Containment.SUPERSET, Extent.SUPERSET, False),
        (Containment.SUPERSET, Extent.SUBSET, True),
        (Containment.UNKNOWN, Extent.SUPERSET, False),
        (Containment.UNKNOWN, Extent.ANY, True),
    ],
)
def test_the_extent_that_follows_must_be_one_the_view_accepts(containment, extent, saved):
    knowledge = Knowledge((replace(BY_PARTY, containment=containment),))
    found = after(DropRelation(CUSTOMERS), sales(extent=extent), knowledge)
    assert isinstance(found, Synchronized if saved else Retired)


def test_the_better_rewriting_keeps_more_attributes_then_the_closer_extent():
    view = sales(dispensable=parts("city"), extent=Extent.ANY)
    found = after(DropRelation(CUSTOMERS), view)
    assert "erp.party" in found.reason  # five attributes against four
    assert any("dir.names" in other and "keeps 4 of 5" in other for other in found.others)
    less = replace(BY_PARTY, containment=Containment.UNKNOWN, attributes=BY_PARTY.attributes[:2])
    found = after(DropRelation(CUSTOMERS), view, Knowledge((less, BY_NAMES)))
    assert "dir.names" in found.reason  # as many attributes, but a superset instead of anything


def test_a_wider_type_is_kept_and_the_view_gets_it_too():
    found = after(ChangeType(ORDERS, "qty", INTEGER, decimal_type(20, 0)))
    assert isinstance(found, Synchronized)
    assert str(found.definition.schema.type_of("qty")) == "decimal(20,0)"
    assert not found.mapping.touched


def test_a_column_computed_from_a_wider_one_must_be_looked_at():
    view = sales("SELECT o.o_id, o.qty / 2 AS half FROM shop.orders o")
    found = after(ChangeType(ORDERS, "qty", INTEGER, decimal_type(20, 0)), view)
    assert found.mapping.touched == {"o"}


def test_a_type_over_which_an_expression_means_nothing_stops_the_view_or_costs_the_column():
    view = sales("SELECT o.o_id, CAST(o.qty AS STRING) AS bar FROM shop.orders o")
    change = ChangeType(ORDERS, "qty", INTEGER, decimal_type(20, 0))
    found = after(change, view)
    assert isinstance(found, Retired)
    assert found.stops
    view = replace(view, preferences=sales(dispensable=parts("bar")).preferences)
    assert after(change, view).definition.schema.names == ("o_id",)


@pytest.mark.parametrize(
    ("column", "before", "now"),
    [
        ("qty", decimal_type(10, 2), decimal_type(8, 2)),
        ("qty", STRING, INTEGER),
        ("qty", INTEGER, STRING),
        ("qty", DATE, TIMESTAMP),
        ("qty", decimal_type(10, 2), DOUBLE),
        ("qty", DOUBLE, decimal_type(10, 2)),
    ],
)
def test_a_column_of_another_type_is_followed_and_its_values_are_read_again(column, before, now):
    catalog = catalog_after(CATALOG, ChangeType(ORDERS, column, INTEGER, before))
    text = "SELECT o.o_id, o.qty, c.name FROM shop.orders o JOIN crm.customers c USING (cust_id)"
    view = EvolvingView(parse_view("sales", text, catalog))
    found = after(ChangeType(ORDERS, column, before, now), view, Knowledge(), catalog)
    assert isinstance(found, Synchronized)
    assert found.definition.schema.type_of("qty") == now
    assert view_sql(found.definition) == view_sql(view.definition)
    assert found.mapping.touched == {"o"}
    assert not found.mapping.trusted


def test_a_text_that_does_not_fit_a_type_is_cast_back_where_that_cant_fail_and_else_stops():
    text = "SELECT cust_id, city FROM crm.customers WHERE name <> 'x'"
    found = after(ChangeType(CUSTOMERS, "name", STRING, INTEGER), sales(text), Knowledge())
    assert isinstance(found, Synchronized)
    assert "CAST(customers.name AS STRING) <> 'x'" in view_sql(found.definition)
    found = after(ChangeType(ORDERS, "qty", INTEGER, STRING), sales(), Knowledge())
    assert isinstance(found, Retired)
    assert found.stops
    assert "does not fit the view: go on with string: " in found.reason
    assert "not every string is a bigint" in found.reason


def test_a_condition_on_groups_that_means_nothing_over_a_type_stops_the_view():
    text = "SELECT cust_id, max(qty) AS m FROM shop.orders GROUP BY cust_id HAVING max(qty) > 3"
    found = after(ChangeType(ORDERS, "qty", INTEGER, STRING), sales(text), Knowledge())
    assert isinstance(found, Retired)
    assert found.stops


def test_rewritten_rows_are_read_anew_under_the_same_definition():
    found = after(Rewrite(CUSTOMERS))
    assert isinstance(found, Synchronized)
    assert found.mapping.touched == {"c"}
    assert not found.mapping.trusted
    assert view_sql(found.definition) == view_sql(sales().definition)


def test_aggregates_follow_a_replacement_and_keys_of_groups_are_never_given_up():
    text = """
    SELECT c.city, count(*) AS n, max(c.name) AS last
    FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id GROUP BY c.city
    """
    found = after(DropRelation(CUSTOMERS), sales(text))
    assert "max(c.full_name)" in view_sql(found.definition)
    view = sales(text, dispensable=parts("last city"), extent=Extent.ANY)
    assert "dir.names" not in after(DropRelation(CUSTOMERS), view).reason
    found = after(DropAttribute(CUSTOMERS, "name"), view, Knowledge())
    assert found.definition.schema.names == ("city", "n")
    found = after(DropAttribute(CUSTOMERS, "city"), view, Knowledge())
    assert "the view groups by" in found.reason


def test_both_occurrences_of_a_relation_are_replaced():
    text = """
    SELECT a.cust_id AS one, b.cust_id AS two
    FROM crm.customers a JOIN crm.customers b ON a.city = b.city
    """
    found = after(DropRelation(CUSTOMERS), sales(text))
    assert found.definition.relations == (PARTY,)
    assert found.mapping.touched == {"a", "b"}
    # Only one of the two reads the name: the other stays where it is.
    text = text.replace("b.cust_id AS two", "b.name AS two")
    found = after(DropAttribute(CUSTOMERS, "name"), sales(text))
    assert found.mapping.touched == {"b"}


def test_a_union_loses_a_column_in_all_its_terms():
    text = """
    SELECT cust_id, name FROM crm.customers UNION ALL SELECT party_id, full_name FROM erp.party
    """
    view = sales(text, dispensable=parts("name"))
    found = after(DropAttribute(PARTY, "full_name"), view, Knowledge())
    assert [len(term.outputs) for term in found.definition.terms] == [1, 1]
    wider = after(ChangeType(PARTY, "party_id", INTEGER, decimal_type(20, 0)), view)
    assert {term.schema for term in wider.definition.terms} == {wider.definition.schema}


# -- views with steps: an outer join is a sum of three of them ----------------------------------------

OUTER = """
SELECT o.o_id, o.qty, c.name, c.city
FROM shop.orders o LEFT JOIN crm.customers c ON o.cust_id = c.cust_id
"""


@pytest.mark.parametrize("now", [decimal_type(8, 2), STRING, DOUBLE])
def test_an_outer_join_follows_a_type_of_its_optional_side(now):
    catalog = catalog_after(CATALOG, ChangeType(CUSTOMERS, "name", STRING, decimal_type(10, 2)))
    view = EvolvingView(parse_view("sales", OUTER, catalog))
    change = ChangeType(CUSTOMERS, "name", decimal_type(10, 2), now)
    found = after(change, view, Knowledge(), catalog)
    assert isinstance(found, Synchronized), found
    assert found.definition == parse_view("sales", OUTER, catalog_after(catalog, change))


WITHOUT = """
SELECT o.o_id, o.qty FROM shop.orders o
WHERE NOT EXISTS (SELECT 1 FROM crm.customers c WHERE c.cust_id = o.cust_id)
"""


def test_an_outer_join_follows_renames_and_replacements_through_its_steps():
    found = after(RenameAttribute(CUSTOMERS, "name", "title"), sales(OUTER))
    assert isinstance(found, Renamed)
    assert found.definition.schema == sales(OUTER).definition.schema
    found = after(DropRelation(CUSTOMERS), sales(OUTER))
    assert found.definition.relations == (ORDERS, PARTY)


def test_an_outer_join_gets_wider_types_through_its_steps():
    found = after(ChangeType(ORDERS, "qty", INTEGER, decimal_type(20, 0)), sales(OUTER))
    assert str(found.definition.schema.type_of("qty")) == "decimal(20,0)"
    assert "o" in found.mapping.touched  # so it is recomputed


def test_an_outer_join_does_without_a_column_of_its_optional_side():
    gone = DropAttribute(CUSTOMERS, "city")
    assert isinstance(after(gone, sales(OUTER), Knowledge()), Retired)
    found = after(gone, sales(OUTER, dispensable=parts("city")), Knowledge())
    assert found.definition.schema.names == ("o_id", "qty", "name")
    assert all(
        "city" not in column for term in found.definition.all_terms for column in term.columns_read
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OUTER, ("o_id", "name", "city")),
        (WITHOUT, ("o_id",)),
    ],
)
def test_an_outer_join_does_without_a_column_of_its_left_side(text, names):
    view = sales(text, dispensable=parts("qty"))
    found = after(DropAttribute(ORDERS, "qty"), view, Knowledge())
    assert isinstance(found, Synchronized), found
    assert found.definition.schema.names == names
    # Two orders that differ in the lost column alone are two rows, and each has its partner or none.
    orders = [(1, 7, 3), (1, 7, 4), (2, 8, 3)]
    rows = {
        ORDERS: Bag.of(Schema.of(o_id=INTEGER, cust_id=INTEGER, qty=INTEGER), orders),
        CUSTOMERS: Bag.of(Schema.of(cust_id=INTEGER, name=STRING, city=STRING), [(7, "n", "c")]),
    }
    before = evaluated(view.definition, rows.__getitem__)
    less = rows | {ORDERS: rows[ORDERS].only(("o_id", "cust_id"))}
    assert evaluated(found.definition, less.__getitem__) == before.only(names)


def test_an_outer_join_can_not_do_without_a_column_that_its_partners_depend_on():
    view = sales(OUTER, dispensable=parts("qty"))
    found = after(DropAttribute(ORDERS, "cust_id"), view, Knowledge())
    assert isinstance(found, Retired)
    assert "is not dispensable" in found.reason
