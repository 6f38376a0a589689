"""A whole run beside intruders: what a role sends that may only connect changes, stops and delays nothing.

And what clients write beside a schema change stays with them: it is in no file, no event, no answer.
"""

from __future__ import annotations

import json

import psycopg
import pytest

from live.pipeline.recording import view_states
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEW = """
SELECT o.id, o.name, o.size, c.grade, p.zone FROM shop.orders o
JOIN crm.customers c ON o.id = c.id JOIN geo.places p ON o.id = p.id
"""
SECRET = "hunter2-7f3a"


@pytest.fixture
def project(shop):
    shop.run("shop", "CREATE TABLE orders (id BIGINT PRIMARY KEY, name TEXT, size TEXT)")
    shop.run("crm", "CREATE TABLE customers (id BIGINT PRIMARY KEY, grade BIGINT)")
    shop.run("geo", "CREATE TABLE places (id INTEGER PRIMARY KEY, zone TEXT)")
    shop.run("shop", "INSERT INTO orders VALUES (1, 'a name', 'a size')")
    shop.run("crm", "INSERT INTO customers VALUES (1, 7), (2, 7)")
    shop.run("geo", "INSERT INTO places VALUES (1, 'north'), (2, 'south')")
    shop.write_view("all_of_it", VIEW)
    # A false tie that was heeded would hold everything back for an hour.
    file = shop.folder / "viewkeeper.toml"
    file.write_text(file.read_text() + "\n[transactions]\ntimeout_seconds = 3600\n")
    return shop


def go_on(pipeline) -> None:
    targets = pipeline.committed_now()
    while not pipeline.has_applied(targets):
        pipeline.cycle(0.1)


def last_state(keeper, pipeline) -> set[tuple]:
    states = view_states(keeper.warehouse(), pipeline.views["all_of_it"].definition)
    return {row for row, _ in states[-1]}


def test_a_forged_rename_a_forged_drop_and_a_forged_tie_come_to_nothing(project, running_spark):
    shop, events = project, []
    shop.run("shop", "DROP ROLE IF EXISTS intruder", "CREATE ROLE intruder LOGIN")
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
        psycopg.connect(shop.databases["shop"].url, user="intruder", autocommit=True) as session,
    ):
        pipeline.load()
        (before,) = shop.fetch(
            "shop", "SELECT description FROM viewkeeper_shop.relation_state LIMIT 1"
        )[0]
        swapped = json.loads(json.dumps(before))
        swapped["columns"][1]["name"], swapped["columns"][2]["name"] = "size", "name"
        rename = {"tag": "ALTER TABLE", "before": before, "after": swapped, "rewritten": False}
        drop = {"tag": "DROP TABLE", "before": before, "after": None, "rewritten": False}
        tie = {"id": "order-17", "parts": 2}
        for prefix, content in (
            ("viewkeeper_shop", []), ("viewkeeper_shop", {**rename, "statement": "x"}),
            ("viewkeeper_shop", {**drop, "statement": "x"}), ("viewkeeper.transaction", tie),
            ("viewkeeper.transaction", []),
        ):  # fmt: skip
            session.execute(
                "SELECT pg_logical_emit_message(true, %s, %s)", [prefix, json.dumps(content)]
            )
        shop.run("shop", "INSERT INTO orders VALUES (2, 'a name', 'a size')")
        go_on(pipeline)
        assert last_state(keeper, pipeline) == {
            (1, "a name", "a size", 7, "north"),
            (2, "a name", "a size", 7, "south"),
        }
        assert {event.get("code") for event in events if event["event"] == "warning"} == {
            "message-ignored",
            "tie-ignored",
        }
        assert not [event for event in events if event["event"] == "schema_changed"]
    with Keeper.open(shop.folder) as keeper:
        assert all(audit.is_equal for audit in keeper.audit())
    shop.run("shop", "DROP ROLE intruder")


def test_what_clients_write_beside_a_schema_change_is_kept_nowhere(project, running_spark):
    shop, events = project, []
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
    ):
        pipeline.load()
        with psycopg.connect(shop.databases["shop"].url, autocommit=True) as session:
            session.execute(
                f"ALTER TABLE orders RENAME COLUMN size TO extent; /* {SECRET} */ "
                f"CREATE ROLE passing PASSWORD '{SECRET}'; DROP ROLE passing; "
                f"ALTER TABLE orders ADD COLUMN token TEXT DEFAULT '{SECRET}'"
            )
        shop.run(
            "crm",
            f"ALTER TABLE customers /* {SECRET} */ ADD token VARCHAR(40) DEFAULT '{SECRET}' COMMENT '{SECRET}'",
        )
        shop.run(
            "geo", f"ALTER TABLE places ADD COLUMN token TEXT /* {SECRET} */ DEFAULT '{SECRET}'"
        )
        for source, table in (("shop", "orders"), ("crm", "customers"), ("geo", "places")):
            shop.run(source, f"UPDATE {table} SET id = 3 WHERE id = 1")
        go_on(pipeline)
        told = [event for event in events if event["event"] == "schema_changed"]
        assert {event["source"] for event in told} == {"shop", "crm", "geo"}
        assert SECRET not in json.dumps(events, default=str)
    files = [path for path in shop.folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
