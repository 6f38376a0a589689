from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import FileInfo, FileType

from unit.warehouse.entries_for_tests import NOON, at
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.errors import UsageError
from viewkeeper.warehouse import (
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Retention,
    Warehouse,
    Writer,
    consolidate,
    vacuum,
)
from viewkeeper.warehouse.trimming import old_commits

SCHEMA = Schema.of(id=INTEGER)


class Clock:
    """Stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> object:
        return at(self.seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def warehouse(tmp_path: Path, clock: Clock) -> Warehouse:
    return Warehouse.create(tmp_path / "w", clock=clock)  # type: ignore[arg-type]


def fill(writer: Writer, first: int, last: int, clock: Clock) -> None:
    """One transaction per second, each bringing in its number; a fold at every tenth."""
    for txn in range(first, last + 1):
        clock.seconds = txn
        rows = pa.table({"id": [txn], "_count": [1], "_txn": [txn]})
        writer.commit(EpochCommit(txn, txn, {"v": Changes(rows)}, positions={"s": txn}))
        if txn % 10 == 0:
            consolidate(writer, fold_all=True)


def create(writer: Writer) -> None:
    nothing = Extent(pa.table({"id": pa.array([], pa.int64()), "_count": pa.array([], pa.int64())}))
    writer.commit(EpochCommit(1, 0, {"v": nothing}, definitions={"v": Definition(SCHEMA)}))


def files(tmp_path: Path, pattern: str) -> int:
    return len(list((tmp_path / "w").glob(pattern)))


@pytest.mark.thorough
def test_states_within_retention_stay_and_the_others_are_told_to_be_gone(
    warehouse: Warehouse, clock: Clock, tmp_path: Path
) -> None:
    with warehouse.writer() as writer:
        create(writer)
        fill(writer, 1, 35, clock)
        before = files(tmp_path, "views/v/*.parquet")
        report = vacuum(writer, Retention(transactions=8, seconds=0, grace_seconds=0))
    assert report.oldest_txn == 27
    assert report.files > 0
    assert files(tmp_path, "views/v/*.parquet") < before
    for txn in range(27, 36):
        assert sorted(warehouse.read_arrow("v", txn)["id"].to_pylist()) == list(range(1, txn + 1))
    with pytest.raises(UsageError, match="state-not-retained"):
        warehouse.read_arrow("v", 26)
    assert warehouse.changes_arrow("v", 27, 35)["id"].to_pylist() == list(range(28, 36))
    assert warehouse.history()[0].last_txn == 27


def test_retention_in_time_keeps_what_was_current_then(warehouse: Warehouse, clock: Clock) -> None:
    with warehouse.writer() as writer:
        create(writer)
        fill(writer, 1, 12, clock)
        clock.seconds = 20
        assert vacuum(writer, Retention(0, 10, 0)).oldest_txn == 10
        clock.seconds = 10_000
        assert vacuum(writer, Retention(0, 10, 0)).oldest_txn == 12


def test_a_reader_under_way_is_not_disturbed_within_the_grace_period(
    warehouse: Warehouse, clock: Clock
) -> None:
    with warehouse.writer() as writer:
        create(writer)
        fill(writer, 1, 9, clock)
        old = warehouse.snapshot(5)
        consolidate(writer, fold_all=True)
        fill(writer, 10, 20, clock)
        vacuum(writer, Retention(0, 0, grace_seconds=15))
        assert old.read_arrow("v").num_rows == 5
        clock.seconds = 100
        vacuum(writer, Retention(0, 0, grace_seconds=15))
        with pytest.raises(UsageError, match="state 5 is no longer kept"):
            old.read_arrow("v")
        assert warehouse.read_arrow("v").num_rows == 20


def test_files_left_behind_by_a_writer_that_died_are_removed(
    warehouse: Warehouse, clock: Clock, tmp_path: Path
) -> None:
    with warehouse.writer() as writer:
        create(writer)
        fill(writer, 1, 3, clock)
        orphan = tmp_path / "w" / "views" / "v" / "changes-orphan.parquet"
        by_spark = (
            tmp_path / "w" / "views" / "v" / "base-dead" / "_temporary" / "0" / "part.parquet"
        )
        by_spark.parent.mkdir(parents=True)
        for path in (orphan, by_spark):
            path.write_bytes(b"half a file")
        vacuum(writer, Retention(100, 0, 0))
    assert not orphan.exists()
    assert not by_spark.exists()
    assert warehouse.read_arrow("v", 1).num_rows == 1


@pytest.mark.thorough
def test_logs_stay_short_and_the_warehouse_can_be_opened(
    warehouse: Warehouse, clock: Clock, tmp_path: Path
) -> None:
    with warehouse.writer() as writer:
        create(writer)
        fill(writer, 1, 60, clock)
        vacuum(writer, Retention(5, 0, 0))
    assert files(tmp_path, "views/v/_delta_log/*.json") < 30
    assert files(tmp_path, "_epochs/_delta_log/*.json") < 30
    assert len(warehouse.history()) < 12
    with warehouse.writer() as writer:
        fill(writer, 61, 65, clock)
    assert [warehouse.read_arrow("v", t).num_rows for t in (55, 60, 65)] == [55, 60, 65]


def test_vacuum_with_nothing_to_do_writes_nothing(warehouse: Warehouse, clock: Clock) -> None:
    with warehouse.writer() as writer:
        create(writer)
        vacuum(writer, Retention(100, 0, 0))
        before = len(warehouse.history())
        assert vacuum(writer, Retention(100, 0, 0)).files == 0
        assert len(warehouse.history()) == before


def commit_file(name: str) -> FileInfo:
    return FileInfo(f"/t/_delta_log/{name}", FileType.File, mtime=NOON, size=1)


def test_only_commits_before_the_last_checkpoint_that_is_needed_go() -> None:
    log = [commit_file(f"{n:020}.json") for n in range(30)]
    log += [commit_file(f"{n:020}.checkpoint.parquet") for n in (9, 19, 29)]
    log += [commit_file("_last_checkpoint")]

    def gone(oldest: int) -> set[str]:
        return {info.base_name for info in old_commits(log, oldest)}

    assert gone(8) == set()
    assert gone(9) == {f"{n:020}.json" for n in range(9)}
    assert f"{19:020}.json" not in gone(25)
    assert f"{9:020}.checkpoint.parquet" in gone(25)
    assert f"{19:020}.checkpoint.parquet" not in gone(25)
