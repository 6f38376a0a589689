"""What a disk does to a warehouse is found: flipped, cut, lost and exchanged files, lost lines, older copies."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from unit.warehouse.test_writer import changes, creating, extent, rows, step
from viewkeeper.errors import WarehouseError
from viewkeeper.live.json_files import write_json
from viewkeeper.project.remembering import refuse_older, remember
from viewkeeper.reports.run_state import read_run_state
from viewkeeper.warehouse import (
    EpochCommit,
    Retention,
    Warehouse,
    Writer,
    checksums,
    commits,
    consolidate,
    datafiles,
    ledger,
    publish,
    vacuum,
    writer,
)
from viewkeeper.warehouse.checksums import checksum_in
from viewkeeper.warehouse.entries import chained, from_arrow, to_arrow
from viewkeeper.warehouse.head import FILE
from viewkeeper.warehouse.lease import check_free
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.verifying import verify

STEPS = 6
NOTHING_OLD = Retention(transactions=1, seconds=0, grace_seconds=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Views v, w and p (published), with a base, older states, a log."""
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        writer.commit(creating("v", "w", "p"))
        for txn in range(1, STEPS + 1):
            writer.commit(step(txn, "v", "w", "p"))
            if txn == 3:
                consolidate(writer, fold_all=True)
                publish(writer)
    return tmp_path / "w"


def flip(path: Path, place: float = 0.5, bit: int = 3) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1 << bit
    path.write_bytes(content)


def files(folder: Path, view: str) -> list[Path]:
    """The files that the view is read from now, largest first."""
    warehouse = Warehouse.open(folder)
    plan = warehouse.snapshot()._plan(view)
    found = [folder / "views" / view / file.path for file in plan.files]
    return sorted(found, key=lambda path: (-path.stat().st_size, path.name))


def last_commit(folder: Path, table: str) -> Path:
    return max((folder / table / "_delta_log").glob("*.json"))


def damage_of(folder: Path) -> dict[str, str]:
    """What a writer finds when it opens the warehouse."""
    with Warehouse.open(folder).writer() as writer:
        return {view: error.code for view, error in writer.damaged.items()}


# -- a bit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_flipped_bit_of_a_file_is_never_read(folder: Path, place: float) -> None:
    path = files(folder, "v")[0]
    flip(path, place)
    with pytest.raises(WarehouseError, match="file-damaged") as caught:
        rows(Warehouse.open(folder))
    assert path.name in str(caught.value)
    assert "viewkeeper rebuild v" in caught.value.hint
    assert rows(Warehouse.open(folder), "w")


def test_every_bit_of_a_small_file_is_covered(folder: Path) -> None:
    path = files(folder, "v")[-1]
    good = path.read_bytes()
    for number in range(len(good)):
        flip(path, number / len(good), number % 8)
        with pytest.raises(WarehouseError, match="file-damaged"):
            rows(Warehouse.open(folder))
        path.write_bytes(good)
    assert rows(Warehouse.open(folder))


def test_pages_have_checksums_for_readers_that_read_by_themselves(folder: Path) -> None:
    path = files(folder, "v")[0]
    reader = pq.ParquetFile(path)
    column = reader.metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(path.read_bytes())
    # The last byte of the first column's pages: data, not a header.
    content[start + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"(?i)crc|checksum"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_a_large_file_is_hashed_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "WHOLE_BYTES_MAX", 10)
    monkeypatch.setattr(checksums, "_CHUNK", 64)
    assert rows(Warehouse.open(folder))
    flip(files(folder, "v")[0])
    with pytest.raises(WarehouseError, match="file-damaged"):
        rows(Warehouse.open(folder))


def test_the_ledgers_own_files_are_covered(folder: Path) -> None:
    newest = max((folder / "_epochs").glob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)
    flip(newest)
    with pytest.raises(WarehouseError, match="the ledger is not what was written"):
        rows(Warehouse.open(folder))


def test_a_list_of_an_older_state_is_covered(folder: Path) -> None:
    (listed,) = (folder / "views" / "v" / "_lists").glob("*.json")
    good = listed.read_bytes()
    right = rows(Warehouse.open(folder), as_of=2)
    for number in range(len(good)):
        flip(listed, number / len(good), number % 7)
        with contextlib.suppress(WarehouseError):
            assert rows(Warehouse.open(folder), as_of=2) == right
        listed.write_bytes(good)


# -- files and lines that are gone or elsewhere -----------------------------------------------------


def lost(folder: Path) -> None:
    files(folder, "v")[0].unlink()


def cut(folder: Path) -> None:
    path = files(folder, "v")[0]
    path.write_bytes(path.read_bytes()[:-7])


def exchanged(folder: Path) -> None:
    """Two files of one size would be told apart by their hashes only: these differ."""
    first, last = files(folder, "v")[0], files(folder, "v")[-1]
    content = first.read_bytes()
    first.write_bytes(last.read_bytes())
    last.write_bytes(content)


def line_removed(folder: Path) -> None:
    path = last_commit(folder, "views/v")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if '"add"' not in line) + "\n")


def commit_flipped(folder: Path) -> None:
    """The newest commit can't be read: it was acknowledged, so it is not for us to throw away."""
    path = last_commit(folder, "views/v")
    path.write_text(path.read_text().replace('{"add"', '{"add', 1))


def commit_lost(folder: Path) -> None:
    last_commit(folder, "views/v").unlink()


def table_lost(folder: Path) -> None:
    shutil.rmtree(folder / "views" / "v")


HARM = (lost, cut, exchanged, line_removed, commit_flipped, commit_lost, table_lost)


@pytest.mark.parametrize("harm", HARM)
def test_harm_is_found_at_the_start_and_marks_that_view_alone(
    folder: Path, harm: Callable[[Path], None]
) -> None:
    harm(folder)
    with pytest.raises(WarehouseError):
        rows(Warehouse.open(folder))
    assert damage_of(folder).keys() == {"v"}
    found = verify(Warehouse.open(folder).storage)
    assert {damage.view for damage in found.damages} == {"v"}
    # The others go on, and a new extent brings the view back.
    with Warehouse.open(folder).writer() as writer:
        writer.commit(step(STEPS + 1, "w"))
        assert (STEPS + 1, 1) in rows(Warehouse.open(folder), "w")
        next_txn = STEPS + 2
        writer.commit(EpochCommit(next_txn, next_txn, {"v": extent((7, "seven", 1))}))
        assert not writer.damaged
        writer.commit(step(next_txn + 1, "v"))
    assert rows(Warehouse.open(folder)) == [(7, 1), (next_txn + 1, 1)]
    assert damage_of(folder) == {}
    with Warehouse.open(folder).writer() as writer:
        vacuum(writer, NOTHING_OLD)
    assert rows(Warehouse.open(folder)) == [(7, 1), (next_txn + 1, 1)]
    assert rows(Warehouse.open(folder), "w")


def test_a_damaged_store_marks_its_view_when_the_warehouse_is_opened(tmp_path: Path) -> None:
    with Warehouse.create(tmp_path / "w").writer() as writer:
        writer.commit(creating("v", "v@parts", "w"))
    flip(files(tmp_path / "w", "v@parts")[0])
    assert damage_of(tmp_path / "w") == {"v": "file-damaged"}


def test_vacuum_touches_nothing_of_a_table_whose_log_names_other_files(folder: Path) -> None:
    with Warehouse.open(folder).writer() as writer:
        line_removed(folder)
        before = set((folder / "views" / "v").rglob("*"))
        vacuum(writer, NOTHING_OLD)
        assert set((folder / "views" / "v").rglob("*")) == before


# -- the ledger's end -------------------------------------------------------------------------------


def test_a_ledger_whose_newest_commits_are_gone_is_told(folder: Path) -> None:
    last_commit(folder, "_epochs").unlink()
    for open_it in (lambda: rows(Warehouse.open(folder)), lambda: damage_of(folder)):
        with pytest.raises(WarehouseError, match="ledger-behind"):
            open_it()


def test_a_ledgers_commit_that_rotted_is_not_taken_for_a_torn_one(folder: Path) -> None:
    path = last_commit(folder, "_epochs")
    path.write_text(path.read_text().replace('{"add"', '{"add', 1))
    with pytest.raises(WarehouseError):
        Warehouse(Storage.at(folder)).writer()
    assert path.exists()


def without_file(folder: Path, first_entry: int) -> None:
    """The ledger's log says nothing any more of the file that begins with this entry."""
    for path in sorted((folder / "_epochs" / "_delta_log").glob("*.json")):
        lines = path.read_bytes().splitlines(keepends=True)
        said = f'"minValues\\":{{\\"entry\\":{first_entry}}}'.replace(" ", "").encode()
        kept = [line for line in lines if said not in line.replace(b" ", b"")]
        path.write_bytes(b"".join(kept))


@pytest.mark.parametrize("is_vacuumed", [False, True])
def test_a_ledger_that_lost_its_beginning_is_told(tmp_path: Path, is_vacuumed: bool) -> None:
    """Its other files follow each other, so that nothing but the beginning shows it."""
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        writer.commit(creating("v"))
        for txn in range(1, 3):
            writer.commit(step(txn, "v"))
        if is_vacuumed:
            vacuum(writer, Retention(transactions=1, seconds=0, grace_seconds=0))
        for txn in range(3, 6):
            writer.commit(step(txn, "v"))
    first = warehouse.history()[0].entry
    assert bool(first) == is_vacuumed
    without_file(tmp_path / "w", first)
    with pytest.raises(WarehouseError) as caught:
        Warehouse.open(tmp_path / "w").history()
    assert caught.value.code == "ledger-damaged"
    assert not verify(Storage.at(tmp_path / "w")).as_dict()["ok"]


def test_an_entry_that_is_not_in_the_chain_is_told() -> None:
    first = commits.first_entry(writer.system_clock())
    one = chained(first, None)
    two = chained(commits.quiet_entry(one, "lease", writer.system_clock()), one)
    assert from_arrow(to_arrow([one, two])) == (one, two)
    with pytest.raises(WarehouseError, match="ledger-damaged"):
        from_arrow(to_arrow([one, replace(two, last_txn=5)]))
    with pytest.raises(WarehouseError, match="ledger-damaged"):
        from_arrow(to_arrow([replace(one, chain="0" * 32), two]))


def test_a_head_that_rotted_says_nothing(folder: Path) -> None:
    right = rows(Warehouse.open(folder))
    good = (folder / FILE).read_bytes()
    for number in range(len(good)):
        flip(folder / FILE, number / len(good), number % 8)
        assert rows(Warehouse.open(folder)) == right
        (folder / FILE).write_bytes(good)


def test_an_older_copy_of_the_whole_warehouse_is_told(folder: Path, tmp_path: Path) -> None:
    project, copy = tmp_path / "project", tmp_path / "copy"
    shutil.copytree(folder, copy)
    with Warehouse.open(folder).writer() as writer:
        writer.remember = lambda entry: remember(project, writer.storage, entry)
        writer.commit(step(STEPS + 1))
        storage = writer.storage
        refuse_older(project, storage)
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    assert rows(Warehouse.open(folder))  # right in itself
    with pytest.raises(WarehouseError, match="warehouse-older"):
        refuse_older(project, storage)
    # Another history of the same length is another warehouse, too.
    with Warehouse.open(folder).writer() as writer:
        writer.commit(EpochCommit(STEPS + 1, STEPS + 1, {"v": changes((9, "x", 1, STEPS + 1))}))
    with pytest.raises(WarehouseError, match="warehouse-older"):
        refuse_older(project, storage)


# -- small files beside ---------------------------------------------------------------------------


def every_flip(path: Path) -> Iterator[None]:
    """The file with each of its bytes changed by one bit, one after the other."""
    good = path.read_bytes()
    for number in range(len(good)):
        for bit in (0, 4):
            content = bytearray(good)
            content[number] ^= 1 << bit
            path.write_bytes(content)
            yield
    path.write_bytes(good)


def test_a_rotten_lease_never_stops_anybody_without_a_name(folder: Path) -> None:
    path = folder / "_lease.json"
    with Warehouse.open(folder).writer():
        held = path.read_bytes()
    path.write_bytes(held)
    for _ in every_flip(path):
        with contextlib.suppress(WarehouseError):
            check_free(Storage.at(folder), writer.system_clock())


def test_rotten_files_of_a_run_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".viewkeeper" / "run.json"
    said = {
        "pid": 1,
        "state": "running",
        "views": {"v": {"level": "strong"}},
        "standing": {"approvals": []},
    }
    write_json(path, said)
    for _ in every_flip(path):
        assert read_run_state(tmp_path)["state"]


def test_a_panic_of_delta_rs_has_a_name() -> None:
    class PanicException(BaseException):
        pass

    with pytest.raises(WarehouseError, match="could not open it"), storage_errors("open it"):
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), storage_errors("open it"):
        raise KeyboardInterrupt


# -- verify -----------------------------------------------------------------------------------------


def test_verify_names_file_view_and_states(folder: Path) -> None:
    storage = Storage.at(folder)
    good = verify(storage)
    assert (good.damages, good.unchecked) == ([], 0)
    assert good.files > 3
    assert good.entries > STEPS
    path = files(folder, "v")[0]
    flip(path)
    (damage,) = verify(storage).damages
    assert (damage.view, damage.states) == ("v", (3, STEPS))
    assert damage.file == f"views/v/{path.name}"
    assert [d.view for d in verify(storage, ["w"]).damages] == []
    told: list[tuple[int, int]] = []
    verify(storage, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] == good.size


def test_verify_looks_at_older_states_and_published_tables(folder: Path) -> None:
    older = {p.name for p in (folder / "views" / "w").glob("*.parquet")}
    older -= {p.name for p in files(folder, "w")}
    flip(folder / "views" / "w" / sorted(older)[0])
    flip(next((folder / "published" / "p").glob("rows-*/*.parquet")))
    found = verify(Storage.at(folder)).damages
    assert sorted(damage.view for damage in found) == ["p", "w"]
    assert all(damage.states[1] <= 3 for damage in found)


def test_verify_tells_of_a_damaged_ledger(folder: Path) -> None:
    last_commit(folder, "_epochs").unlink()
    (damage,) = verify(Storage.at(folder)).damages
    assert (damage.view, damage.error.code) == ("the ledger", "ledger-behind")


# -- warehouses of before ---------------------------------------------------------------------------


@pytest.fixture
def old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A warehouse as an older Viewkeeper left it: no hashes, no seals, no chain, no head."""
    with monkeypatch.context() as then:
        for module in (datafiles, ledger):
            then.setattr(
                module,
                "checked_name",
                lambda purpose, content: f"{purpose}-{id(content)}{len(content)}.parquet",
            )
        then.setattr(commits, "seal_of", lambda files: "")
        for module in (ledger, writer):
            then.setattr(module, "chained", lambda entry, before: entry)
        then.setattr(Writer, "_seal_old", lambda self: None)
        then.setattr(Writer, "_tell_head", lambda self, entry: None)
        with Warehouse.create(tmp_path / "w").writer() as old:
            old.commit(creating("v", "w"))
            old.commit(step(1, "v", "w"))
    return tmp_path / "w"


def test_an_older_warehouse_is_read_sealed_and_told_of(old_folder: Path) -> None:
    assert not (old_folder / FILE).exists()
    assert not any(checksum_in(p.name) for p in old_folder.rglob("*.parquet"))
    warehouse = Warehouse.open(old_folder)
    assert rows(warehouse) == [(1, 1), (1, 2)]
    found = verify(warehouse.storage)
    assert (found.damages, found.unchecked) == ([], 4)
    with warehouse.writer() as now:
        assert all(state.seal for state in now.latest.views.values())
        now.commit(step(2, "v", "w"))
        consolidate(now, fold_all=True)
    assert rows(warehouse) == [(1, 1), (1, 2), (2, 1)]
    assert all(checksum_in(p.name) for p in files(old_folder, "v"))
    last_commit(old_folder, "views/v").unlink()
    assert damage_of(old_folder).keys() == {"v"}


def test_a_log_of_another_table_is_told(folder: Path) -> None:
    place = Path("_delta_log") / f"{0:020}.json"
    shutil.copyfile(folder / "_epochs" / place, folder / "views" / "v" / place)
    with pytest.raises(WarehouseError, match="file-damaged"):
        rows(Warehouse.open(folder))
    assert damage_of(folder) == {"v": "file-damaged"}
