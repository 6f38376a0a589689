"""Another primary key, duplicates of the old one, then all rows gone: on both servers, under writers.

The view shows every relation's key, so a relation that lost its rows is taken out of it by that key:
which must be the one that the relation has, not the one that it had.
"""

from __future__ import annotations

import pytest

from live.pipeline.test_schema_changes_under_writers import audit, settle
from live.pipeline.traffic import InBackground
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
SELECT o.o_id, o.qty, c.cust_id, c.name
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
"""
KEYED = """
-- protocol: c-strobe
-- consistency: complete
SELECT o.o_id, o.qty, c.cust_id, c.name
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
"""
COLUMNS = {
    "shop": ("orders", "o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty BIGINT"),
    "crm": ("customers", "cust_id BIGINT PRIMARY KEY, name VARCHAR(50)"),
}
# At each source: another key, rows that only differ in what no view reads, and an end to all rows.
ANOTHER_KEY = {
    "shop": "ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD COLUMN line BIGINT DEFAULT 0, "
    "ADD PRIMARY KEY (o_id, line)",
    "crm": "ALTER TABLE customers ADD COLUMN line BIGINT DEFAULT 0, DROP PRIMARY KEY, "
    "ADD PRIMARY KEY (cust_id, line)",
}
COPIES = {
    "shop": "INSERT INTO orders (o_id, cust_id, qty, line) "
    "SELECT o_id, cust_id, qty, 1 FROM orders WHERE line = 0 AND o_id < 20",
    # The orders that the truncated table has by then are of the writer.
    "crm": "INSERT INTO customers (cust_id, name, line) "
    "SELECT cust_id, name, 1 FROM customers WHERE line = 0 AND cust_id < 5",
}


class Orders(InBackground):
    """An order now and then, at PostgreSQL, whatever the table's key is."""

    def __init__(self, shop) -> None:
        super().__init__()
        self._shop = shop

    def _run(self) -> None:
        writer = self._shop.databases["shop"].writer()
        while not self._stop.wait(0.1):
            sql = "INSERT INTO orders (o_id, cust_id, qty) VALUES (?, ?, ?)"
            writer.run(sql, 1000 + self.written, self.written % 10, self.written % 4)
            self.written += 1
        writer.close()


def fill(shop) -> None:
    for source, (table, columns) in COLUMNS.items():
        shop.run(source, f"CREATE TABLE {table} ({columns})")
    orders = ", ".join(f"({n}, {n % 10}, {n % 3})" for n in range(60))
    customers = ", ".join(f"({n}, 'customer {n}')" for n in range(10))
    shop.run("shop", f"INSERT INTO orders VALUES {orders}")
    shop.run("crm", f"INSERT INTO customers VALUES {customers}")
    shop.write_view("sales", SALES)
    shop.write_view("keyed", KEYED)


def test_an_old_key_is_not_believed(shop, running_spark):
    fill(shop)
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline() as pipeline,
        Orders(shop) as orders,
    ):
        pipeline.load()
        group = pipeline.group_of("keyed")
        assert group.scope.views["keyed"].choice.protocol == "c-strobe"
        for source, table in (("shop", "orders"), ("crm", "customers")):
            for statement in (ANOTHER_KEY[source], COPIES[source], f"TRUNCATE TABLE {table}"):
                shop.run(source, statement)
                settle(pipeline, {"shop": orders})
                for view in ("sales", "keyed"):
                    assert audit(pipeline, keeper, view).is_equal, (statement, view)
        assert pipeline.group_of("keyed").scope.views["keyed"].choice.protocol != "c-strobe"
    # A new run, without permission, finds the view kept by a protocol that needs no keys.
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(found.is_equal for found in keeper.audit())
        assert keeper.views["keyed"].choice.protocol != "c-strobe"
