"""``-- publish: table``: whatever another engine reads of a published table is a state of the view."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal

import duckdb
import polars
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from live.pipeline.recording import view_states
from viewkeeper.failpoints import VARIABLE
from viewkeeper.project import keeper as keeping
from viewkeeper.project.keeper import Keeper
from viewkeeper.warehouse.background import Housekeeping
from viewkeeper.warehouse.warehouse import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEW = "-- publish: table\nSELECT id, price, tag FROM shop.items WHERE price > 1"
PATIENCE_SECONDS = 120


def published(shop) -> str:
    return str(shop.folder / "warehouse" / "published" / "dear")


def read_by_others(shop) -> list[Counter]:
    """What deltalake's file list, DuckDB, Polars and Arrow find in the table, at its newest version."""
    files = DeltaTable(published(shop)).file_uris()
    columns = "id, price, tag"
    by_duckdb = duckdb.execute(f"SELECT {columns} FROM read_parquet(?)", [files]).fetchall()
    by_polars = polars.read_delta(published(shop)).rows()
    by_arrow = [tuple(row.values()) for row in ds.dataset(files).to_table().to_pylist()]
    return [Counter(map(tuple, rows)) for rows in (by_duckdb, by_polars, by_arrow)]


def expected(shop) -> Counter:
    rows = shop.fetch("shop", "SELECT id, price, tag FROM items WHERE price > 1")
    return Counter((row[0], Decimal(row[1]), row[2]) for row in rows)


def named_version(shop) -> int:
    """The version that the ledger names."""
    state = Warehouse.open(shop.folder / "warehouse").latest().views["dear"]
    assert state.published is not None
    return state.published.version


def make(shop) -> None:
    shop.run("shop", "CREATE TABLE items (id BIGINT PRIMARY KEY, price NUMERIC(10, 2), tag TEXT)")
    shop.run("shop", *(f"INSERT INTO items VALUES ({n}, {n}.50, 'old')" for n in range(6)))
    shop.write_view("dear", VIEW)


def test_other_engines_find_a_state_of_the_view_during_a_run_and_its_last_one_after(
    shop, running_spark, monkeypatch
):
    often = functools.partial(Housekeeping, publish_seconds=0.05)
    monkeypatch.setattr(keeping, "Housekeeping", often)
    make(shop)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        seen = []
        with keeper.pipeline() as pipeline:
            pipeline.load()
            assert pipeline.writer.latest.views["dear"].definition.publish
            deadline = time.monotonic() + PATIENCE_SECONDS
            while pipeline.writer.latest.views["dear"].published is None:
                assert time.monotonic() < deadline
                pipeline.cycle(0.05)
            for turn in range(12):
                shop.run("shop", f"UPDATE items SET price = price + 1, tag = 'turn {turn}'")
                while not pipeline.has_applied(pipeline.committed_now()):
                    pipeline.cycle(0.05)
                seen.append(Counter(polars.read_delta(published(shop)).rows()))
            states = view_states(keeper.warehouse(), pipeline.views["dear"].definition)
        known = [Counter(dict(state)) for state in states]
        assert all(state in known for state in seen)
        assert len(known) == 13
        assert read_by_others(shop) == [expected(shop)] * 3


def test_a_published_table_follows_a_changed_schema_and_a_header_that_goes(shop, running_spark):
    make(shop)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    assert read_by_others(shop) == [expected(shop)] * 3
    shop.run("shop", "ALTER TABLE items RENAME COLUMN tag TO label")
    shop.run("shop", "UPDATE items SET label = 'new' WHERE id = 3")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        state = keeper.warehouse().latest().views["dear"]
        assert state.definition.publish
    found = polars.read_delta(published(shop))
    assert set(found.columns) == set(state.schema.names)
    assert (3, Decimal("3.50"), "new") in found.rows()
    shop.write_view("dear", "SELECT id, price FROM shop.items WHERE price > 1")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        assert keeper.warehouse().latest().views["dear"].published is None


def test_a_published_table_is_right_after_a_kill(shop, running_spark):
    """Killed between the table and the ledger: the table shows a state, and goes on from there."""
    make(shop)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    before = named_version(shop)
    shop.run("shop", "UPDATE items SET price = price + 2")
    program = (
        "import sys; from viewkeeper.cli import execute; "
        "sys.exit(execute(['run', '--until-caught-up', '--project', sys.argv[1]]))"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(shop.folder)],
        env=os.environ | {VARIABLE: "publish-after-table"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert killed.returncode == -9, killed.stderr
    assert named_version(shop) == before
    assert DeltaTable(published(shop)).version() > before
    assert read_by_others(shop) == [expected(shop)] * 3
    shop.run("shop", "UPDATE items SET price = price + 3")
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
    assert read_by_others(shop) == [expected(shop)] * 3
