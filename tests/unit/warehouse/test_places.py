"""Places in the sources' orders: the sources' own word, and a ledger that has them or not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.warehouse.entries_for_tests import source_places
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.sources.mariadb.position import Place as LogPlace
from viewkeeper.sources.mariadb.position import compare as compare_mariadb
from viewkeeper.sources.mariadb.position import place_of as log_place_of
from viewkeeper.sources.postgres.position import compare as compare_postgres
from viewkeeper.sources.postgres.position import make_position
from viewkeeper.sources.sqlite.position import Place as SQLitePlace
from viewkeeper.sources.sqlite.position import position_of as sqlite_position
from viewkeeper.sources.sqlite.source import SQLiteSource
from viewkeeper.warehouse import (
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Retention,
    Warehouse,
    ledger,
    vacuum,
)
from viewkeeper.warehouse.entries import LEDGER_SCHEMA, PLACES, to_arrow
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.places import DifferentHistory, Place, Places, place_of

SMALL = st.integers(0, 3)


def order_of(left: Any, right: Any) -> int:
    one, other = place_of(left), place_of(right)
    return (not one.is_upto(other)) - (not other.is_upto(one))


@given(SMALL, SMALL, SMALL, SMALL)
def test_places_of_postgres_are_in_its_own_order(a: int, b: int, c: int, d: int) -> None:
    left, right = make_position("7", 1, a, b), make_position("7", 1, c, d)
    assert order_of(left, right) == compare_postgres(left, right, "shop")


@given(SMALL, SMALL, SMALL, SMALL)
def test_places_of_mariadb_are_in_its_own_order(a: int, b: int, c: int, d: int) -> None:
    left, right = (
        LogPlace(f"my.bin.{file:06}", offset).as_position() for file, offset in ((a, b), (c, d))
    )
    wanted = compare_mariadb(log_place_of(left), log_place_of(right), "crm")
    assert order_of(left, right) == wanted


@given(SMALL, SMALL, SMALL, SMALL)
def test_places_of_sqlite_are_in_its_own_order(a: int, b: int, c: int, d: int) -> None:
    left, right = (
        sqlite_position(SQLitePlace("h", seq, seq * 7, schema)) for seq, schema in ((a, b), (c, d))
    )
    source: Any = SimpleNamespace(name="geo")
    assert order_of(left, right) == SQLiteSource.compare_positions(source, left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (make_position("7", 1, 5), make_position("7", 2, 5)),
        (LogPlace("a.000001", 4).as_position(), LogPlace("b.000001", 4).as_position()),
        (sqlite_position(SQLitePlace("h", 1, 0)), sqlite_position(SQLitePlace("g", 1, 0))),
        ("a position of its own kind", "another"),
    ],
)
def test_places_of_different_logs_are_not_compared(left: Any, right: Any) -> None:
    with pytest.raises(DifferentHistory):
        place_of(left).is_upto(place_of(right))
    assert place_of(left).is_upto(place_of(left))


def changed(txn: int) -> Changes:
    return Changes(pa.table({"id": [txn], "_count": [1], "_txn": [txn]}))


def places(txn: int) -> str:
    found = source_places([(0, Place("h", (txn, 0)))])
    return Places(frozenset({"v"}), {"shop": found}).encoded()


def commit(writer: Any, first: int, last: int) -> None:
    for txn in range(first, last + 1):
        cuts = {"v": {"shop": {"seq": txn, "history": "h"}}}
        writer.commit(EpochCommit(txn, txn, {"v": changed(txn)}, cuts=cuts, places=places(txn)))


@pytest.mark.thorough
def test_a_ledger_of_before_is_gone_on_with(tmp_path: Path, monkeypatch: Any) -> None:
    before = LEDGER_SCHEMA.remove(LEDGER_SCHEMA.get_field_index(PLACES))
    with monkeypatch.context() as then:
        then.setattr(ledger, "LEDGER_SCHEMA", before)
        then.setattr(ledger, "to_arrow", lambda entries: to_arrow(entries).drop_columns([PLACES]))
        then.setattr(Ledger, "_tables", _tables_of_before)
        warehouse = Warehouse.create(tmp_path / "w")
        with warehouse.writer() as writer:
            whole = Extent(pa.table({"id": [0], "_count": [1]}))
            defined = {"v": Definition(Schema.of(id=INTEGER))}
            writer.commit(EpochCommit(1, 0, {"v": whole}, definitions=defined))
            commit(writer, 1, 20)
    with warehouse.writer() as writer:
        commit(writer, 21, 60)
    found = list(Ledger.open(warehouse.storage).backwards(warehouse.latest().entry))
    assert [e.entry for e in found] == list(reversed(range(found[0].entry + 1)))
    told = {e.last_txn: e.places for e in found if e.places}
    assert told == {txn: places(txn) for txn in range(21, 61)}
    # Ordinary reads leave them alone.
    assert not any(e.places for e in warehouse.history())
    assert warehouse.read_arrow("v", 30).num_rows == 31


def _tables_of_before(self: Ledger, files: Any, columns: Any = None) -> list[pa.Table]:
    import pyarrow.parquet as pq

    return [pq.read_table(self._storage.path(ledger.FOLDER, file.path)) for file in files]


def test_vacuum_keeps_the_places_of_the_states_that_stay(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        whole = Extent(pa.table({"id": [0], "_count": [1]}))
        defined = {"v": Definition(Schema.of(id=INTEGER))}
        writer.commit(EpochCommit(1, 0, {"v": whole}, definitions=defined))
        commit(writer, 1, 40)
        vacuum(writer, Retention(10, 0, 0))
    found = list(Ledger.open(warehouse.storage).backwards(warehouse.latest().entry))
    told = {e.last_txn: e.places for e in found if e.places}
    assert told == {txn: places(txn) for txn in range(30, 41)}


def test_going_back_reads_no_more_files_than_it_needs(tmp_path: Path, monkeypatch: Any) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        whole = Extent(pa.table({"id": [0], "_count": [1]}))
        defined = {"v": Definition(Schema.of(id=INTEGER))}
        writer.commit(EpochCommit(1, 0, {"v": whole}, definitions=defined))
        commit(writer, 1, 50)
    opened: list[int] = []
    read = Ledger._tables

    def counted(self: Ledger, files: Any, columns: Any = None) -> Any:
        opened.append(len(files))
        return read(self, files, columns)

    monkeypatch.setattr(Ledger, "_tables", counted)
    back = Ledger.open(warehouse.storage).backwards(warehouse.latest().entry)
    assert [next(back).last_txn for _ in range(3)] == [50, 49, 48]
    assert sum(opened) <= 4


@pytest.mark.thorough
def test_a_past_state_is_found_without_reading_what_came_before(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        whole = Extent(pa.table({"id": [0], "_count": [1]}))
        defined = {"v": Definition(Schema.of(id=INTEGER))}
        writer.commit(EpochCommit(1, 0, {"v": whole}, definitions=defined))
        commit(writer, 1, 70)
    every = warehouse.history()
    for txn in range(71):
        found = Ledger.open(warehouse.storage).since(txn)
        position = max(n for n, e in enumerate(every) if e.serves_from <= txn)
        assert found == every[position:]
        assert warehouse.read_arrow("v", txn).num_rows == txn + 1
    assert Ledger.open(warehouse.storage).since(-1) == every
