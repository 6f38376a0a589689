"""What is kept beside a view, as its text decides it, and why some views can't be kept from changes."""

import pytest

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.kept_relations import KeptRelation
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep
from viewkeeper.warehouse.columns import owner_of, store_name

MONEY = decimal_type(9, 2)
ORDERS, SHOPS = RelationName("shop", "orders"), RelationName("geo", "shops")
ORDERS_SCHEMA = Schema.of(id=INTEGER, shop=INTEGER, amount=MONEY, weight=DOUBLE)
SHOPS_SCHEMA = Schema.of(id=INTEGER, city=STRING)
CATALOG = Catalog(
    (
        CatalogRelation(ORDERS, ORDERS_SCHEMA, ("id",)),
        CatalogRelation(SHOPS, SHOPS_SCHEMA, ("id",)),
    )
)


def upkeep_of(sql: str) -> Upkeep:
    return Upkeep(parse_view("v", sql, CATALOG))


def kept(sql: str) -> dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]]:
    return {s.name: (s.schema.names, s.lookups, s.holds) for s in upkeep_of(sql).stores}


def test_a_linear_view_keeps_nothing():
    sql = "SELECT o.id FROM shop.orders o JOIN geo.shops s ON o.shop = s.id"
    assert upkeep_of(f"{sql} UNION ALL {sql}").stores == ()


def test_sums_and_counts_keep_one_accumulator_for_each_group():
    found = kept("SELECT shop, SUM(amount) AS total, COUNT(*) AS n FROM shop.orders GROUP BY shop")
    ((names, lookups, holds),) = found.values()
    assert names == ("k0", "rows", "present0", "total0")
    assert lookups == (("k0",),)
    assert holds.startswith("one accumulator for each shop: ")


def test_a_minimum_keeps_the_values_and_says_why():
    found = kept("SELECT MIN(amount) AS least FROM shop.orders")
    assert [names for names, _, _ in found.values()] == [("rows", "present0", "least0"), ("value",)]
    *_, (_, lookups, holds) = found.values()
    assert lookups == ((),)
    assert holds.startswith("every value of ")
    assert holds.endswith("amount by group, for MIN")


def test_a_distinct_count_looks_values_up_one_by_one():
    found = kept("SELECT shop, COUNT(DISTINCT amount) AS n FROM shop.orders GROUP BY shop")
    *_, (_, lookups, holds) = found.values()
    assert lookups == (("k0", "value"),)
    assert holds.endswith("for DISTINCT")


def test_distinct_keeps_each_row_once():
    found = kept("SELECT DISTINCT city FROM geo.shops")
    assert [holds for _, _, holds in found.values()] == ["each row once, and how often it is there"]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT SUM(weight) AS w FROM shop.orders", ["sum"]),
        ("SELECT AVG(weight) AS w, MAX(weight) AS h FROM shop.orders", ["avg"]),
        ("SELECT SUM(CAST(amount AS decimal(12, 2))) AS w FROM shop.orders", []),
        ("SELECT AVG(id) AS w FROM shop.orders", []),
        # The way out that the reason names.
        ("SELECT SUM(CAST(weight AS decimal(12, 2))) AS w FROM shop.orders", []),
    ],
)
def test_sums_of_doubles_can_not_be_kept_and_the_reason_is_told(sql, names):
    obstacles = upkeep_of(sql).obstacles
    assert [reason.split("(")[0].lower() for reason in obstacles] == names
    assert all("CAST" in reason for reason in obstacles)


JOINED = "SELECT o.amount, s.city FROM shop.orders o JOIN geo.shops s ON o.shop = s.id"


def test_a_relation_that_the_view_keeps_is_a_store_of_the_columns_it_uses():
    upkeep = Upkeep(pruned(parse_view("v", f"-- keep: shop.orders\n{JOINED}", CATALOG)))
    (store,) = upkeep.stores
    assert (store.name, store.lookups) == ("keep.shop.orders", (("shop",),))
    assert store.schema.names == ("shop", "amount")
    assert "shop.orders" in store.holds
    orders = Bag.of(ORDERS_SCHEMA, [(1, 7, None, None), (2, 7, None, None)])
    shops = Bag.of(SHOPS_SCHEMA, [(7, "Ulm")])
    found = upkeep.initial({ORDERS: narrow(orders, store.schema), SHOPS: shops}.__getitem__)
    assert found.stores == {store.name: Bag.of(store.schema, [(7, None), (7, None)])}


def narrow(rows: Bag, schema: Schema) -> Bag:
    return rows.select(tuple(Output(name, Column(name)) for name in schema.names))


def test_what_nothing_is_joined_with_is_not_kept():
    assert upkeep_of("-- keep: geo.shops\nSELECT id, city FROM geo.shops").stores == ()


def test_a_copy_has_a_name_that_can_be_a_folder():
    names = [RelationName("s", name) for name in ("a_b", "a b", "a-b", "x.a")]
    stores = [KeptRelation(name, SHOPS_SCHEMA).store for name in names]
    assert stores == ["keep.s.a_b", "keep.s.a..20.b", "keep.s.a..2d.b", "keep.s.x.a"]
    assert all(owner_of(store_name("v", store)) == "v" for store in stores)


def test_view_and_stores_come_from_whole_relations():
    upkeep = upkeep_of(
        "SELECT shop, MAX(amount) AS most FROM shop.orders GROUP BY shop HAVING COUNT(*) > 1"
    )
    orders = Bag.of(ORDERS_SCHEMA, [(1, 7, None, None), (2, 7, None, None), (3, None, None, None)])
    found = upkeep.initial({ORDERS: orders}.__getitem__)
    assert found.view == Bag.of(upkeep.definition.schema, [(7, None)])
    assert list(found.stores) == [store.name for store in upkeep.stores]
    for store in upkeep.stores:
        assert found.stores[store.name].schema == store.schema
    groups = found.stores["t0.groups"]
    assert groups.sorted() == [((None, 1, 0, None), 1), ((7, 2, 0, None), 1)]


def test_what_view_and_stores_are_computed_from_is_handed_out_to_be_computed_once():
    upkeep = upkeep_of("SELECT shop, MAX(amount) AS most FROM shop.orders GROUP BY shop")
    handed: list[Bag] = []

    def shared(rows: Bag) -> Bag:
        handed.append(rows)
        return rows

    orders = Bag.of(ORDERS_SCHEMA, [(1, 7, None, None), (2, 7, None, None)])
    upkeep.initial({ORDERS: orders}.__getitem__, shared)
    assert handed == [Bag.of(Schema.of(k0=INTEGER, a0=MONEY), [(7, None), (7, None)])]
