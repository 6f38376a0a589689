"""Logs stay short however many commits there were, and every promised state stays readable without them."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.errors import WarehouseError
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
from viewkeeper.warehouse.file_lists import COMPLETE, FOLDER
from viewkeeper.warehouse.trimming import trim

SCHEMA = Schema.of(id=INTEGER)
COMMITS = 130


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(tmp_path / "w")


def extent(ids: list[int]) -> Extent:
    return Extent(pa.table({"id": pa.array(ids, pa.int64()), "_count": [1] * len(ids)}))


def fill(writer: Writer, commits: int, fold_every: int = 15) -> None:
    """Each transaction brings in its number; log files are merged, and folded now and then."""
    for _ in range(commits):
        txn = writer.latest.last_txn + 1
        rows = pa.table({"id": [txn], "_count": [1], "_txn": [txn]})
        writer.commit(EpochCommit(txn, txn, {"v": Changes(rows)}))
        if txn % fold_every == 0:
            consolidate(writer, fold_all=True)
        else:
            consolidate(writer)


def created(writer: Writer) -> None:
    number = writer.latest.last_txn
    definitions = {"v": Definition(SCHEMA)}
    writer.commit(EpochCommit(number + 1, number, {"v": extent([])}, definitions=definitions))


def shown(warehouse: Warehouse, txn: int) -> list[int]:
    return sorted(warehouse.read_arrow("v", txn)["id"].to_pylist())


def log_files(tmp_path: Path, table: str = "views/v") -> int:
    return len(list((tmp_path / "w" / table / "_delta_log").iterdir()))


@pytest.mark.thorough
def test_all_states_and_changes_are_there_when_the_logs_have_been_trimmed(warehouse, tmp_path):
    with warehouse.writer() as writer:
        created(writer)
        fill(writer, 7)
        early = warehouse.snapshot()
        fill(writer, COMMITS - 7)
        before = log_files(tmp_path), log_files(tmp_path, "_epochs")
        assert trim(writer, 0) > COMMITS
        after = log_files(tmp_path), log_files(tmp_path, "_epochs")
        assert min(before) > COMMITS
        # At most two checkpoints, and the commits since the earlier of them.
        assert max(after) < 50
        for txn in range(1, COMMITS + 1):
            assert shown(warehouse, txn) == list(range(1, txn + 1))
        changes = warehouse.changes_arrow("v", 3, COMMITS)
        assert changes["_txn"].to_pylist() == list(range(4, COMMITS + 1))
        # The version that it names was none that ended a base: a later one tells the same.
        assert early.read_arrow("v").num_rows == 7
        fill(writer, 30)
    # Other tools, and the next writer, open the newest version as ever.
    newest = DeltaTable(tmp_path / "w" / "views" / "v")
    assert newest.version() > COMMITS
    with warehouse.writer() as writer:
        fill(writer, 1)
        assert trim(writer, 0) > 0
    assert shown(warehouse, COMMITS) == list(range(1, COMMITS + 1))
    assert shown(warehouse, COMMITS + 31) == list(range(1, COMMITS + 32))


@pytest.mark.thorough
def test_what_a_reader_may_be_about_to_open_stays(warehouse, tmp_path):
    with warehouse.writer() as writer:
        created(writer)
        fill(writer, 60)
        before = log_files(tmp_path)
        assert trim(writer, 3_600) == 0
        assert log_files(tmp_path) == before
        log = tmp_path / "w" / "views" / "v" / "_delta_log"
        for number in range(30):
            os.utime(log / f"{number:020}.json", (0, 0))
        trim(writer, 3_600)
        versions = {int(path.name[:20]) for path in log.glob("*.json")}
        # The newest an hour ago was 29; it is opened from the checkpoint before it.
        assert min(versions) == 19
        for version in range(29, max(versions) + 1):
            assert DeltaTable(tmp_path / "w" / "views" / "v", version=version).version() == version


@pytest.mark.thorough
def test_bases_that_ended_otherwise_than_by_a_fold_are_listed_too(warehouse, tmp_path):
    with warehouse.writer() as writer:
        created(writer)
        fill(writer, 10, fold_every=1_000)
        again = EpochCommit(11, 11, {"v": extent([500])}, definitions={"v": Definition(SCHEMA)})
        writer.commit(again)
        fill(writer, 9, fold_every=1_000)
        writer.commit(EpochCommit(21, 21, dropped=frozenset({"v"})))
        created(writer)
        fill(writer, COMMITS, fold_every=1_000)
        assert trim(writer, 0) > COMMITS
    assert log_files(tmp_path) < 60
    assert shown(warehouse, 10) == list(range(1, 11))
    assert shown(warehouse, 15) == [12, 13, 14, 15, 500]
    assert shown(warehouse, 20) == [*range(12, 21), 500]
    assert shown(warehouse, 30) == list(range(22, 31))


@pytest.mark.thorough
def test_a_table_of_which_a_base_may_have_ended_without_a_list_keeps_its_log(warehouse, tmp_path):
    with warehouse.writer() as writer:
        created(writer)
        (tmp_path / "w" / "views" / "v" / FOLDER / COMPLETE).unlink()
        fill(writer, 60)
        before = log_files(tmp_path)
        trim(writer, 0)
        assert log_files(tmp_path) == before
    assert log_files(tmp_path, "_epochs") < 50


@pytest.mark.thorough
def test_vacuum_knows_what_is_listed(warehouse, tmp_path):
    with warehouse.writer() as writer:
        created(writer)
        fill(writer, COMMITS)
        trim(writer, 0)
        lists = len(list((tmp_path / "w" / "views" / "v" / FOLDER).iterdir()))
        vacuum(writer, Retention(transactions=40, seconds=0, grace_seconds=0))
        for txn in range(COMMITS - 40, COMMITS + 1):
            assert shown(warehouse, txn) == list(range(1, txn + 1))
        assert 2 < len(list((tmp_path / "w" / "views" / "v" / FOLDER).iterdir())) < lists
        fill(writer, 5)
        trim(writer, 0)
    assert shown(warehouse, COMMITS - 40) == list(range(1, COMMITS - 39))
    with warehouse.writer() as writer:
        vacuum(writer, Retention(transactions=0, seconds=0, grace_seconds=0))
        assert shown(warehouse, COMMITS + 5) == list(range(1, COMMITS + 6))


@pytest.mark.thorough
def test_whoever_trims_a_log_without_lists_is_found_out(warehouse, tmp_path):
    """Shows that the states above were read by their lists."""
    rng = random.Random(1)
    with warehouse.writer() as writer:
        created(writer)
        fill(writer, COMMITS)
        trim(writer, 0)
    lists = sorted((tmp_path / "w" / "views" / "v" / FOLDER).glob("*.json"))
    assert len(lists) == COMMITS // 15
    rng.choice(lists[:3]).unlink()
    with pytest.raises(WarehouseError):
        [shown(warehouse, txn) for txn in range(1, 50)]


def test_text_columns_do_not_matter(warehouse):
    """A list says nothing of columns: those of a state are in the ledger."""
    wider = Schema.of(id=INTEGER, name=STRING)
    with warehouse.writer() as writer:
        created(writer)
        fill(writer, 30)
        rows = Extent(pa.table({"id": [1], "name": ["a"], "_count": [1]}))
        writer.commit(EpochCommit(31, 31, {"v": rows}, definitions={"v": Definition(wider)}))
        trim(writer, 0)
    assert shown(warehouse, 30) == list(range(1, 31))
    assert warehouse.read_arrow("v", 31).column_names == ["id", "name"]
