"""The one hand that commits: what it says of groups that have nothing to commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from unit.warehouse.entries_for_tests import source_places
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.live.epochs import Epochs
from viewkeeper.warehouse import Definition, EpochCommit, Extent, Warehouse
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.places import Place, Places, place_of

SCHEMA = Schema.of(id=INTEGER)


def at(seq: int) -> dict[str, Any]:
    return {"seq": seq, "history": "h"}


def compare(left: Any, right: Any) -> int:
    return (left["seq"] > right["seq"]) - (left["seq"] < right["seq"])


class Rig:
    """Three views of three groups; two of them read the same source."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse.create(folder)
        self.writer = self.warehouse.writer()
        sources: Any = {n: SimpleNamespace(compare_positions=compare) for n in ("shop", "crm")}
        self.confirmed: dict[str, Any] = {}
        self.epochs = Epochs(self.writer, sources, self.confirmed.update)
        cuts = {
            "orders": {"shop": at(0)},
            "invoices": {"shop": at(0)},
            "customers": {"crm": at(0)},
        }
        empty = pa.table({"id": pa.array([], pa.int64()), "_count": pa.array([], pa.int64())})
        self.writer.commit(
            EpochCommit(
                1,
                0,
                {view: Extent(empty) for view in cuts},
                definitions={view: Definition(SCHEMA) for view in cuts},
                cuts=cuts,
            )
        )

    def apply(self, view: str, source: str, *places: int) -> None:
        states = list(range(len(places)))
        rows = pa.table({"id": list(places), "_count": [1] * len(places), "_txn": states})
        told = source_places([(n, Place("h", (p, 0))) for n, p in zip(states, places, strict=True)])
        self.epochs.apply(
            pa.array(states).to_numpy(),
            states,
            {view: [rows]},
            {view: {source: at(places[-1])}},
            lambda: {source: told},
        )

    def standing(self, view: str) -> int:
        (position,) = self.writer.latest.views[view].positions.values()
        return place_of(position).order[0]

    def read(self, txn: int | None = None) -> tuple[list[int], list[int]]:
        snapshot = self.warehouse.snapshot(txn, ["orders", "invoices"])
        return tuple(
            sorted(snapshot.read_arrow(view)["id"].to_pylist()) for view in ("orders", "invoices")
        )


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "w")
    yield rig
    rig.writer.close()


def test_the_next_entry_says_how_far_a_group_at_rest_has_come(rig: Rig) -> None:
    rig.epochs.rest({"orders": {"shop": at(7)}})
    before = rig.writer.latest.entry
    assert rig.standing("orders") == 0
    rig.apply("invoices", "shop", 5)
    assert (rig.standing("orders"), rig.standing("invoices")) == (7, 5)
    assert rig.writer.latest.entry == before + 1
    assert rig.read() == ([], [5])
    # What every view has, its source may forget.
    assert rig.confirmed["shop"] == at(5)


def test_a_group_that_holds_readers_back_says_at_once_that_it_has_passed(rig: Rig) -> None:
    rig.apply("invoices", "shop", 5)
    assert rig.read() == ([], [])
    rig.epochs.rest({"orders": {"shop": at(4)}})
    rig.epochs.rest({"orders": {"shop": at(6)}})
    assert rig.standing("orders") == 6
    assert rig.read() == ([], [5])
    # Nobody is ahead of it now: what comes next can wait for the next entry.
    entry = rig.writer.latest.entry
    rig.epochs.rest({"orders": {"shop": at(8)}})
    assert rig.writer.latest.entry == entry


def test_what_it_says_when_it_commits_is_newer_than_what_it_said_at_rest(rig: Rig) -> None:
    rig.epochs.rest({"orders": {"shop": at(3)}})
    rig.apply("orders", "shop", 9)
    rig.apply("invoices", "shop", 5)
    assert rig.standing("orders") == 9
    assert rig.read() == ([], [5])


def test_a_word_that_comes_during_a_commit_is_not_lost(rig: Rig, monkeypatch: Any) -> None:
    written = rig.writer.commit

    def and_then(commit: EpochCommit) -> Any:
        monkeypatch.setattr(rig.writer, "commit", written)
        entry = written(commit)
        rig.epochs._at_rest["orders"] = {"shop": at(6)}
        return entry

    monkeypatch.setattr(rig.writer, "commit", and_then)
    rig.apply("invoices", "shop", 5)
    assert rig.standing("orders") == 6
    assert rig.read() == ([], [5])


def test_places_are_told_only_where_another_group_reads_the_source(rig: Rig) -> None:
    rig.apply("customers", "crm", 1)
    rig.apply("orders", "shop", 2, 3)
    newest, before = list(Ledger.open(rig.warehouse.storage).backwards(99))[:2]
    assert before.places == ""
    told = Places.decoded(newest.places)
    assert told.views == {"orders"}
    assert [told.sources["shop"].place(n).order[0] for n in (0, 1)] == [2, 3]


def test_every_transaction_of_an_epoch_can_be_a_cut_of_both(rig: Rig) -> None:
    rig.apply("invoices", "shop", 2, 4, 6)
    rig.apply("orders", "shop", 1, 3, 5)
    found = [rig.read(txn) for txn in range(7)]
    assert found == [
        ([], []),
        ([], []),
        ([], []),
        ([], []),
        ([1], [2]),
        ([1, 3], [2, 4]),
        ([1, 3, 5], [2, 4]),
    ]


def test_what_was_said_at_rest_never_takes_a_view_back(rig: Rig) -> None:
    rig.epochs.rest({"orders": {"shop": at(3)}})
    # Somebody else brought it further, or to another log.
    for position in (at(8), {"seq": 1, "history": "another"}):
        last = rig.writer.latest.last_txn
        rig.writer.commit(EpochCommit(last + 1, last, cuts={"orders": {"shop": position}}))
        rig.apply("customers", "crm", last + 1)
        assert rig.writer.latest.views["orders"].positions["shop"] == position


def test_a_ledger_that_lost_the_publish_header_is_told_of_it(rig: Rig) -> None:
    """Views that an older version stored have the header in their text alone."""
    wanted: Any = SimpleNamespace(name="orders", stored=lambda: Definition(SCHEMA, publish=True))
    plain: Any = SimpleNamespace(name="invoices", stored=lambda: Definition(SCHEMA))
    before = rig.writer.latest
    rig.epochs.declare_published([wanted, plain])
    after = rig.writer.latest
    assert (after.entry, after.last_txn) == (before.entry + 1, before.last_txn)
    assert after.views["orders"].definition.publish
    assert after.views["orders"].incarnation == before.views["orders"].incarnation
    rig.epochs.declare_published([wanted, plain])
    assert rig.writer.latest.entry == after.entry
