"""Views read some rows at a time, and what an auditor makes of them: held against reading them at once."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from unit.warehouse.entries_for_tests import SCHEMA, LedgerMaker, state
from viewkeeper.spark.arrow import bag_of
from viewkeeper.warehouse import Changes, Definition, EpochCommit, Extent, Warehouse, consolidate
from viewkeeper.warehouse import reading as reading_module
from viewkeeper.warehouse.fingerprints import MODULUS, fingerprint, fingerprint_of
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.states import segments

EPOCHS = 24


def rows(rng: random.Random, number: int, txns: range, signs: tuple[int, ...]) -> pa.Table:
    picked = [(rng.randrange(40), rng.choice(["a", "b", None])) for _ in range(number)]
    return pa.table(
        {
            "id": pa.array([id for id, _ in picked], pa.int64()),
            "name": pa.array([name for _, name in picked], pa.string()),
            "_count": pa.array([rng.choice(signs) for _ in picked], pa.int64()),
            "_txn": pa.array([rng.choice(txns) for _ in picked], pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, dict[int, int]]:
    """A warehouse whose log was folded several times, and the number of the entry of every state."""
    rng = random.Random(5)
    warehouse = Warehouse.create(tmp_path_factory.mktemp("parts") / "w")
    entries = {}
    with warehouse.writer() as writer:
        every = [(id, name, 50) for id in range(40) for name in ("a", "b", None)]
        ids, names, counts = zip(*every, strict=True)
        whole = Extent(pa.table({"id": ids, "name": names, "_count": counts}))
        writer.commit(EpochCommit(1, 0, {"v": whole}, definitions={"v": Definition(SCHEMA)}))
        for epoch in range(EPOCHS):
            txns = range(1 + 3 * epoch, 4 + 3 * epoch)
            changed = Changes(rows(rng, 9, txns, (-1, 1)))
            writer.commit(EpochCommit(txns[0], txns[-1], {"v": changed}))
            if epoch % 5 == 4:
                consolidate(writer, fold_all=True)
            entries[txns[-1]] = writer.latest.entry
    return warehouse, entries


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "PART_ROWS", 4)


@pytest.mark.thorough
def test_the_fingerprint_of_the_parts_is_that_of_the_state(kept) -> None:
    warehouse, entries = kept
    for txn in entries:
        snapshot = warehouse.snapshot(txn)
        parts = list(snapshot.stored_parts("v"))
        assert max(part.num_rows for part in parts) <= 4
        assert fingerprint_of(parts) == fingerprint(snapshot.read_arrow("v", with_count=True))


@pytest.mark.thorough
def test_a_state_is_an_earlier_one_and_the_parts_of_what_changed_since(kept) -> None:
    warehouse, entries = kept
    prints = {txn: fingerprint_of(warehouse.snapshot(txn).stored_parts("v")) for txn in entries}
    for after, entry in entries.items():
        for upto in (txn for txn in entries if txn >= after):
            changes = warehouse.change_parts("v", after, upto, since_entry=entry)
            assert (prints[after] + fingerprint_of(changes)) % MODULUS == prints[upto]


def test_the_newest_state_is_found_without_the_ledgers_past(kept, monkeypatch) -> None:
    warehouse, entries = kept
    monkeypatch.setattr(Ledger, "entries", lambda *_: pytest.fail("reads the whole ledger"))
    assert warehouse.snapshot(max(entries)).read_arrow("v").num_rows


@pytest.mark.thorough
def test_rows_of_some_values_are_those_that_the_view_shows(kept) -> None:
    warehouse, entries = kept
    for txn in entries:
        snapshot = warehouse.snapshot(txn)
        shown = snapshot.read_arrow("v", with_count=True)
        expected = shown.filter(pc.is_in(shown["id"], value_set=pa.array([3, 17, 99])))
        found = snapshot.rows_with("v", "id", [3, 17, 99]).drop_columns(["_txn"])
        assert bag_of(found, SCHEMA) == bag_of(expected, SCHEMA)
    assert snapshot.rows_with("v", "id", []).num_rows == 0


def test_values_taken_by_chance_are_stored_ones_and_all_can_be_taken(kept) -> None:
    warehouse, _ = kept
    snapshot = warehouse.snapshot()
    stored = pa.concat_tables(list(snapshot.stored_parts("v")))
    for column in ("id", "name"):
        there = set(stored[column].drop_null().to_pylist())
        few = snapshot.some_values("v", column, 3, random.Random(1))
        assert 0 < len(few) <= 3
        assert set(few) <= there
        assert set(snapshot.some_values("v", column, 10_000, random.Random(1))) == there


def test_an_empty_view_has_no_values(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        nothing = Extent(rows(random.Random(1), 0, range(1), (1,)).drop_columns(["_txn"]))
        writer.commit(EpochCommit(1, 0, {"v": nothing}, definitions={"v": Definition(SCHEMA)}))
    assert warehouse.snapshot().some_values("v", "id", 5, random.Random(1)) == []


def test_changes_are_found_across_folds_although_the_view_was_another_one_before() -> None:
    maker = LedgerMaker()
    maker.epoch(5, v=state(1)).epoch(1).epoch(1, v=state(3, 7, incarnation=2, since=7))
    for fold in range(8, 14, 2):
        maker.epoch(2, v=state(fold, fold - 1, incarnation=2, since=7))
        maker.quiet("consolidation", v=state(fold + 1, fold + 1, incarnation=2, since=7))
    found = segments(maker.entries, "v", 7, 13)
    assert [(part.after, part.upto, part.state.version) for part in found] == [
        (7, 9, 8),
        (9, 11, 10),
        (11, 13, 12),
    ]
