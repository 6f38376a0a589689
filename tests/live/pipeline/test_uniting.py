"""Views that share a relation but stand at different cuts are brought to one, while changes wait."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from live.pipeline.recording import view_states
from viewkeeper.engine.intake import changed_while_uniting
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.project.keeper import Keeper
from viewkeeper.sources.interface import SchemaChange
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# A run that waits for ever is ended by this, and then has not brought in what it should.
PATIENCE_SECONDS = 600.0

SALES = "SELECT o.id, c.name FROM shop.orders o JOIN crm.customers c ON c.id = o.customer"
NAMES = "SELECT c.id, c.name, o.id AS order_id FROM crm.customers c JOIN shop.orders o ON c.id = o.customer"


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        shop.executescript(statement)


def run(folder: Path) -> int:
    stop = threading.Event()
    patience = threading.Timer(PATIENCE_SECONDS, stop.set)
    patience.start()
    try:
        with Keeper.open(folder, allow_setup=True) as keeper:
            return keeper.run(until_caught_up=True, stop=stop).transactions
    finally:
        patience.cancel()


def test_a_view_that_was_added_does_not_stop_the_next_run(tmp_path: Path, running_spark) -> None:
    """The new view stands at another place of PostgreSQL's log than the old one, with nothing between
    that concerns them; both have a change to apply before they can be one group."""
    (tmp_path / "views").mkdir()
    with EmbeddedPostgres() as crm:
        crm.run_script("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        crm.run_script("INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace')")
        change(tmp_path, "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL)")
        (tmp_path / "viewkeeper.toml").write_text(
            f'[sources.shop]\nurl = "sqlite:///shop.db"\n[sources.crm]\nurl = "{crm.url()}"\n'
        )
        (tmp_path / "views" / "sales.sql").write_text(SALES)
        with Keeper.open(tmp_path, allow_setup=True) as keeper:
            for name, relation in (("shop", "orders"), ("crm", "customers")):
                keeper.source(name).setup([relation])
        run(tmp_path)
        crm.run_script("CREATE TABLE other (id INTEGER)")  # moves the log on, and nothing else
        (tmp_path / "views" / "names.sql").write_text(NAMES)
        run(tmp_path)
        change(tmp_path, "INSERT INTO orders VALUES (7, 1), (8, 2)")
        crm.run_script("UPDATE customers SET name = 'Ada L.' WHERE id = 1")
        run(tmp_path)
        with Keeper.open(tmp_path) as keeper:
            found = {tuple(row) for row in keeper.read("sales").collect()}
            assert found == {(7, "Ada L."), (8, "Grace")}
            assert all(audit.is_equal for audit in keeper.audit(None))


def test_a_schema_change_while_views_are_brought_together_makes_the_run_begin_again(
    tmp_path: Path, running_spark, monkeypatch
) -> None:
    (tmp_path / "views").mkdir()
    change(tmp_path, "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER)")
    (tmp_path / "viewkeeper.toml").write_text('[sources.shop]\nurl = "sqlite:///shop.db"\n')
    (tmp_path / "views" / "all.sql").write_text("SELECT id, customer FROM shop.orders")
    run(tmp_path)
    change(tmp_path, "INSERT INTO orders VALUES (7, 1)")
    loading, loads = Pipeline.load, []

    def load(self: Pipeline, *arguments: object, **named: object) -> None:
        loads.append(self)
        if len(loads) == 1:
            raise changed_while_uniting(SchemaChange("shop", {}, "orders", None, None, "", False))
        loading(self, *arguments, **named)

    monkeypatch.setattr(Pipeline, "load", load)
    events: list[dict[str, object]] = []
    with Keeper.open(tmp_path) as keeper:
        assert (
            keeper.run(
                until_caught_up=True, on_event=lambda event: events.append(event.as_dict())
            ).transactions
            == 1
        )
    assert events[0]["event"] == "warning"
    assert len(loads) == 2


# -- no transaction in two states ----------------------------------------------------------------------

LINES = """-- consistency: complete
SELECT o.order_id, o.customer_id, p.title, o.quantity * p.price AS amount
FROM shop.orders o JOIN shop.products p ON o.product_id = p.product_id
"""
BY_CUSTOMER = """-- consistency: complete
SELECT l.order_id, c.name, c.region, l.title, l.amount
FROM lines l JOIN crm.customers c ON c.customer_id = l.customer_id
"""
REGIONS = """-- consistency: complete
SELECT c.region, count(*) AS orders, sum(o.quantity * p.price) AS amount
FROM shop.orders o
JOIN shop.products p ON o.product_id = p.product_id
JOIN crm.customers c ON o.customer_id = c.customer_id
GROUP BY c.region
"""


def states_since(keeper: Keeper, number: int, *views: str) -> list[tuple[set[tuple], ...]]:
    """What the views show together, state after state, as the warehouse numbers its rows."""
    warehouse = keeper.warehouse()
    per_view = [view_states(warehouse, keeper.views[view].definition, number) for view in views]
    return [tuple({row for row, _ in bag} for bag in bags) for bags in zip(*per_view, strict=True)]


def test_the_tutorial_s_views_never_differ(tmp_path: Path, running_spark) -> None:
    """A view was added while the log had moved on by what no view reads: one place, told otherwise."""
    (tmp_path / "views").mkdir()
    with EmbeddedPostgres() as crm:
        crm.run_script(
            "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, region TEXT)"
        )
        crm.run_script("INSERT INTO customers VALUES (1, 'Ada', 'north'), (2, 'Grace', 'south')")
        change(
            tmp_path,
            """
            CREATE TABLE products (product_id INTEGER PRIMARY KEY, title TEXT, price INTEGER);
            CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER, product_id INTEGER,
                quantity INTEGER);
            INSERT INTO products VALUES (1, 'lamp', 40), (2, 'chair', 85), (3, 'desk', 310);
            INSERT INTO orders VALUES (1, 1, 1, 2), (2, 1, 3, 1), (3, 2, 2, 4);
            """,
        )
        (tmp_path / "viewkeeper.toml").write_text(
            f'[sources.shop]\nurl = "sqlite:///shop.db"\n[sources.crm]\nurl = "{crm.url()}"\n'
        )
        (tmp_path / "views" / "lines.sql").write_text(LINES)
        (tmp_path / "views" / "sales.sql").write_text(BY_CUSTOMER)
        run(tmp_path)
        crm.run_script("CREATE TABLE other (id INTEGER)")
        (tmp_path / "views" / "regions.sql").write_text(REGIONS)
        run(tmp_path)
        with Keeper.open(tmp_path) as keeper:
            before = keeper.warehouse().latest().last_txn
        crm.run_script("UPDATE customers SET region = 'west' WHERE name = 'Ada'")
        change(tmp_path, "UPDATE products SET price = 90 WHERE title = 'chair'")
        assert run(tmp_path) == 2
        with Keeper.open(tmp_path) as keeper:
            found = states_since(keeper, before, "sales", "regions")
            assert len(found) == 3
            for sales, regions in found:
                amounts: dict[object, int] = {}
                for _, _, region, _, amount in sales:
                    amounts[region] = amounts.get(region, 0) + amount
                assert amounts == {region: amount for region, _, amount in regions}
            assert all(audit.is_equal for audit in keeper.audit(None))


def put_behind(folder: Path, crm: EmbeddedPostgres) -> int:
    """Two views over one table, of which one rests while the other takes three transactions; the
    number of the last state."""
    (folder / "views").mkdir()
    crm.run_script("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    (folder / "viewkeeper.toml").write_text(f'[sources.crm]\nurl = "{crm.url()}"\n')
    for name in ("ahead", "behind"):
        text = "-- consistency: complete\nSELECT id, name FROM crm.customers"
        (folder / "views" / f"{name}.sql").write_text(text)
    run(folder)
    for number in (1, 2, 3):
        crm.run_script(f"INSERT INTO customers VALUES ({number}, 'early')")
    with Keeper.open(folder) as keeper, keeper.writer() as writer:
        with keeper.pipeline_of(writer, resting={"behind": None}) as pipeline:
            pipeline.load()
            targets = pipeline.committed_now()
            while not pipeline.has_applied(targets):
                pipeline.cycle(0.1)
        return writer.latest.last_txn


def test_a_view_that_is_behind_comes_up_alone_and_then_both_move_together(
    tmp_path: Path, running_spark
) -> None:
    with EmbeddedPostgres() as crm:
        before = put_behind(tmp_path, crm)
        for number in (4, 5, 6):
            crm.run_script(f"INSERT INTO customers VALUES ({number}, 'late')")
        run(tmp_path)
        with Keeper.open(tmp_path) as keeper:
            found = [
                (len(ahead), len(behind))
                for ahead, behind in states_since(keeper, before, "ahead", "behind")
            ]
            assert found == [(3, 0), (3, 1), (3, 2), (3, 3), (4, 4), (5, 5), (6, 6)]
            assert all(audit.is_equal for audit in keeper.audit(None))


def test_a_view_that_is_behind_takes_a_schema_change_on_its_way_to_the_others(
    tmp_path: Path, running_spark
) -> None:
    """The change lies beyond where the others stand, and in the past: the table has another column by
    now, and without it the view can't be computed up to there."""
    events: list[dict[str, object]] = []
    with EmbeddedPostgres() as crm:
        before = put_behind(tmp_path, crm)
        crm.run_script("INSERT INTO customers VALUES (4, 'late')")
        crm.run_script("ALTER TABLE customers RENAME COLUMN name TO title")
        crm.run_script("INSERT INTO customers VALUES (5, 'late')")
        stop = threading.Event()
        patience = threading.Timer(PATIENCE_SECONDS, stop.set)
        patience.start()
        with Keeper.open(tmp_path, allow_setup=True) as keeper:
            keeper.run(
                until_caught_up=True,
                stop=stop,
                on_event=lambda event: events.append(event.as_dict()),
            )
        patience.cancel()
        warned = [event["error"]["code"] for event in events if event["event"] == "warning"]
        assert warned == ["schema-changed-while-uniting"]
        with Keeper.open(tmp_path) as keeper:
            found = [
                (len(ahead), len(behind))
                for ahead, behind in states_since(keeper, before, "ahead", "behind")
            ]
            assert found == [(3, 0), (3, 1), (3, 2), (3, 3), (4, 4), (5, 5)]
            assert all(audit.is_equal for audit in keeper.audit(None))
