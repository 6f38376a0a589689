"""What a PostgreSQL source's log does not tell, under writers: views follow, or stop by name with a way back."""

from __future__ import annotations

import contextlib

import pytest

from live.pipeline.test_rebuild import BackgroundRun, command, rows
from live.pipeline.test_schema_changes_under_writers import audit, settle
from live.pipeline.traffic import InBackground
from viewkeeper.errors import SourceError
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
SELECT o.o_id, o.a, o.b, c.name
FROM shop.orders o JOIN geo.customers c ON o.cust_id = c.cust_id
"""
PEOPLE = "SELECT cust_id, name FROM geo.customers"
PUBLICATION = "ALTER PUBLICATION viewkeeper_shop"


class Orders(InBackground):
    """Orders come and go at PostgreSQL, by the names of columns, whatever else the table is."""

    def __init__(self, shop) -> None:
        super().__init__()
        self._shop = shop
        self.pausing = False

    def _run(self) -> None:
        writer = self._shop.databases["shop"].writer()
        while not self._stop.wait(0.1):
            if self.pausing:
                continue
            number = self.written
            with contextlib.suppress(Exception):  # the table is being renamed
                sql = "INSERT INTO orders (o_id, cust_id, a, b) VALUES (?, ?, ?, ?)"
                writer.run(sql, 10_000 + number, number % 10, number, -number)
                if number % 3 == 0:
                    writer.run("DELETE FROM orders WHERE o_id = ?", number)
                self.written += 1
        writer.close()


@pytest.fixture
def project(shop):
    shop.run(
        "shop",
        "CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust_id BIGINT, a BIGINT, b BIGINT)",
        "INSERT INTO orders SELECT n, n % 10, n, -n FROM generate_series(1, 60) n",
    )
    shop.run("geo", "CREATE TABLE customers (cust_id INTEGER PRIMARY KEY, name TEXT)")
    names = ", ".join(f"({n}, 'customer {n}')" for n in range(10))
    shop.run("geo", f"INSERT INTO customers VALUES {names}")
    shop.write_view("sales", SALES)
    shop.write_view("people", PEOPLE)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    return shop


MIGRATED = """
BEGIN; INSERT INTO orders_new SELECT o_id, cust_id, a + 1, b FROM orders;
ALTER TABLE orders RENAME TO orders_old; ALTER TABLE orders_new RENAME TO orders;
DROP TABLE orders_old; COMMIT
"""
# What is done, all at once, and by what name the source's views stop.
STOPS = (
    ((f"{PUBLICATION} DROP TABLE orders",), "not-published"),
    ((f"{PUBLICATION} SET TABLE orders WHERE (o_id < 5)",), "publication-filtered"),
    ((f"{PUBLICATION} DROP TABLE orders", f"{PUBLICATION} ADD TABLE orders"), "not-published"),
    (
        (
            "CREATE TABLE orders_new (LIKE orders INCLUDING ALL)",
            MIGRATED,
        ),
        "table-replaced",
    ),
)


def test_what_is_missing_from_the_feed_stops_the_sources_views_alone(project, running_spark):
    shop, folder = project, str(project.folder)
    with BackgroundRun(shop.folder) as run, Orders(shop) as orders:
        for number, (statements, code) in enumerate(STOPS):
            run.await_change("sales")
            shop.run("shop", *statements)
            stopped = run.await_event("views_stopped")
            assert (stopped["views"], stopped["error"]["code"]) == (["sales"], code), statements
            way_back = "viewkeeper rebuild --source shop --allow-setup"
            assert way_back in stopped["error"]["hint"]
            shop.run("geo", f"INSERT INTO customers VALUES ({100 + number}, 'new')")
            run.await_change("people")
            code, told = command(
                "rebuild", "--source", "shop", "--allow-setup", "--project", folder
            )
            assert (code, told["views"]) == (0, ["sales"]), told
            run.await_event("rebuilt")
        run.await_change("sales")
        assert orders.written > 0
    assert run.error is None
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(found.is_equal for found in keeper.audit())
    assert len(rows(shop, "sales")) == shop.fetch("shop", "SELECT count(*) FROM orders")[0][0]


def test_a_run_does_not_say_that_it_caught_up_without_the_rows(project, running_spark):
    """Also where nothing comes; and not by what was put back while no run was there."""
    shop = project
    before = rows(shop, "sales")
    shop.run("shop", f"{PUBLICATION} DROP TABLE orders")
    shop.run("shop", "UPDATE orders SET a = 0")
    # As it is, put back by its owner, and found set up by a run that may do that.
    for statements, allowed in (
        ((), False),
        ((f"{PUBLICATION} ADD TABLE orders",), False),
        ((f"{PUBLICATION} DROP TABLE orders",), True),
    ):
        shop.run("shop", *statements)
        with Keeper.open(shop.folder, allow_setup=allowed) as keeper:
            with pytest.raises(SourceError) as caught:
                keeper.run_until_caught_up()
            assert caught.value.code == "not-published"
        assert rows(shop, "sales") == before
    code, told = command(
        "rebuild", "--source", "shop", "--allow-setup", "--project", str(shop.folder)
    )
    assert (code, told["views"]) == (0, ["sales"]), told
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(found.is_equal for found in keeper.audit())


# Changes that no event trigger records. In all of them the columns a and b stand elsewhere afterwards,
# or mean other values, and rows that were taken by their places would fit.
UNTOLD = (
    "ALTER TABLE orders DROP COLUMN a, ADD COLUMN c BIGINT DEFAULT 5, ADD COLUMN a BIGINT DEFAULT 7",
    "ALTER TABLE orders ALTER COLUMN b TYPE BIGINT USING b * 2",
    "ALTER TABLE orders DROP CONSTRAINT orders_pkey",
    "TRUNCATE orders",
    "ALTER TABLE orders RENAME COLUMN c TO d",
)


def without_triggers(shop) -> None:
    shop.run("shop", "DROP EVENT TRIGGER viewkeeper_shop_ddl")
    shop.run("shop", "DROP EVENT TRIGGER viewkeeper_shop_rewrite")


@pytest.mark.parametrize("writes", [True, False], ids=["before rows", "while nobody writes"])
def test_views_follow_what_no_trigger_recorded(project, running_spark, writes):
    shop = project
    without_triggers(shop)
    with (
        Keeper.open(shop.folder) as keeper,
        keeper.pipeline() as pipeline,
        Orders(shop) as orders,
    ):
        orders.pausing = True
        pipeline.load()
        for statement in UNTOLD:
            shop.run("shop", statement)
            orders.pausing = not writes
            settle(pipeline, {"shop": orders} if writes else {})
            assert audit(pipeline, keeper, "sales").is_equal, statement
            if not writes:
                shop.run("shop", "INSERT INTO orders (o_id, cust_id, a, b) VALUES (5000, 1, 1, 1)")
                settle(pipeline, {})
                assert audit(pipeline, keeper, "sales").is_equal, statement
                shop.run("shop", "DELETE FROM orders WHERE o_id = 5000")


def test_views_follow_what_happened_while_no_run_and_no_trigger_was_there(project, running_spark):
    shop = project
    without_triggers(shop)
    shop.run("shop", "ALTER TABLE orders DROP COLUMN cust_id")
    shop.run("shop", "ALTER TABLE orders ADD COLUMN cust_id BIGINT DEFAULT 3")
    shop.run("shop", "INSERT INTO orders VALUES (101, 7, 8, 2)")
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(found.is_equal for found in keeper.audit())
    assert (101, 7, 8, "customer 2") in rows(shop, "sales")


def test_a_view_means_the_table_that_has_the_name(project, running_spark):
    """The owner has prepared the other table: it is in the publication before the names are exchanged."""
    shop = project
    shop.run(
        "shop",
        "CREATE TABLE orders_new (b BIGINT, a BIGINT, cust_id BIGINT, o_id BIGINT PRIMARY KEY)",
        "ALTER TABLE orders_new REPLICA IDENTITY FULL",
        f"{PUBLICATION} ADD TABLE orders_new",
        "INSERT INTO orders_new SELECT b, a + 1000, cust_id, o_id FROM orders WHERE o_id < 40",
    )
    events = []
    with (
        Keeper.open(shop.folder) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
        Orders(shop) as orders,
    ):
        pipeline.load()
        settle(pipeline, {"shop": orders})
        shop.run(
            "shop",
            "BEGIN; ALTER TABLE orders RENAME TO orders_old; "
            "ALTER TABLE orders_new RENAME TO orders; COMMIT",
        )
        settle(pipeline, {"shop": orders})
        assert audit(pipeline, keeper, "sales").is_equal
        (changed,) = [e for e in events if e["event"] == "schema_changed"]
        assert {e["view"]: e["effect"] for e in changed["effects"]}["sales"] == "read anew"
        shop.run("shop", "DROP TABLE orders_old")
        settle(pipeline, {"shop": orders})
        assert audit(pipeline, keeper, "sales").is_equal
    assert min(row[1] for row in rows(shop, "sales") if row[0] < 40) > 1000
