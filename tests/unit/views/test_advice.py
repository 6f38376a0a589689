"""What asking and keeping cost, and which of the two measured traffic speaks for."""

from dataclasses import replace

import pytest

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.advice import COPY_BYTES_MAX, Traffic, advised, choices
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

ORDERS, CUSTOMERS, REGIONS = (
    RelationName("shop", "orders"),
    RelationName("crm", "customers"),
    RelationName("geo", "regions"),
)
CATALOG = Catalog(
    (
        CatalogRelation(ORDERS, Schema.of(id=INTEGER, customer=INTEGER, note=STRING)),
        CatalogRelation(CUSTOMERS, Schema.of(id=INTEGER, name=STRING, region=INTEGER)),
        CatalogRelation(REGIONS, Schema.of(id=INTEGER, city=STRING)),
    )
)
SALES = (
    "SELECT o.id, c.name, r.city FROM shop.orders o JOIN crm.customers c ON o.customer = c.id "
    "JOIN geo.regions r ON c.region = r.id"
)


def costs(sql: str = SALES, **sizes: int):
    known = {
        name: sizes[name.relation]
        for name in (ORDERS, CUSTOMERS, REGIONS)
        if name.relation in sizes
    }
    return {each.relation: each for each in choices(parse_view("v", sql, CATALOG), known)}


def test_questions_are_counted_by_what_changes_and_bytes_by_what_is_read():
    found = costs(customers=10)
    assert found[CUSTOMERS].questions == {ORDERS: 1, REGIONS: 1}
    assert found[ORDERS].questions == {CUSTOMERS: 1, REGIONS: 1}
    assert (found[CUSTOMERS].row_bytes, found[CUSTOMERS].copy_bytes) == (8 + 24 + 8, 400)
    # The note of an order is not read.
    assert (found[ORDERS].row_bytes, found[ORDERS].copy_bytes) == (16, None)
    assert not any(each.is_whole or each.is_kept for each in found.values())


def test_a_whole_relation_is_told_apart_and_so_is_one_that_is_kept():
    found = costs("-- keep: geo.regions\nSELECT o.id, r.city FROM shop.orders o, geo.regions r")
    assert [each.is_whole for each in found.values()] == [True, True]
    assert [name for name, each in found.items() if each.is_kept] == [REGIONS]


def test_a_view_over_one_relation_has_no_choice():
    assert costs("SELECT id FROM shop.orders") == {}


BUSY = Traffic(queries=50, keys=60, rows=120, bytes=5_000, changed=7)


@pytest.mark.parametrize(
    ("traffic", "rows", "keep", "words"),
    [
        (BUSY, 100, True, "1.2 times"),
        (BUSY, 0, True, "120.0 times"),
        (Traffic(changed=4), 100, False, "not asked for yet"),
        (replace(BUSY, queries=9), 100, False, "may be chance"),
        (BUSY, None, False, "does not say how large"),
        (BUSY, COPY_BYTES_MAX // 40 + 1, False, "256 MiB"),
        (replace(BUSY, changed=121), 100, False, "written at every change"),
        (BUSY, 121, False, "fewer rows were fetched"),
    ],
)
def test_every_rule_says_so(traffic, rows, keep, words):
    about = replace(costs()[CUSTOMERS], rows=rows)
    advice = advised(about, traffic)
    assert advice.keep is keep
    assert words in advice.reason


def test_what_is_kept_stays_kept():
    about = replace(costs(customers=10)[CUSTOMERS], is_kept=True)
    assert advised(about, Traffic()).keep
