from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from unit.warehouse.entries_for_tests import NOON, SCHEMA, LedgerMaker, log_file, state
from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.errors import InvariantViolated, UsageError
from viewkeeper.warehouse.commits import (
    Changes,
    EpochCommit,
    Extent,
    check,
    check_written,
    epoch_entry,
)
from viewkeeper.warehouse.datafiles import Written
from viewkeeper.warehouse.entries import Definition, Tally, from_arrow, to_arrow, views_to_json

LATEST = LedgerMaker().epoch(5, v=state(3)).entries[-1]
ROWS = Changes(pa.table({}))
WHOLE = Extent(pa.table({}))
OTHER = Definition(Schema.of(id=INTEGER), "SELECT id")


@pytest.mark.parametrize(("first", "last"), [(5, 6), (7, 8), (6, 4), (1, 5)])
def test_an_epoch_must_follow_the_last_one_without_gap_or_overlap(first: int, last: int) -> None:
    with pytest.raises(InvariantViolated, match="out of order"):
        check(EpochCommit(first, last), LATEST)


def test_epochs_with_one_many_and_no_transactions_may_follow() -> None:
    for last in (5, 6, 60):
        check(EpochCommit(6, last, {"v": ROWS}), LATEST)


@pytest.mark.parametrize(
    ("commit", "complaint"),
    [
        (EpochCommit(6, 6, {"new": ROWS}), "never defined"),
        (EpochCommit(6, 6, definitions={"new": OTHER}), "whole extent must come"),
        (EpochCommit(6, 6, {"new": ROWS}, definitions={"new": OTHER}), "whole extent must come"),
        (EpochCommit(6, 6, {"v": ROWS}, definitions={"v": OTHER}), "whole extent must come"),
        (EpochCommit(6, 6, dropped=frozenset({"new"})), "not there"),
        (EpochCommit(6, 6, {"v": ROWS}, dropped=frozenset({"v"})), "dropped and changed"),
    ],
)
def test_an_epoch_that_makes_no_sense_is_refused(commit: EpochCommit, complaint: str) -> None:
    with pytest.raises(InvariantViolated, match=complaint):
        check(commit, LATEST)


def test_a_new_text_for_the_same_columns_needs_no_new_extent() -> None:
    text = Definition(SCHEMA, "SELECT id, name FROM renamed")
    commit = EpochCommit(6, 6, definitions={"v": text})
    check(commit, LATEST)
    after = epoch_entry(commit, LATEST, {}, {}, NOON).views["v"]
    assert after == replace(state(3), definition=text, definition_version=2)


@pytest.mark.parametrize("name", ["", "_v", "a b", "a/b", "..", "a.b", "V"])
def test_names_that_can_not_be_folders_and_tables_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="bad-view-name"):
        check(EpochCommit(6, 6, {name: WHOLE}, definitions={name: OTHER}), LATEST)


@pytest.mark.parametrize("name", ["2024_sales", "größe", "注文"])
def test_names_in_any_script_are_taken(name: str) -> None:
    check(EpochCommit(6, 6, {name: WHOLE}, definitions={name: OTHER}), LATEST)


@pytest.mark.parametrize(
    "names", [["_count"], ["_TXN"], ["a", "A"], ["a b"], ["f(x)"], ["x=1"], ["tab\t"], [""], []]
)
def test_columns_that_a_delta_table_can_not_hold_are_refused(names: list[str]) -> None:
    schema = Schema.of(**dict.fromkeys(names, STRING))
    with pytest.raises(UsageError):
        check(EpochCommit(6, 6, {"w": WHOLE}, definitions={"w": Definition(schema)}), LATEST)


def test_rows_numbered_outside_their_epoch_are_refused() -> None:
    commit = EpochCommit(6, 8, {"v": ROWS})
    check_written(commit, "v", Written((log_file("a", 6, 8),), Tally()))
    for first, last in ((5, 8), (6, 9)):
        with pytest.raises(InvariantViolated, match="outside their epoch"):
            check_written(commit, "v", Written((log_file("a", first, last),), Tally()))


def test_an_extent_with_negative_counts_is_refused() -> None:
    with pytest.raises(InvariantViolated, match="negative"):
        check_written(EpochCommit(6, 6, {"v": WHOLE}), "v", Written((), Tally(1, 0, 1)))


def test_an_entry_carries_forward_what_the_epoch_does_not_mention() -> None:
    before = replace(LATEST, positions={"a": 1, "b": 2}, cut={"a": 9})
    commit = EpochCommit(6, 7, {"v": ROWS}, positions={"b": 3})
    written = {"v": Written((log_file("x", 6, 7, 4),), Tally(4, 3, 1))}
    entry = epoch_entry(commit, before, written, {"v": 8}, NOON)
    assert entry.positions == {"a": 1, "b": 3}
    assert entry.cut == {"a": 9}
    assert (entry.epoch, entry.first_txn, entry.last_txn) == (2, 6, 7)
    assert entry.views["v"] == replace(state(8), log_rows=4, log_files=1)
    assert entry.statistics == {"v": Tally(4, 3, 1)}


def test_entries_survive_the_ledger_s_table() -> None:
    entry = replace(LATEST, positions={"s": {"lsn": "0/16B3748", "timeline": 1}}, cut={"s": 5})
    assert from_arrow(to_arrow([entry, LATEST])) == (entry, LATEST)


def test_views_that_one_transaction_changes_stay_tied_and_learn_of_more() -> None:
    commit = EpochCommit(6, 6, {"v": ROWS}, ties=(frozenset({"v", "w"}),))
    written = {"v": Written((log_file("x", 6, 6, 1),), Tally(1, 1, 0))}
    entry = epoch_entry(commit, LATEST, written, {"v": 8}, NOON)
    assert entry.views["v"].tied == ("w",)
    (entry,) = from_arrow(to_arrow([entry]))
    later = EpochCommit(7, 6, ties=(frozenset({"v", "u"}),))
    assert epoch_entry(later, entry, {}, {}, NOON).views["v"].tied == ("u", "w")


def test_a_view_that_is_filled_anew_keeps_its_ties_and_one_of_another_text_has_none() -> None:
    views = {"v": replace(state(7), tied=("w",))}
    before = replace(LATEST, views_json=views_to_json(views))
    for text, tied in (("SELECT", ("w",)), ("SELECT 1", ())):
        commit = EpochCommit(6, 5, {"v": WHOLE}, definitions={"v": Definition(SCHEMA, text)})
        entry = epoch_entry(commit, before, {"v": Written((), Tally())}, {"v": 8}, NOON)
        assert entry.views["v"].tied == tied


def test_a_ledger_without_ties_reads_and_is_written_as_before() -> None:
    (old,) = json.loads(LATEST.views_json).values()
    assert "tied" not in old
    assert LATEST.views["v"].tied == ()
