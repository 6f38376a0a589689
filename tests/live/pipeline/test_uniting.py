"""Views that share a relation but stand at different cuts are brought to one, while changes wait."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from viewkeeper.runtime.intake import _changed_while_uniting
from viewkeeper.runtime.keeper import Keeper
from viewkeeper.runtime.pipeline import Pipeline
from viewkeeper.sources.interface import SchemaChange
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# A run that waits for ever is ended by this, and then has not brought in what it should.
PATIENCE_SECONDS = 120.0

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
            raise _changed_while_uniting(SchemaChange("shop", {}, "orders", None, None, "", False))
        loading(self, *arguments, **named)

    monkeypatch.setattr(Pipeline, "load", load)
    events: list[dict[str, object]] = []
    with Keeper.open(tmp_path) as keeper:
        assert keeper.run(until_caught_up=True, on_event=events.append).transactions == 1
    assert events[0]["event"] == "warning"
    assert len(loads) == 2
