"""The writer on a local folder: what is committed, what is refused, what goes on after errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from viewkeeper.algebra.types import INTEGER, LOCAL_TIMESTAMP, STRING, Schema
from viewkeeper.errors import InvariantViolated, UsageError, WarehouseError
from viewkeeper.failpoints import VARIABLE, WAREHOUSE_POINTS
from viewkeeper.warehouse import (
    Amortisation,
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Retention,
    Warehouse,
    Writer,
    consolidate,
    publish,
    vacuum,
)
from viewkeeper.warehouse.columns import stored_arrow_schema
from viewkeeper.warehouse.commits import quiet_entry
from viewkeeper.warehouse.entries import LEDGER_SCHEMA
from viewkeeper.warehouse.lease import FILE
from viewkeeper.warehouse.ledger import FOLDER, Ledger
from viewkeeper.warehouse.storage import Storage
from viewkeeper.warehouse.tables import Conflict, Table
from viewkeeper.warehouse.trimming import trim

SCHEMA = Schema.of(id=INTEGER, name=STRING)


def changes(*rows: tuple[int, str, int, int]) -> Changes:
    names = ["id", "name", "_count", "_txn"]
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4
    types = [pa.int64(), pa.string(), pa.int64(), pa.int64()]
    return Changes(pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names))


def extent(*rows: tuple[int, str, int]) -> Extent:
    return Extent(changes(*((*row, 0) for row in rows)).rows.drop_columns(["_txn"]))


def creating(*views: str) -> EpochCommit:
    return EpochCommit(
        1,
        0,
        {view: extent((1, "one", 2)) for view in views},
        definitions={view: Definition(SCHEMA, "SELECT", publish=view == "p") for view in views},
    )


def step(txn: int, *views: str) -> EpochCommit:
    """Transaction ``txn`` brings row ``txn`` into the views."""
    return EpochCommit(txn, txn, {view: changes((txn, "n", 1, txn)) for view in views or ("v",)})


def rows(warehouse: Warehouse, view: str = "v", as_of: int | None = None) -> list[tuple[int, int]]:
    table = warehouse.read_arrow(view, as_of, with_count=True)
    return sorted(zip(table["id"].to_pylist(), table["_count"].to_pylist(), strict=True))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(tmp_path / "w")


@pytest.fixture
def writer(warehouse: Warehouse) -> Iterator[Writer]:
    with warehouse.writer() as writer:
        yield writer


def test_a_commit_is_visible_with_its_positions_and_counts(
    warehouse: Warehouse, writer: Writer
) -> None:
    writer.commit(creating("v"))
    entry = writer.commit(
        EpochCommit(
            1, 3, {"v": changes((2, "two", 1, 1), (2, "two", -1, 2), (3, "x", 4, 3), (9, "", 0, 3))},
            positions={"shop": {"lsn": "0/1", "timeline": 1}}, cut={"shop": 3},
        )
    )  # fmt: skip
    assert warehouse.latest() == entry
    assert entry.positions == {"shop": {"lsn": "0/1", "timeline": 1}}
    assert vars(entry.statistics["v"]) == {"rows": 3, "inserted": 5, "deleted": 1}
    assert [rows(warehouse, as_of=t) for t in range(4)] == [
        [(1, 2)], [(1, 2), (2, 1)], [(1, 2)], [(1, 2), (3, 4)],
    ]  # fmt: skip
    assert warehouse.read_arrow("v")["id"].to_pylist().count(3) == 4


def test_a_row_loaded_twice_counts_twice_in_every_form(
    warehouse: Warehouse, writer: Writer
) -> None:
    twice = extent((1, "one", 1), (2, "two", 1), (1, "one", 2))
    writer.commit(EpochCommit(1, 0, {"v": twice}, definitions={"v": Definition(SCHEMA)}))
    assert rows(warehouse) == [(1, 3), (2, 1)]
    assert sorted(warehouse.read_arrow("v")["id"].to_pylist()) == [1, 1, 1, 2]
    writer.commit(EpochCommit(1, 1, {"v": changes((1, "one", -3, 1))}))
    assert rows(warehouse) == [(2, 1)]
    assert warehouse.read_arrow("v", 0)["id"].to_pylist().count(1) == 3
    assert warehouse.read_arrow("v")["id"].to_pylist() == [2]


def test_creating_and_opening_tell_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-warehouse"):
        Warehouse.open(tmp_path / "w")
    Warehouse.create(tmp_path / "w")
    with pytest.raises(UsageError, match="warehouse-exists"):
        Warehouse.create(tmp_path / "w")
    with pytest.raises(UsageError, match="no-spark"):
        Warehouse.open(tmp_path / "w").changes("v", 0, 0).collect()


def test_a_warehouse_whose_creation_was_cut_short_can_be_created(tmp_path: Path) -> None:
    Table.create(Storage.at(tmp_path / "w"), FOLDER, LEDGER_SCHEMA)
    with pytest.raises(UsageError, match="no-warehouse"):
        Warehouse.open(tmp_path / "w")
    assert Warehouse.create(tmp_path / "w").latest().last_txn == 0


def test_a_second_writer_is_refused_until_the_first_is_closed(
    warehouse: Warehouse, writer: Writer
) -> None:
    with pytest.raises(WarehouseError, match="warehouse-held"):
        warehouse.writer()
    writer.close()
    warehouse.writer().close()


def test_a_writer_that_lost_the_lease_can_not_commit(warehouse: Warehouse, tmp_path: Path) -> None:
    stale = warehouse.writer()
    stale.commit(creating("v"))
    (tmp_path / "w" / FILE).unlink()  # as if its heart had stopped for long
    with warehouse.writer() as fresh:
        with pytest.raises(WarehouseError, match="lease-lost"):
            stale.commit(step(1))
        # The stale writer's rows got as far as the table; they must not show, nor stop the other.
        assert rows(warehouse) == [(1, 2)]
        fresh.commit(step(1))
        assert rows(warehouse) == [(1, 1), (1, 2)]
        with pytest.raises(WarehouseError, match="lease-lost"):
            stale.commit(step(2))
        fresh.commit(step(2))
    stale.close()
    assert [entry.kind for entry in warehouse.history()] == [
        "create", "lease", "epoch", "lease", "epoch", "epoch",
    ]  # fmt: skip


def test_two_claims_at_once_can_not_both_succeed(warehouse: Warehouse) -> None:
    first, second = Ledger.open(warehouse.storage), Ledger.open(warehouse.storage)
    latest = first.latest()
    first.append(quiet_entry(latest, "lease", latest.committed_at))
    with pytest.raises(Conflict):
        second.append(quiet_entry(latest, "lease", latest.committed_at))
    assert [entry.entry for entry in warehouse.history()] == [0, 1]


def test_rows_of_the_wrong_shape_are_refused_and_leave_nothing(
    warehouse: Warehouse, writer: Writer, tmp_path: Path
) -> None:
    writer.commit(creating("v"))
    before = sorted(p.name for p in (tmp_path / "w" / "views" / "v").glob("*.parquet"))
    good = changes((5, "five", 1, 1)).rows
    wrong = [
        good.drop_columns(["name"]),
        good.append_column("more", pa.array([1])),
        good.set_column(1, "name", pa.array([5])).set_column(0, "id", pa.array(["no number"])),
        good.set_column(2, "_count", pa.array([None], pa.int64())),
        good.set_column(3, "_txn", pa.array([2])),
    ]
    for table in wrong:
        with pytest.raises(InvariantViolated):
            writer.commit(EpochCommit(1, 1, {"v": Changes(table)}))
    assert sorted(p.name for p in (tmp_path / "w" / "views" / "v").glob("*.parquet")) == before
    writer.commit(EpochCommit(1, 1, {"v": Changes(good)}))
    assert rows(warehouse) == [(1, 2), (5, 1)]


def test_a_new_schema_is_read_from_its_state_on_and_the_old_one_before(
    warehouse: Warehouse, writer: Writer
) -> None:
    writer.commit(creating("v"))
    writer.commit(step(1))
    wider = Schema.of(id=INTEGER, name=STRING, seen=LOCAL_TIMESTAMP)
    table = pa.table(
        {"id": [7], "name": ["n"], "seen": pa.array([None], pa.timestamp("us")), "_count": [1]}
    )
    adapted = EpochCommit(2, 2, {"v": Extent(table)}, definitions={"v": Definition(wider, "NEW")})
    entry = writer.commit(adapted)
    assert entry.views["v"].definition_version == 2
    assert warehouse.read_arrow("v").column_names == ["id", "name", "seen"]
    assert warehouse.read_arrow("v", 1).column_names == ["id", "name"]
    assert rows(warehouse, as_of=1) == [(1, 1), (1, 2)]
    assert warehouse.snapshot(1).views["v"].definition.text == "SELECT"
    with pytest.raises(UsageError, match="view-replaced"):
        warehouse.changes_arrow("v", 1, 2)
    # And back, over an interrupted attempt: recovery must restore the columns, too.
    writer.unsettle()
    assert writer.latest == entry
    narrow = EpochCommit(3, 3, {"v": extent((8, "n", 1))}, definitions={"v": Definition(SCHEMA)})
    writer.commit(narrow)
    assert [rows(warehouse, as_of=t) for t in (1, 2, 3)] == [
        [(1, 1), (1, 2)], [(7, 1)], [(8, 1)],
    ]  # fmt: skip


def test_a_dropped_view_stays_readable_before_its_end_and_may_come_back(
    warehouse: Warehouse, writer: Writer
) -> None:
    writer.commit(creating("v", "w"))
    writer.commit(step(1, "v", "w"))
    writer.commit(EpochCommit(2, 2, dropped=frozenset({"v"})))
    assert set(warehouse.snapshot().views) == {"w"}
    assert rows(warehouse, as_of=1) == [(1, 1), (1, 2)]
    with pytest.raises(UsageError, match="there is no view v in"):
        warehouse.read_arrow("v")
    back = {"v": extent((4, "back", 1))}
    writer.commit(EpochCommit(3, 3, back, definitions={"v": Definition(SCHEMA)}))
    assert rows(warehouse) == [(4, 1)]
    assert rows(warehouse, as_of=1) == [(1, 1), (1, 2)]
    writer.commit(EpochCommit(4, 4, dropped=frozenset({"v"})))
    vacuum(writer, Retention(0, 0, 0))
    assert not list((Path(warehouse.storage.root) / "views" / "v").rglob("*.parquet"))
    again = {"v": extent((6, "again", 1))}
    writer.commit(EpochCommit(5, 5, again, definitions={"v": Definition(SCHEMA)}))
    assert rows(warehouse) == [(6, 1)]


def test_an_epoch_may_bring_positions_alone(warehouse: Warehouse, writer: Writer) -> None:
    writer.commit(EpochCommit(1, 0, positions={"s": 5}))
    writer.commit(EpochCommit(1, 4, positions={"t": 6}))
    assert warehouse.latest().positions == {"s": 5, "t": 6}
    assert warehouse.latest().last_txn == 4


@pytest.mark.parametrize("changed", [1, 500])
def test_a_commit_writes_what_the_change_takes_whatever_the_size_of_the_view(
    tmp_path: Path, changed: int
) -> None:
    def written(size: int) -> int:
        """Bytes that one commit adds to a view of that many rows."""
        folder = tmp_path / str(size)
        warehouse = Warehouse.create(folder)
        with warehouse.writer() as writer:
            loaded = extent(*((n, f"name {n}", 1) for n in range(size)))
            writer.commit(EpochCommit(1, 0, {"v": loaded}, definitions={"v": Definition(SCHEMA)}))
            before = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            new = changes(*((n, f"other {n}", 1, 1) for n in range(changed)))
            writer.commit(EpochCommit(1, 1, {"v": new}))
            after = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return after - before

    assert abs(written(100_000) - written(10)) < 100


def test_many_commits_leave_few_ledger_files_and_all_entries(
    warehouse: Warehouse, writer: Writer
) -> None:
    for txn in range(1, 80):
        writer.commit(EpochCommit(txn, txn, positions={"s": txn}))
    assert len(writer.ledger.paths) < 35
    epochs = [entry for entry in warehouse.history() if entry.kind == "epoch"]
    assert [entry.positions["s"] for entry in epochs] == list(range(1, 80))


def all_kinds_of_work(writer: Writer, until: int) -> None:
    for txn in range(writer.latest.last_txn + 1, until):
        writer.commit(step(txn, "v", "p"))
        consolidate(writer, Amortisation(fold_rows_min=2, merge_files=2))
        publish(writer)
        trim(writer, 0)
        vacuum(writer, Retention(3, 0, 0))


@pytest.mark.parametrize("point", WAREHOUSE_POINTS[2:])
@pytest.mark.thorough
def test_a_full_disk_anywhere_is_a_clean_error_and_work_goes_on(
    warehouse: Warehouse, writer: Writer, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    writer.commit(creating("v", "p"))
    writer.commit(step(1, "v", "p"))
    monkeypatch.setenv(VARIABLE, f"{point}=full")
    with pytest.raises(WarehouseError, match="disk-full"):
        all_kinds_of_work(writer, until=9)
    reached = writer.latest.last_txn
    expected = [(1, 1), (1, 2), *((n, 1) for n in range(2, reached + 1))]
    assert rows(warehouse) == expected
    assert rows(warehouse, "p") == expected
    writer.commit(step(reached + 1, "v", "p"))
    assert rows(warehouse) == [*expected, (reached + 1, 1)]
    assert rows(warehouse, "p", reached) == expected


def test_the_ledger_knows_whether_an_entry_with_an_uncertain_end_got_in(
    warehouse: Warehouse, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.commit(creating("v"))
    append = Ledger.append

    def append_then_fail(self: Ledger, entry: object) -> None:
        append(self, entry)  # type: ignore[arg-type]
        raise WarehouseError("storage-failed", "the answer got lost")

    monkeypatch.setattr(Ledger, "append", append_then_fail)
    assert writer.commit(step(1)).last_txn == 1
    monkeypatch.undo()
    writer.commit(step(2))
    assert rows(warehouse) == [(1, 1), (1, 2), (2, 1)]


def test_a_commit_torn_by_a_power_cut_is_taken_back(
    warehouse: Warehouse, writer: Writer, tmp_path: Path
) -> None:
    writer.commit(creating("v"))
    writer.commit(step(1))
    writer.close()
    for folder, content in (("_epochs", b""), ("views/v", b'{"commitInfo": {"times')):
        log = tmp_path / "w" / folder / "_delta_log"
        last = max(int(p.stem) for p in log.glob("*.json"))
        (log / f"{last + 1:020}.json").write_bytes(content)
    with warehouse.writer() as again:
        again.commit(step(2))
    assert rows(warehouse) == [(1, 1), (1, 2), (2, 1)]


def test_a_table_that_somebody_removed_is_told_as_damage(
    warehouse: Warehouse, writer: Writer, tmp_path: Path
) -> None:
    writer.commit(creating("v"))
    writer.close()
    shutil.rmtree(tmp_path / "w" / "views" / "v")
    with warehouse.writer() as again:
        assert again.damaged["v"].code == "table-damaged"
        with pytest.raises(WarehouseError, match="table-damaged"):
            again.commit(step(1))
    with pytest.raises(WarehouseError, match="table-missing"):
        warehouse.read_arrow("v")


def test_a_table_that_somebody_else_keeps_writing_to_is_told(
    warehouse: Warehouse, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.commit(creating("v"))
    commit = Table.commit

    def commit_second(self: Table, *words: object, **named: object) -> int:
        other = Table.open(warehouse.storage, self.folder)
        assert other is not None
        commit(other, stored_arrow_schema(SCHEMA), [])
        return commit(self, *words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "commit", commit_second)
    with pytest.raises(WarehouseError, match="table-disturbed"):
        writer.commit(step(1))
    monkeypatch.undo()
    assert rows(warehouse) == [(1, 2)]
    writer.commit(step(1))
    assert rows(warehouse) == [(1, 1), (1, 2)]


def test_what_somebody_else_writes_to_a_table_never_shows(
    warehouse: Warehouse, writer: Writer
) -> None:
    writer.commit(creating("v"))
    foreign = Table.open(warehouse.storage, "views/v")
    assert foreign is not None
    foreign.commit(stored_arrow_schema(SCHEMA), [], [file.path for file in foreign.files()])
    assert rows(warehouse) == [(1, 2)]
    writer.close()
    with warehouse.writer() as again:
        again.commit(step(1))
    assert rows(warehouse) == [(1, 1), (1, 2)]


def test_the_ledger_tells_what_is_new_since_an_entry(warehouse):
    with warehouse.writer() as writer:
        writer.commit(creating("v"))
        for txn in range(1, 40):
            writer.commit(step(txn))
    ledger = Ledger.open(warehouse.storage)
    every = ledger.entries()
    for after in (-1, 0, 5, len(every) - 2, len(every) - 1):
        assert ledger.entries(after) == tuple(e for e in every if e.entry > after)
