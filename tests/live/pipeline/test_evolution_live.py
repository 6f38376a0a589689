"""Schema changes at the sources, under writers: the views go on, and every audit says equal."""

from __future__ import annotations

import os
import random
import time

import pytest

from live.pipeline.traffic import InBackground
from viewkeeper.errors import SourceError, UsageError, ViewkeeperError
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
-- dispensable: phone
-- extent: any
SELECT o.o_id, o.qty, c.cust_id, c.name, c.phone, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""
PER_REGION = """
SELECT r.rname, COUNT(*) AS orders, SUM(o.qty) AS qty
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
GROUP BY r.rname
"""
KNOWLEDGE = """
[[knowledge.replacements]]
relation = "geo.regions"
by = "shop.areas"
containment = "equal"
attributes = { region_id = "area_id", rname = "label" }
"""


def fill(shop) -> None:
    shop.run(
        "shop",
        "CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty INTEGER)",
        "CREATE TABLE areas (area_id BIGINT PRIMARY KEY, label VARCHAR(50))",
        "INSERT INTO orders SELECT n, n % 20, n % 7 FROM generate_series(1, 200) n",
        "INSERT INTO areas SELECT n, 'region ' || n FROM generate_series(0, 4) n",
    )
    customers = ", ".join(f"({n}, 'customer {n}', '{n}{n}', {n % 5})" for n in range(20))
    shop.run(
        "crm",
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50), "
        "phone VARCHAR(20), region_id BIGINT)",
        f"INSERT INTO customers VALUES {customers}",
    )
    shop.run("geo", "CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)")
    shop.run("geo", *(f"INSERT INTO regions VALUES ({n}, 'region {n}')" for n in range(5)))


class Writers(InBackground):
    """Orders come and go while everything else changes its shape. Names are found out each time."""

    def __init__(self, shop) -> None:
        super().__init__()
        self._shop = shop

    def _run(self) -> None:
        rng = random.Random(5)
        orders = self._shop.databases["shop"].writer()
        while not self._stop.wait(0.05):
            self.written += 1
            columns = [
                row[0]
                for row in orders.fetch(
                    "SELECT column_name FROM information_schema.columns "
                    "WHERE table_name = 'orders' ORDER BY ordinal_position"
                )
            ]
            values = (1000 + self.written, rng.randrange(20), rng.randrange(9))
            try:
                orders.run(
                    f"INSERT INTO orders ({', '.join(columns[:3])}) VALUES (?, ?, ?)", *values
                )
                if self.written % 3 == 0:
                    orders.run("DELETE FROM orders WHERE o_id = ?", rng.randrange(1, 200))
            except Exception:  # the table was renamed under it: the next one knows
                continue
        orders.close()


STEPS = (
    ("rename a column", "shop", "ALTER TABLE orders RENAME COLUMN qty TO quantity"),
    ("widen a type", "shop", "ALTER TABLE orders ALTER COLUMN quantity TYPE BIGINT"),
    (
        "widen it to decimals",
        "shop",
        "ALTER TABLE orders ALTER COLUMN quantity TYPE NUMERIC(25, 2)",
    ),
    ("add a column", "crm", "ALTER TABLE customers ADD COLUMN email VARCHAR(50)"),
    # Of the type of the next one: rows that are taken by place alone would fit, and be wrong.
    (
        "add a column among others",
        "crm",
        "ALTER TABLE customers ADD COLUMN nick VARCHAR(50) AFTER cust_id",
    ),
    ("move a column", "crm", "ALTER TABLE customers MODIFY phone VARCHAR(20) AFTER cust_id"),
    ("rename a column", "crm", "ALTER TABLE customers RENAME COLUMN name TO full_name"),
    ("rename a table", "crm", "RENAME TABLE customers TO clients"),
    ("drop a dispensable column", "crm", "ALTER TABLE clients DROP COLUMN phone"),
    ("rename a column", "geo", "ALTER TABLE regions RENAME COLUMN rname TO title"),
    ("add a column", "geo", "ALTER TABLE regions ADD COLUMN code TEXT"),
    ("drop a table that can be replaced", "geo", "DROP TABLE regions"),
)


def test_views_live_on_through_schema_changes_on_three_databases(shop, running_spark):
    fill(shop)
    shop.write_view("sales", SALES)
    shop.write_view("per_region", PER_REGION)
    file = shop.folder / "viewkeeper.toml"
    file.write_text(file.read_text() + KNOWLEDGE)
    events = []
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
        Writers(shop) as writers,
    ):
        pipeline.load()
        customers = "customers"
        for number, (what, source, statement) in enumerate(STEPS):
            shop.run(source, statement)
            customers = "clients" if statement.endswith("TO clients") else customers
            moved = f"SET region_id = (region_id + 1) % 5 WHERE cust_id % 7 = {number % 7}"
            shop.run("crm", f"UPDATE {customers} {moved}")
            seen = writers.written
            while writers.written < seen + 10:
                pipeline.cycle(0.1)
            targets = pipeline.committed_now()
            while not pipeline.has_applied(targets):
                pipeline.cycle(0.1)
            warehouse = keeper.warehouse()
            for view in ("sales", "per_region"):
                audit = audit_view(pipeline, warehouse, view)
                assert audit.is_equal, (what, audit)
        changed = [e for e in events if e["event"] == "schema_changed"]
        assert len(changed) == len(STEPS)
        group = pipeline.group_of("sales")
        assert group.scope.views["sales"].definition.schema.names == (
                "o_id", "qty", "cust_id", "name", "rname",
            )  # fmt: skip
        assert {r.relation for r in group.scope.relations} == {"orders", "clients", "areas"}
    # A restart finds the views as they became, though their files still say what was.
    shop.run("shop", "UPDATE areas SET label = 'the last one' WHERE area_id = 4")
    with Keeper.open(shop.folder) as keeper:
        assert keeper.run_until_caught_up().transactions > 0
        assert all(audit.is_equal for audit in keeper.audit())
        rows = keeper.warehouse().read_arrow("sales").to_pylist()
        assert "the last one" in {row["rname"] for row in rows}
        entries = keeper.warehouse().history()
        stories = [
            e.views["sales"].definition.evolved["effect"]
            for e in entries
            if "sales" in e.views and e.views["sales"].definition.evolved
        ]
        assert "synchronized" in stories


def test_a_view_that_cannot_be_saved_is_retired_and_stays_readable(shop, running_spark):
    fill(shop)
    shop.write_view("sales", SALES)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        before = keeper.warehouse().read_arrow("sales").num_rows
        shop.run("geo", "DROP TABLE regions")
        events = []
        with keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline:
            pipeline.load()
            while not events:
                pipeline.cycle(0.1)
            with pytest.raises(UsageError) as caught:
                audit_view(pipeline, keeper.warehouse(), "sales")
            assert caught.value.code == "view-not-kept"
    assert events[0]["effects"][0]["effect"] == "retired"
    shop.write_view("big", "SELECT o_id FROM shop.orders WHERE qty > 3")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        assert keeper.warehouse().read_arrow("sales").num_rows == before
        assert set(keeper.views) == {"big"}
    # Another table by that name: what the retired view knew of the old one counts no more.
    shop.run("geo", "CREATE TABLE regions (label TEXT, rname TEXT)")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.source("geo").setup(["regions"])
        (regions,) = (r for r in keeper.evolution.catalog.relations if r.name.relation == "regions")
        assert regions.schema.names == ("label", "rname")


def test_a_change_waits_for_approval_and_goes_on_when_it_has_it(shop, running_spark):
    fill(shop)
    shop.write_view("sales", "-- evolve: approve\n" + SALES)
    events = []
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        shop.run("crm", "ALTER TABLE customers DROP COLUMN phone")
        with pytest.raises(ViewkeeperError) as caught:
            keeper.run_until_caught_up()  # it can't, and does not wait for ever
        assert caught.value.code == "waits-for-approval"
        with keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline:
            pipeline.load()
            while not events:
                pipeline.cycle(0.1)
            assert (events[0]["event"], events[0]["status"]) == ("schema_waits", "pending")
            decisions = shop.folder / ".viewkeeper" / "decisions.json"
            decisions.write_text(f'{{"{events[0]["id"]}": {{"decision": "approve"}}}}')
            while len(events) < 3:
                pipeline.cycle(0.1)
            assert [e["event"] for e in events[1:]] == ["schema_changed", "evolved"]
            # Without the column, from the old rows alone: nothing was asked of anybody.
            assert events[2]["rows_read"] == 0
            assert audit_view(pipeline, keeper.warehouse(), "sales").is_equal


class Storm:
    """A schema change every 200 ms, now here, now there; every statement is possible when it comes."""

    def __init__(self, shop, seed: int) -> None:
        self._shop, self._rng = shop, random.Random(seed)
        self.names = {"shop": "orders", "crm": "customers", "geo": "regions"}
        self._columns = {"shop": "qty", "crm": "name", "geo": "rname"}
        self._added: dict[str, list[str]] = {"shop": [], "crm": [], "geo": []}
        self.count = 0

    def strike(self) -> None:
        self.count += 1
        source = self._rng.choice(("shop", "crm", "geo"))
        table, column = self.names[source], self._columns[source]
        kind = self._rng.random()
        if kind < 0.5:
            self._columns[source] = f"c{self.count}"
            statement = f"ALTER TABLE {table} RENAME COLUMN {column} TO c{self.count}"
        elif kind < 0.7 or (kind < 0.85 and not self._added[source]):
            self._added[source].append(f"extra{self.count}")
            statement = f"ALTER TABLE {table} ADD COLUMN extra{self.count} INTEGER"
        elif kind < 0.85 and source != "geo":
            statement = f"ALTER TABLE {table} DROP COLUMN {self._added[source].pop()}"
        elif source == "crm":
            self.names[source] = f"t{self.count}"
            statement = f"ALTER TABLE {table} RENAME TO t{self.count}"
        else:
            return
        self._shop.run(source, statement)


# However few there is time for on a machine that is busy.
STRIKES_MIN = 12


def test_a_storm_of_schema_changes_ends_consistent(shop, running_spark):
    seconds = float(os.environ.get("VIEWKEEPER_STORM_SECONDS", "5"))
    fill(shop)
    shop.write_view("sales", SALES)
    shop.write_view("per_region", PER_REGION)
    events = []
    storm = Storm(shop, seed=3)
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
        Writers(shop),
    ):
        pipeline.load()
        end = time.monotonic() + seconds
        while time.monotonic() < end or storm.count < STRIKES_MIN:
            struck = time.monotonic()
            storm.strike()
            while time.monotonic() < struck + 0.2:
                go_on(pipeline)
        targets = pipeline.committed_now()
        while not pipeline.has_applied(targets):
            go_on(pipeline)
        changed = [event for event in events if event["event"] == "schema_changed"]
        effects = {effect["effect"] for event in changed for effect in event["effects"]}
        assert "renamed" in effects
        # Every name was taken on, up to the last one; SQLite tells of several changes at once.
        assert "retired" not in effects
        for view in ("sales", "per_region"):
            audit = audit_view(pipeline, keeper.warehouse(), view)
            assert audit.is_equal, audit
        read = pipeline.group_of("sales").scope.relations
        assert {name.source: name.relation for name in read} == storm.names
    print(f"{storm.count} changes, {len(changed)} taken, all views equal")  # noqa: T201


def go_on(pipeline) -> None:
    """The next epoch; what passes by itself is waited for."""
    try:
        pipeline.cycle(0.05)
    except SourceError as error:
        if not error.retryable:
            raise
