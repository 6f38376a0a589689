"""Columns dropped, types changed and tables renamed on three databases at once with their writers.

Two views are kept: a join, and one with an outer join and a subquery, whose definition no text says.
After each change both are audited; at the end a new run finds them as they became.
"""

from __future__ import annotations

import json
import random
import time

import pytest
from typer.testing import CliRunner

from live.pipeline.traffic import InBackground
from viewkeeper.cli import app
from viewkeeper.errors import SourceError
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
-- dispensable: remark, note, points
SELECT o.o_id, o.remark, c.cust_id, c.points, r.rname, r.note
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""
RICH = """
SELECT c.cust_id, c.name, r.rname
FROM crm.customers c
LEFT JOIN geo.regions r ON c.region_id = r.region_id
WHERE EXISTS (SELECT 1 FROM shop.orders o WHERE o.cust_id = c.cust_id AND o.qty > 3)
"""
# Many keys and few changes: however slow the machine, a batch does not change one row again and again.
ORDERS, CUSTOMERS, REGIONS = 600, 300, 60
TABLES = {
    "shop": ("orders", "o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty INTEGER, remark VARCHAR(20)"),
    "crm": (
        "customers",
        "cust_id BIGINT PRIMARY KEY, name VARCHAR(50), points BIGINT, region_id BIGINT",
    ),
    "geo": ("regions", "region_id INTEGER PRIMARY KEY, rname TEXT, note TEXT"),
}
# What is done where, the new name of the source's table if it gets one, and what `sales` becomes by it.
STEPS = (
    ("geo", "ALTER TABLE regions RENAME TO areas", "areas", "renamed"),
    ("crm", "ALTER TABLE customers MODIFY points DECIMAL(30, 0)", None, "synchronized"),
    ("shop", "ALTER TABLE orders RENAME TO purchases", "purchases", "renamed"),
    ("geo", "ALTER TABLE areas DROP COLUMN note", None, "synchronized"),
    ("crm", "RENAME TABLE customers TO clients", "clients", "renamed"),
    ("shop", "ALTER TABLE purchases DROP COLUMN remark", None, "synchronized"),
    ("crm", "ALTER TABLE clients MODIFY points VARCHAR(40)", None, "read anew"),
)


class Writer(InBackground):
    """Writes to one database, a few rows a second, under the name that its table has just then."""

    def __init__(self, shop, source: str) -> None:
        super().__init__()
        self._shop, self._source = shop, source
        self.table = TABLES[source][0]

    def _run(self) -> None:
        chance = random.Random(self._source)
        writer = self._shop.databases[self._source].writer()
        while not self._stop.wait(0.2):
            try:
                writer.run(*self._statement(chance))
            except Exception:  # the table is being renamed: the next one knows its name
                continue
            self.written += 1
        writer.close()

    def _statement(self, chance: random.Random) -> tuple:
        number, key = self.written, chance.randrange(CUSTOMERS)
        if self._source == "shop" and number % 3:
            sql = f"INSERT INTO {self.table} (o_id, cust_id, qty) VALUES (?, ?, ?)"
            return sql, 1000 + number, key, chance.randrange(6)
        if self._source == "shop":
            return f"DELETE FROM {self.table} WHERE o_id = ?", chance.randrange(ORDERS)
        if self._source == "crm":
            sql = f"UPDATE {self.table} SET name = ?, region_id = ? WHERE cust_id = ?"
            return sql, f"name {number}", chance.randrange(REGIONS + 2), key
        sql = f"UPDATE {self.table} SET rname = ? WHERE region_id = ?"
        return sql, f"region {number}", chance.randrange(REGIONS)


def fill(shop) -> None:
    rows = {
        "shop": [f"({n}, {n % CUSTOMERS}, {n % 5}, 'r{n}')" for n in range(ORDERS)],
        "crm": [f"({n}, 'customer {n}', {n}, {n % (REGIONS + 2)})" for n in range(CUSTOMERS)],
        "geo": [f"({n}, 'region {n}', 'n{n}')" for n in range(REGIONS)],
    }
    for source, (table, columns) in TABLES.items():
        values = ", ".join(rows[source])
        shop.run(
            source, f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES {values}"
        )
    shop.write_view("sales", SALES)
    shop.write_view("rich", RICH)


def go_on(pipeline) -> None:
    try:
        pipeline.cycle(0.05)
    except SourceError as error:
        if not error.retryable:
            raise


def settle(pipeline, writers: dict[str, Writer]) -> None:
    """Let everybody write on for a moment, and all of it arrive."""
    seen = {name: writer.written for name, writer in writers.items()}
    while any(writer.written < seen[name] + 2 for name, writer in writers.items()):
        go_on(pipeline)
    targets = pipeline.committed_now()
    while not pipeline.has_applied(targets):
        go_on(pipeline)


def audit(pipeline, keeper, view: str):
    """Writers may have brought the next change by now: then it is tried again."""
    while True:
        try:
            return audit_view(pipeline, keeper.warehouse(), view)
        except SourceError as error:
            if not error.retryable:
                raise
            go_on(pipeline)


def told(shop, view: str) -> list[dict]:
    """What `viewkeeper history --schema` says of a view, newest first."""
    words = ["history", "--schema", "--limit", "99", "--json", "--project", str(shop.folder)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return [each for each in json.loads(result.stdout)["definitions"] if each["view"] == view]


def test_views_go_on_while_tables_are_renamed_and_columns_change(shop, running_spark):
    fill(shop)
    events = []
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
        Writer(shop, "shop") as orders,
        Writer(shop, "crm") as customers,
        Writer(shop, "geo") as regions,
    ):
        writers = {"shop": orders, "crm": customers, "geo": regions}
        pipeline.load()
        for number, (source, statement, name, effect) in enumerate(STEPS, start=1):
            began = time.monotonic()
            shop.run(source, statement)
            writers[source].table = name or writers[source].table
            settle(pipeline, writers)
            changed = [e for e in events if e["event"] == "schema_changed"]
            assert len(changed) == number, statement
            effects = {each["view"]: each["effect"] for each in changed[-1]["effects"]}
            assert effects["sales"] == effect
            for view in ("sales", "rich"):
                found = audit(pipeline, keeper, view)
                assert found.is_equal, (statement, found)
            version = told(shop, "sales")[0]
            assert version["evolved"]["relation"] == changed[-1]["relation"]
            print(f"{statement}: {time.monotonic() - began:.1f} s")  # noqa: T201
        group = pipeline.group_of("rich")
        assert {r.relation for r in group.scope.relations} == {"purchases", "clients", "areas"}
        names = group.scope.views["sales"].definition.schema.names
        assert names == ("o_id", "cust_id", "points", "rname")
    assert len(told(shop, "sales")) == len(STEPS) + 1

    # Another run, without permission to set anything up, finds both as they became.
    shop.run("geo", "UPDATE areas SET rname = 'the last one' WHERE region_id = 4")
    shop.run("shop", "INSERT INTO purchases (o_id, cust_id, qty) VALUES (9000, 4, 5)")
    with Keeper.open(shop.folder) as keeper:
        assert keeper.run_until_caught_up().transactions >= 2
        assert all(audit.is_equal for audit in keeper.audit())
        for view in ("sales", "rich"):
            rows = keeper.warehouse().read_arrow(view).to_pylist()
            assert "the last one" in {row["rname"] for row in rows}


REWRITES = (
    ("shop", "INSERT INTO orders VALUES (5000, 3, 5, 'x')", "TRUNCATE orders"),
    (
        "shop",
        "INSERT INTO orders VALUES (5001, 4, 1, 'x'), (5002, 5, 4, 'x')",
        "ALTER TABLE orders ALTER COLUMN qty TYPE BIGINT USING qty * 10",
    ),
    (
        "crm",
        "UPDATE customers SET points = 7 WHERE cust_id = 4",
        "ALTER TABLE customers MODIFY points VARCHAR(40)",
    ),
)


def test_what_waits_when_a_table_is_rewritten_is_jumped_over(shop, running_spark):
    """The rows that arrived are not in the table any more as they were: no state is made of both."""
    fill(shop)
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline() as pipeline,
    ):
        pipeline.load()
        for source, written, changed in REWRITES:
            with pipeline.paused():
                writer = shop.databases[source].writer()
                writer.begin()  # in MariaDB the second statement ends it
                writer.run(written)
                writer.run(changed)
                writer.commit()
                writer.close()
            settle(pipeline, {})
            for view in ("sales", "rich"):
                assert audit(pipeline, keeper, view).is_equal, (changed, view)
        warehouse = keeper.warehouse()
        for txn in range(warehouse.latest().oldest_txn, warehouse.latest().last_txn + 1):
            for view in ("sales", "rich"):
                counts = warehouse.read_arrow(view, txn, with_count=True)["_count"].to_pylist()
                assert all(count > 0 for count in counts), (view, txn)


def test_a_row_that_was_committed_before_a_rewrite_shows_with_it_or_before(shop, running_spark):
    """Also a row of another table of that source: the rewritten one can't be read as it was then."""
    shop.run(
        "shop",
        "CREATE TABLE orders (o_id BIGINT PRIMARY KEY, qty INTEGER)",
        "CREATE TABLE notes (o_id BIGINT PRIMARY KEY, note VARCHAR(20))",
        "INSERT INTO orders VALUES (1, 5), (2, 6)",
        "INSERT INTO notes VALUES (1, 'first')",
    )
    shop.write_view(
        "noted", "SELECT o.o_id, o.qty, n.note FROM shop.orders o JOIN shop.notes n USING (o_id)"
    )
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        with pipeline.paused():
            shop.run("shop", "INSERT INTO notes VALUES (2, 'second')")
            shop.run("shop", "ALTER TABLE orders ALTER COLUMN qty TYPE BIGINT USING qty * 10")
        settle(pipeline, {})
        assert audit(pipeline, keeper, "noted").is_equal
        warehouse = keeper.warehouse()
        states = [
            sorted(
                (row["o_id"], row["qty"]) for row in warehouse.read_arrow("noted", txn).to_pylist()
            )
            for txn in range(warehouse.latest().oldest_txn, warehouse.latest().last_txn + 1)
        ]
        assert [(1, 50)] not in states, "the rewritten orders without a note that came before"
        assert states[-1] == [(1, 50), (2, 60)]
