"""When Map-VA applies, and when the view says why it must be recomputed."""

from __future__ import annotations

import pytest

from unit.evolution.shop import CATALOG, CUSTOMERS, KNOWLEDGE, SALES, parts, sales
from viewkeeper.evolution.changes import DropAttribute, DropRelation, catalog_after
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.map_va import DELTA, MapVA, NotApplicable, plan
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.synchronization import synchronized


def queries(view, change=DropRelation(CUSTOMERS), knowledge=KNOWLEDGE) -> MapVA:  # noqa: B008
    found = synchronized(view, change, knowledge, catalog_after(CATALOG, change))
    return plan(view.definition, found.definition, found.mapping)


def test_the_rest_of_the_view_joins_what_stands_for_the_lost_relation():
    found = queries(sales())
    assert [o.alias for o in found.carrier.term.occurrences] == [DELTA, "o"]
    assert found.shown == ("cust_id", "name", "city")
    assert [o.alias for o in found.substitute.term.occurrences] == ["c"]


def test_one_attribute_from_a_joined_relation_is_a_substitute_of_two():
    knowledge = Knowledge(KNOWLEDGE.replacements[1:], KNOWLEDGE.joins)
    found = queries(sales(), DropAttribute(CUSTOMERS, "name"), knowledge)
    assert [o.alias for o in found.substitute.term.occurrences] == ["c", "c2"]


def test_a_column_less_needs_no_substitute():
    found = queries(sales(dispensable=parts("city")), DropAttribute(CUSTOMERS, "city"), Knowledge())
    assert found.substitute is None
    assert found.after.names == ("o_id", "qty", "cust_id", "name")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("c.cust_id, c.name", "c.name", "does not show the key of crm.customers"),
        ("c.name,", "concat(c.name, CAST(o.qty AS STRING)) AS name,", "mixes what was replaced"),
        ("SELECT", "SELECT DISTINCT", "removes duplicates"),
        ("WHERE o.qty > 2", "WHERE c.name <> CAST(o.qty AS STRING)", None),
        ("c.name, c.city", "c.city", None),
    ],
)
def test_it_says_why_it_does_not_apply(old, new, reason):
    text = SALES.replace(old, new)
    if reason is None:
        queries(sales(text))
        return
    with pytest.raises(NotApplicable, match=reason):
        queries(sales(text))


def test_a_join_column_must_be_shown():
    text = SALES.replace("c.name, c.city", "c.city").replace("> 2", "> 2 AND c.name <> 'x'")
    queries(sales(text))  # a condition on the lost relation alone need not be
    text = SALES.replace("c.name, c.city", "c.city").replace("> 2", "> length(c.name)")
    with pytest.raises(NotApplicable, match=r"joins on c\.name and does not show it"):
        queries(sales(text))


def test_a_union_and_a_relation_less_are_recomputed():
    union = "SELECT cust_id FROM crm.customers UNION ALL SELECT o_id FROM shop.orders"
    with pytest.raises(NotApplicable, match="which of its terms"):
        queries(sales(union))
    product = "SELECT o.o_id, c.cust_id FROM shop.orders o, crm.customers c"
    view = sales(product, dispensable=parts("cust_id", "c"), extent=Extent.ANY)
    with pytest.raises(NotApplicable, match="taken out of the join"):
        queries(view, DropRelation(CUSTOMERS), Knowledge())


def test_a_relation_less_leaves_its_neighbours_to_be_read_anew():
    view = sales(dispensable=parts("cust_id name city", "c"), extent=Extent.ANY)
    found = queries(view, DropRelation(CUSTOMERS), Knowledge())
    assert [o.alias for o in found.substitute.term.occurrences] == ["o"]
    assert [o.alias for o in found.carrier.term.occurrences] == [DELTA]


def test_distinct_rows_may_fall_together_without_a_column():
    text = "SELECT DISTINCT cust_id, city FROM crm.customers"
    view = sales(text, dispensable=parts("city"))
    with pytest.raises(NotApplicable, match="removes duplicates"):
        queries(view, DropAttribute(CUSTOMERS, "city"), Knowledge())
