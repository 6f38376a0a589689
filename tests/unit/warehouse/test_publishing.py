"""Other tools read what is published: plain Delta tables with the view's rows and nothing else."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from viewkeeper.algebra.types import INTEGER, LOCAL_TIMESTAMP, STRING, Schema, decimal_type
from viewkeeper.warehouse import (
    Amortisation,
    Background,
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Housekeeping,
    Retention,
    Warehouse,
    Writer,
    publish,
    vacuum,
)

SCHEMA = Schema.of(id=INTEGER, price=decimal_type(10, 2))


def rows(*pairs: tuple[int, str, int], txn: int | None = None) -> pa.Table:
    table = pa.table(
        {
            "id": pa.array([p[0] for p in pairs], pa.int64()),
            "price": pa.array([Decimal(p[1]) for p in pairs], pa.decimal128(10, 2)),
            "_count": pa.array([p[2] for p in pairs], pa.int64()),
        }
    )
    return table if txn is None else table.append_column("_txn", pa.array([txn] * len(pairs)))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(tmp_path / "w")


def commit_two_states(writer: Writer) -> None:
    first = Extent(rows((1, "1.50", 2), (2, "0.00", 1)))
    writer.commit(
        EpochCommit(1, 0, {"v": first}, definitions={"v": Definition(SCHEMA, publish=True)})
    )
    writer.commit(EpochCommit(1, 1, {"v": Changes(rows((2, "0.00", -1), (3, "9.99", 1), txn=1))}))


def table_of(warehouse: Warehouse) -> str:
    return warehouse.storage.uri("published", "v")


def test_polars_and_duckdb_read_the_published_table(warehouse: Warehouse) -> None:
    with warehouse.writer() as writer:
        commit_two_states(writer)
        assert publish(writer) == ("v",)
        assert publish(writer) == ()
        shown = writer.latest.views["v"].published
    expected = [(1, Decimal("1.50")), (1, Decimal("1.50")), (3, Decimal("9.99"))]
    found = polars.read_delta(table_of(warehouse)).sort("id")
    assert found.columns == ["id", "price"]
    assert found.rows() == expected
    assert shown is not None
    assert shown.txn == 1
    # DuckDB's own Delta reader is an extension that it fetches from the network; the files of the
    # version that the ledger names are the table, and need none.
    files = DeltaTable(table_of(warehouse), version=shown.version).file_uris()
    assert (
        duckdb.execute("SELECT * FROM read_parquet(?) ORDER BY id", [files]).fetchall() == expected
    )


def test_any_engine_sums_a_view_s_own_table_at_a_state(warehouse: Warehouse) -> None:
    """What docs/warehouse.md tells people to write."""
    with warehouse.writer() as writer:
        commit_two_states(writer)
    state = warehouse.latest().views["v"]
    files = DeltaTable(warehouse.storage.uri("views", "v"), version=state.version).file_uris()
    sql = """
        SELECT id, price, sum(_count)::BIGINT FROM read_parquet(?) WHERE _txn <= ?
        GROUP BY ALL HAVING sum(_count) > 0 ORDER BY id"""
    assert duckdb.execute(sql, [files, 0]).fetchall() == [
        (1, Decimal("1.50"), 2), (2, Decimal("0.00"), 1),
    ]  # fmt: skip
    assert duckdb.execute(sql, [files, 1]).fetchall() == [
        (1, Decimal("1.50"), 2), (3, Decimal("9.99"), 1),
    ]  # fmt: skip


def test_a_published_table_follows_a_new_schema(warehouse: Warehouse) -> None:
    wider = Schema.of(name=STRING, seen=LOCAL_TIMESTAMP)
    moment = dt.datetime(2024, 3, 31, 2, 30)
    with warehouse.writer() as writer:
        commit_two_states(writer)
        publish(writer)
        extent = pa.table(
            {"name": ["x"], "seen": pa.array([moment], pa.timestamp("us")), "_count": [1]}
        )
        new = {"v": Definition(wider, publish=True)}
        writer.commit(EpochCommit(2, 2, {"v": Extent(extent)}, definitions=new))
        publish(writer)
        vacuum(writer, Retention(0, 0, 0))
    assert polars.read_delta(table_of(warehouse)).rows() == [("x", moment)]


def test_housekeeping_publishes_in_the_background(warehouse: Warehouse) -> None:
    plan = Housekeeping(consolidate_seconds=0.01, publish_seconds=0.01, vacuum_seconds=0.02)
    with warehouse.writer() as writer:
        commit_two_states(writer)
        background = Background(writer, plan)
        while writer.latest.views["v"].published is None:
            assert background.last_error is None
        background.close()
    assert polars.read_delta(table_of(warehouse)).height == 3


def test_housekeeping_waits_while_whoever_commits_is_behind(warehouse: Warehouse) -> None:
    due = Amortisation(fold_rows_min=1, fold_ratio=1e-9)
    plan = Housekeeping(due, consolidate_seconds=0.01, publish_seconds=0.01)
    looked = threading.Semaphore(0)

    def is_behind() -> bool:
        looked.release()
        return True

    with warehouse.writer() as writer:
        commit_two_states(writer)
        writer.is_behind = is_behind
        background = Background(writer, plan)
        for _ in range(3):
            looked.acquire()
        assert writer.latest.views["v"].log_rows
        writer.is_behind = lambda: False
        while writer.latest.views["v"].log_rows:
            assert background.last_error is None
        background.close()


def test_an_extent_without_a_number_of_its_own_is_published(warehouse: Warehouse) -> None:
    """A schema change fills a view anew at the number where it stands."""
    wider = Schema.of(name=STRING)
    with warehouse.writer() as writer:
        commit_two_states(writer)
        publish(writer)
        extent = Extent(pa.table({"name": ["x"], "_count": [1]}))
        new = {"v": Definition(wider, publish=True)}
        writer.commit(EpochCommit(2, 1, {"v": extent}, definitions=new))
        assert publish(writer) == ("v",)
        assert publish(writer) == ()
    assert polars.read_delta(table_of(warehouse)).rows() == [("x",)]


def test_a_view_that_did_not_change_is_not_written_again(warehouse: Warehouse) -> None:
    with warehouse.writer() as writer:
        commit_two_states(writer)
        other = Extent(rows((1, "1.00", 1)))
        writer.commit(
            EpochCommit(2, 1, {"other": other}, definitions={"other": Definition(SCHEMA)})
        )
        assert publish(writer) == ("v",)
        writer.commit(EpochCommit(2, 2, {"other": Changes(rows((2, "2.00", 1), txn=2))}))
        assert publish(writer) == ()
        writer.commit(EpochCommit(3, 3, {"v": Changes(rows((4, "4.00", 1), txn=3))}))
        assert publish(writer) == ("v",)
    assert polars.read_delta(table_of(warehouse)).height == 4


def test_a_table_that_is_no_longer_asked_for_is_deleted(warehouse: Warehouse) -> None:
    """Left where it is, it would show an old state for ever."""
    with warehouse.writer() as writer:
        commit_two_states(writer)
        publish(writer)
        writer.commit(EpochCommit(2, 1, definitions={"v": Definition(SCHEMA)}))
        assert publish(writer) == ()
        assert writer.latest.views["v"].published is None
        vacuum(writer, Retention(10, 0, 0))
    assert not [i for i in warehouse.storage.list_files("published") if i.size]


def test_the_last_state_is_published_when_housekeeping_ends(warehouse: Warehouse) -> None:
    with warehouse.writer() as writer:
        commit_two_states(writer)
        Background(writer, Housekeeping(publish_seconds=3_600)).close()
    assert polars.read_delta(table_of(warehouse)).height == 3
