"""Columns that get other types on PostgreSQL and MariaDB, under writers: every view follows.

Also a column that goes from the left side of a LEFT JOIN, and a view whose text does not fit a type: it
stops at its last state, by name, and a rebuild brings it back.
"""

from __future__ import annotations

import random

import pytest

from live.pipeline.test_schema_changes_under_writers import audit, settle
from live.pipeline.traffic import InBackground
from viewkeeper.errors import UsageError
from viewkeeper.project.keeper import Keeper
from viewkeeper.project.requests import REBUILD, Request
from viewkeeper.run_events import RunEvent

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = {
    "outer_join": """
-- dispensable: remark
SELECT o.o_id, o.price, o.code, o.day, o.weight, o.remark, c.name, c.points, c.grade, c.since
FROM shop.orders o LEFT JOIN crm.customers c ON o.cust_id = c.cust_id
""",
    "joined": """
SELECT o.o_id, o.price, o.code, c.points, c.grade, c.since
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
""",
    "per_code": "SELECT code, COUNT(*) AS n, MAX(price) AS most FROM shop.orders GROUP BY code",
}
FEW = "SELECT o_id, size FROM shop.orders WHERE size > 3"
UNFIT = "ALTER TABLE orders ALTER size TYPE text"
# Where, what, and the column and type that `outer_join` has afterwards.
STEPS = (
    ("shop", "ALTER TABLE orders ALTER price TYPE numeric(8, 2)", ("price", "decimal(8,2)")),
    ("crm", "ALTER TABLE customers MODIFY points DECIMAL(8, 2)", ("points", "decimal(8,2)")),
    ("shop", "ALTER TABLE orders ALTER day TYPE timestamp", ("day", "timestamp_ntz")),
    ("crm", "ALTER TABLE customers MODIFY grade VARCHAR(20)", ("grade", "string")),
    ("crm", "ALTER TABLE customers MODIFY since DATETIME(6)", ("since", "timestamp_ntz")),
    ("shop", "ALTER TABLE orders ALTER price TYPE double precision", ("price", "double")),
    ("shop", "ALTER TABLE orders ALTER weight TYPE numeric(12, 3)", ("weight", "decimal(12,3)")),
    ("crm", "ALTER TABLE customers MODIFY points DOUBLE", ("points", "double")),
    ("crm", "ALTER TABLE customers MODIFY grade BIGINT", ("grade", "bigint")),
    ("shop", "ALTER TABLE orders DROP COLUMN remark", ("remark", None)),
    ("shop", "ALTER TABLE orders ALTER code TYPE bigint USING code::bigint", ("code", "bigint")),
    ("shop", "ALTER TABLE orders ALTER code TYPE text", ("code", "string")),
    ("shop", UNFIT, ("code", "string")),
    ("shop", "ALTER TABLE orders ALTER size TYPE bigint USING size::bigint", ("code", "string")),
)
ORDERS, CUSTOMERS = 120, 40


class Writer(InBackground):
    """Writes to one database, a few rows a second; what it writes fits every type on the way."""

    def __init__(self, shop, source: str) -> None:
        super().__init__()
        self._shop, self._source = shop, source

    def _run(self) -> None:
        chance = random.Random(self._source)
        writer = self._shop.databases[self._source].writer()
        while not self._stop.wait(0.2):
            number = self.written
            if self._source == "crm":
                sql = "UPDATE customers SET name = ? WHERE cust_id = ?"
                values: tuple = (f"name {number}", chance.randrange(CUSTOMERS))
            elif number % 3:
                sql = "INSERT INTO orders (o_id, cust_id, price, weight) VALUES (?, ?, 2.5, 1.5)"
                values = 1000 + number, chance.randrange(CUSTOMERS + 5)
            else:
                sql, values = "DELETE FROM orders WHERE o_id = ?", (chance.randrange(ORDERS),)
            writer.run(sql, *values)
            self.written += 1
        writer.close()


def fill(shop) -> None:
    orders = (
        f"({n}, {n % (CUSTOMERS + 5)}, {n}.25, '{n % 4}', '2026-01-{n % 28 + 1:02}', {n}.5, 'r{n}', "
        f"{n % 9})"
        for n in range(ORDERS)
    )
    shop.run(
        "shop",
        "CREATE TABLE orders (o_id bigint PRIMARY KEY, cust_id bigint, price numeric(10, 2), "
        "code text, day date, weight double precision, remark text, size bigint)",
        f"INSERT INTO orders VALUES {', '.join(orders)}",
    )
    customers = (f"({n}, 'c{n}', {n}.75, {n % 3}, '2025-02-03')" for n in range(CUSTOMERS))
    shop.run(
        "crm",
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50), "
        "points DECIMAL(10, 2), grade BIGINT, since DATE)",
        f"INSERT INTO customers VALUES {', '.join(customers)}",
    )
    for name, text in (VIEWS | {"few": FEW}).items():
        shop.write_view(name, text)


def test_views_follow_types_and_stop_by_name_where_their_text_does_not_fit(shop, running_spark):
    fill(shop)
    events: list[dict] = []
    with Keeper.open(shop.folder, allow_setup=True) as keeper:

        def on_event(told: RunEvent) -> None:
            event = told.as_dict()
            events.append(event)
            if event["event"] == "schema_changed":
                # It says "applied": then the rows are there, and the ledger says why.
                views = keeper.warehouse(with_spark=False).latest().shown_views
                for effect in event["effects"]:
                    story = views[effect["view"]].definition.evolved
                    assert story["relation"] == event["relation"], effect
                    assert (event["status"], story["statement"]) == ("applied", event["statement"])

        with (
            keeper.pipeline(on_event) as pipeline,
            Writer(shop, "shop") as orders,
            Writer(shop, "crm") as customers,
        ):
            writers = {"shop": orders, "crm": customers}
            pipeline.load()
            for number, (source, statement, (column, type)) in enumerate(STEPS, start=1):
                shop.run(source, statement)
                settle(pipeline, writers)
                changed = [event for event in events if event["event"] == "schema_changed"]
                assert len(changed) == number, statement
                effects = {each["view"]: each["effect"] for each in changed[-1]["effects"]}
                stopped = {v for v, e in effects.items() if e in ("retired", "stopped")}
                assert stopped == ({"few"} if statement == UNFIT else set()), effects
                named = [e["error"]["code"] for e in events if e["event"] == "views_stopped"]
                assert named == (["view-does-not-fit"] if number >= len(STEPS) - 1 else [])
                for view in VIEWS:
                    assert audit(pipeline, keeper, view).is_equal, (statement, view)
                schema = pipeline.group_of("outer_join").scope.views["outer_join"].definition.schema
                found = str(schema.type_of(column)) if column in schema else None
                assert found == type, statement
        ended = keeper.warehouse(with_spark=False).latest().shown_views["few"].definition.evolved
        assert ended["effect"] == "stopped"
        assert "does not fit the view: go on with string" in ended["reason"]
    # The column is a number again: the view comes back when it is asked for, and not before.
    with Keeper.open(shop.folder) as keeper:
        assert sorted(keeper.views) == sorted(VIEWS)
        assert list(keeper.ended_views) == ["few"]
        keeper.rebuild(Request(REBUILD, ("few",)))
        assert sorted(keeper.views) == sorted([*VIEWS, "few"])
        shop.run("shop", "INSERT INTO orders (o_id, cust_id, size) VALUES (9000, 1, 9)")
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        rows = keeper.warehouse().read_arrow("few").to_pylist()
        assert {"o_id": 9000, "size": 9} in rows


def test_a_view_that_no_longer_fits_is_refused_by_name_and_stays_as_it_was(shop, running_spark):
    fill(shop)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        before = keeper.warehouse().read_arrow("few").num_rows
        shop.run("shop", UNFIT, "INSERT INTO orders (o_id, cust_id) VALUES (9000, 1)")
        with pytest.raises(UsageError) as caught:
            keeper.run_until_caught_up()  # the others have: the run says which one has not
        assert caught.value.code == "view-does-not-fit"
        assert 9000 in keeper.warehouse().read_arrow("joined")["o_id"].to_pylist()
        assert list(keeper.ended_views) == ["few"]
        with pytest.raises(UsageError) as caught:
            keeper.rebuild(Request(REBUILD, ("few",)))
        assert caught.value.code == "type-mismatch"
        assert keeper.warehouse().read_arrow("few").num_rows == before
        shop.write_view("few", FEW.replace("3", "'3'"))
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
