"""Extents brought over where Map-VA does not apply, and where nothing needs to be asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unit.evolution.shop import (
    BY_PARTY,
    CATALOG,
    CUSTOMERS,
    KNOWLEDGE,
    ORDERS,
    PARTY,
    SALES,
    parts,
    sales,
)
from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Cast, Column, Output
from viewkeeper.algebra.types import INTEGER, decimal_type
from viewkeeper.evolution.adaptation import Method, adaptation_of, adapted
from viewkeeper.evolution.changes import ChangeType, DropAttribute, DropRelation, catalog_after
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.map_va import plan
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.synchronization import synchronized
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName
from viewkeeper.views.pruning import pruned

SCHEMAS = {relation.name: relation.schema for relation in CATALOG.relations}
CONTENTS = {
    ORDERS: Bag.of(SCHEMAS[ORDERS], [(1, 1, 5), (2, 1, 5), (3, 9, 7)]),
    CUSTOMERS: Bag.of(SCHEMAS[CUSTOMERS], [(1, "Ann", "Oslo"), (2, "Bob", "Rome")]),
    PARTY: Bag.of(SCHEMAS[PARTY], [(1, "Ann", "Oslo"), (9, "Zoe", "Rome")]),
}

OUTER = """
SELECT o.o_id, c.name FROM shop.orders o LEFT JOIN crm.customers c ON o.cust_id = c.cust_id
"""
GROUPED = """
SELECT c.city, count(*) AS n FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
GROUP BY c.city
"""
DISTINCT = "SELECT DISTINCT name FROM crm.customers"
UNION = "SELECT cust_id FROM crm.customers UNION ALL SELECT cust_id FROM shop.orders"


def after(view, change, knowledge):
    return synchronized(view, change, knowledge, catalog_after(CATALOG, change))


class Read:
    """Relations as they are now; ``asked`` says which of them an adaptation has read."""

    def __init__(self, contents) -> None:
        self.contents = contents
        self.asked: list[RelationName] = []

    def whole(self, name, needed):
        self.asked.append(name)
        return self.contents[name].only(needed.names)

    def matching(self, name, needed, key_columns, keys):
        return self.whole(name, needed).matching(key_columns, keys)


def contents_after(contents, change):
    """What the sources hold once the schema has changed."""
    rows = contents[change.relation]
    schema = catalog_after(CATALOG, change)
    known = [r.schema for r in schema.relations if r.name == change.relation]
    others = {name: rows for name, rows in contents.items() if name != change.relation}
    if not known:
        return others
    outputs = tuple(Output(f.name, Cast(Column(f.name), f.type)) for f in known[0])
    return others | {change.relation: rows.select(outputs)}


def brought_over(view, change, knowledge=KNOWLEDGE) -> tuple[Method, list[RelationName]]:
    """How the view is adapted, and what is read for it; the extent must be right."""
    found = after(view, change, knowledge)
    now = contents_after(CONTENTS, change)
    method, reason = adaptation_of(view.definition, found.definition, found.mapping)
    assert (method is Method.RECOMPUTE) is bool(reason)
    if method is Method.RECOMPUTE:
        return method, []
    queries = plan(view.definition, found.definition, found.mapping)
    read = Read(now)
    result = adapted(queries, evaluated(view.definition, CONTENTS.__getitem__), read)
    new = pruned(found.definition)
    schemas = {o.name: o.schema for t in new.all_terms for o in t.occurrences}
    assert result.extent == evaluated(new, lambda name: now[name].only(schemas[name].names))
    return method, read.asked


@pytest.mark.parametrize("text", [OUTER, GROUPED, DISTINCT, UNION])
def test_a_view_that_is_no_plain_join_is_computed_over_its_replacement(text):
    assert brought_over(sales(text), DropRelation(CUSTOMERS)) == (Method.RECOMPUTE, [])


def test_what_is_kept_beside_a_view_is_computed_even_if_its_rows_stay():
    """The stores of a grouped view have no old extent that they could come from."""
    text = GROUPED.replace("c.city, ", "max(c.name) AS m, c.city, ")
    view = sales(text, dispensable=parts("m"))
    found, _ = brought_over(view, DropAttribute(CUSTOMERS, "name"), Knowledge())
    assert found is Method.RECOMPUTE


def test_a_column_less_asks_no_source():
    view = sales(dispensable=parts("name"))
    change = DropAttribute(CUSTOMERS, "name")
    assert brought_over(view, change, Knowledge()) == (Method.KEPT, [])


def test_equal_relations_are_taken_on_trust_only_if_nothing_else_differs():
    trusted = replace(BY_PARTY, trusted=True)
    view = sales(extent=Extent.ANY, dispensable=parts(conditions="c.city"))
    found = brought_over(view, DropRelation(CUSTOMERS), Knowledge((BY_PARTY,)))
    assert found == (Method.MAP_VA, [PARTY, ORDERS])
    mapping = after(view, DropRelation(CUSTOMERS), Knowledge((trusted,))).mapping
    assert mapping.trusted
    # Without its city the condition on it goes, and other rows come.
    less = replace(trusted, attributes=trusted.attributes[:2])
    text = SALES.replace(", c.city", "").replace("> 2", "> 2 AND c.city = 'Oslo'")
    view = sales(text, extent=Extent.ANY, dispensable=parts(conditions="c.city"))
    method, _ = brought_over(view, DropRelation(CUSTOMERS), Knowledge((less,)))
    assert method is Method.MAP_VA


def test_what_is_computed_from_a_wider_value_is_looked_at():
    wider = ChangeType(ORDERS, "qty", INTEGER, decimal_type(20, 0))
    view = sales("SELECT o.o_id, o.qty + 1 AS more, o.qty FROM shop.orders o")
    assert brought_over(view, wider) == (Method.MAP_VA, [ORDERS])
    view = sales("SELECT o.o_id, o.qty / 2 AS half, o.qty FROM shop.orders o")
    method, _ = brought_over(view, wider)  # a double becomes a decimal
    assert method is Method.RECOMPUTE
    view = sales("SELECT o.o_id, o.qty FROM shop.orders o")
    assert brought_over(view, wider) == (Method.KEPT, [])
