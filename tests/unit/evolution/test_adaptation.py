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
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.algebra.types import INTEGER, decimal_type
from viewkeeper.errors import UsageError
from viewkeeper.evolution.adaptation import Adapted, Method, Task, adapted
from viewkeeper.evolution.changes import (
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameRelation,
    SchemaChanged,
    catalog_after,
)
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.management import Management
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.synchronization import synchronized
from viewkeeper.simulator.evolution.source import contents_after
from viewkeeper.timeline import Cut
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName
from viewkeeper.views.pruning import pruned

START = Cut.start(("crm", "dir", "erp", "shop"))
LATER = Cut.of({**dict(START), "crm": 1, "shop": 1})
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


def brought_over(
    view, change, knowledge=KNOWLEDGE, changes=None
) -> tuple[Adapted, list[RelationName]]:
    found = after(view, change, knowledge)
    moved = changes or {}
    task = Task(
        pruned(view.definition),
        pruned(found.definition),
        found.mapping,
        evaluated(view.definition, CONTENTS.__getitem__),
        START,
        LATER,
        lambda occurrence: moved.get(occurrence.name),
    )
    now = {name: rows + moved[name] if name in moved else rows for name, rows in CONTENTS.items()}
    if change.relation in now:
        now = contents_after(now, SchemaChanged("", 1, change))
    asked: list[RelationName] = []
    result = driven(adapted(task), now, asked)
    assert result.extent == evaluated(task.new, narrowed(now, task).__getitem__)
    return result, asked


def driven(process, contents, asked):
    """The process's result, every read answered from these contents."""
    rows = None
    while True:
        try:
            read = process.send(rows)
        except StopIteration as end:
            return end.value
        asked.append(read.name)
        rows = contents[read.name].select(tuple(Output(n, Column(n)) for n in read.schema.names))


def narrowed(contents, task):
    schemas = {o.name: o.schema for t in task.new.all_terms for o in t.occurrences}
    return {
        name: rows.select(tuple(Output(n, Column(n)) for n in schemas[name].names))
        for name, rows in contents.items()
        if name in schemas
    }


@pytest.mark.parametrize("text", [OUTER, GROUPED, DISTINCT, UNION])
def test_any_view_is_recomputed_over_its_replacement(text):
    result, asked = brought_over(sales(text), DropRelation(CUSTOMERS))
    assert result.method is Method.RECOMPUTE
    assert result.reason
    assert PARTY in asked


@pytest.mark.parametrize(
    ("text", "column"),
    [(OUTER, "name"), (GROUPED.replace("c.city, ", "max(c.name) AS m, c.city, "), "m")],
)
def test_a_column_less_asks_nobody(text, column):
    view = sales(text, dispensable=parts(column))
    result, asked = brought_over(view, DropAttribute(CUSTOMERS, "name"), Knowledge())
    assert (result.method, asked) == (Method.KEPT, [])


def test_equal_relations_are_taken_on_trust_only_if_nothing_else_differs():
    trusted = replace(BY_PARTY, trusted=True)
    view = sales(extent=Extent.ANY, dispensable=parts(conditions="c.city"))
    result, asked = brought_over(view, DropRelation(CUSTOMERS), Knowledge((BY_PARTY,)))
    assert (result.method, asked) == (Method.MAP_VA, [PARTY, ORDERS])
    mapping = after(view, DropRelation(CUSTOMERS), Knowledge((trusted,))).mapping
    assert mapping.trusted
    # Without its city the condition on it goes, and other rows come.
    less = replace(trusted, attributes=trusted.attributes[:2])
    text = SALES.replace(", c.city", "").replace("> 2", "> 2 AND c.city = 'Oslo'")
    view = sales(text, extent=Extent.ANY, dispensable=parts(conditions="c.city"))
    result, _ = brought_over(view, DropRelation(CUSTOMERS), Knowledge((less,)))
    assert result.method is Method.MAP_VA


def test_what_is_computed_from_a_wider_value_is_looked_at():
    wider = ChangeType(ORDERS, "qty", INTEGER, decimal_type(20, 0))
    view = sales("SELECT o.o_id, o.qty + 1 AS more, o.qty FROM shop.orders o")
    result, asked = brought_over(view, wider)
    assert (result.method, asked) == (Method.MAP_VA, [ORDERS])
    view = sales("SELECT o.o_id, o.qty / 2 AS half, o.qty FROM shop.orders o")
    result, _ = brought_over(view, wider)  # a double becomes a decimal
    assert result.method is Method.RECOMPUTE
    view = sales("SELECT o.o_id, o.qty FROM shop.orders o")
    result, asked = brought_over(view, wider)
    assert (result.method, asked) == (Method.KEPT, [])


def test_grouped_rows_that_changed_meanwhile_are_recomputed():
    order = Bag.of(SCHEMAS[ORDERS], [(4, 2, 1)])
    view = sales(GROUPED.replace("c.city, ", "max(c.name) AS m, c.city, "), dispensable=parts("m"))
    gone = DropAttribute(CUSTOMERS, "name")
    result, _ = brought_over(view, gone, Knowledge(), {ORDERS: order})
    assert result.method is Method.RECOMPUTE


def test_a_rename_takes_in_what_was_aborted():
    order = Bag.of(SCHEMAS[ORDERS], [(4, 1, 8)])
    change = RenameRelation(CUSTOMERS, "clients")
    found = synchronized(sales(), change, KNOWLEDGE, catalog_after(CATALOG, change))
    task = Task(
        pruned(sales().definition), pruned(found.definition), found.mapping,
        evaluated(sales().definition, CONTENTS.__getitem__), START, LATER,
        lambda occurrence: order if occurrence.name == ORDERS else None,
    )  # fmt: skip
    process = adapted(task)
    read = process.send(None)
    assert str(read.name) == "crm.clients"
    with pytest.raises(StopIteration) as end:
        process.send(CONTENTS[CUSTOMERS])
    assert end.value.value.method is Method.KEPT
    assert end.value.value.extent.count((4, 8, 1, "Ann", "Oslo")) == 1


@pytest.mark.parametrize("text", [OUTER, GROUPED, DISTINCT])
def test_the_management_refuses_what_it_cant_maintain(text):
    view = sales(text)
    extent = evaluated(view.definition, CONTENTS.__getitem__)
    with pytest.raises(UsageError, match="view-not-linear"):
        Management(view, extent, CATALOG, KNOWLEDGE, START)
