from __future__ import annotations

import pytest

from unit.warehouse.entries_for_tests import LedgerMaker, state
from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import UsageError
from viewkeeper.warehouse.entries import Definition
from viewkeeper.warehouse.states import Segment, position_at, segments, serving


def ledger() -> LedgerMaker:
    """Transactions 1-10 and 11-20, a fold at 20 that ends after 21-30 came, then 31-40."""
    return (
        LedgerMaker()
        .epoch(10, v=state(1))
        .epoch(10, v=state(2))
        .epoch(10, v=state(3))
        .quiet("consolidation", v=state(4, 20))
        .epoch(10, v=state(5, 20))
    )


def test_a_state_is_shown_by_the_last_entry_that_reaches_it() -> None:
    entries = ledger().entries
    assert [position_at(entries, txn) for txn in (0, 1, 10, 11, 29, 30, 31, 40)] == [
        0, 1, 1, 2, 3, 4, 5, 5,
    ]  # fmt: skip


def test_a_state_not_yet_reached_and_one_no_longer_kept_are_refused() -> None:
    entries = ledger().entries
    with pytest.raises(UsageError, match="there is no state 41 yet"):
        position_at(entries, 41)
    with pytest.raises(UsageError, match="state -1 is no longer kept"):
        position_at(entries, -1)


def test_a_state_is_read_from_the_last_version_that_has_not_folded_it_away() -> None:
    entries = ledger().entries
    found = {txn: serving(entries, "v", txn).version for txn in (1, 15, 19, 20, 25, 30, 40)}
    assert found == {1: 3, 15: 3, 19: 3, 20: 5, 25: 5, 30: 5, 40: 5}


def test_no_version_of_another_incarnation_serves_a_state() -> None:
    maker = ledger()
    maker.epoch(1, v=state(6, 41, incarnation=6, since=41))
    assert serving(maker.entries, "v", 40).version == 5
    assert serving(maker.entries, "v", 41).version == 6


def test_a_view_that_is_not_there_yet_or_any_more_is_refused_with_its_time() -> None:
    maker = ledger()
    maker.epoch(1, w=state(1, 41, incarnation=6, since=41))
    with pytest.raises(UsageError) as found:
        serving(maker.entries, "w", 40)
    assert found.value.detail == "it is in the warehouse from 41 on"
    with pytest.raises(UsageError) as found:
        serving(maker.entries, "v", 41)
    assert found.value.detail == "it is in the warehouse from 0 on and was dropped since"
    with pytest.raises(UsageError, match="there is no view x"):
        serving(maker.entries, "x", 41)


def test_the_change_feed_crosses_a_fold_without_gap_or_overlap() -> None:
    entries = ledger().entries
    assert segments(entries, "v", 5, 35) == (
        Segment(state(3), 5, 20),
        Segment(state(5, 20), 20, 35),
    )
    assert segments(entries, "v", 20, 40) == (Segment(state(5, 20), 20, 40),)
    assert segments(entries, "v", 3, 12) == (Segment(state(3), 3, 12),)
    assert segments(entries, "v", 30, 30) == ()


def test_the_change_feed_does_not_cross_a_replacement() -> None:
    maker = ledger()
    maker.epoch(2, v=state(6, 42, incarnation=6, since=42))
    with pytest.raises(UsageError, match="view-replaced"):
        segments(maker.entries, "v", 41, 42)
    with pytest.raises(UsageError, match="empty-range"):
        segments(maker.entries, "v", 5, 4)


@pytest.mark.parametrize(
    ("effect", "ending"),
    [("retired", "retired"), ("stopped", "stopped"), ("renamed", ""), (None, "")],
)
def test_a_view_that_a_schema_change_ended_says_how(effect: str | None, ending: str) -> None:
    story = None if effect is None else {"effect": effect, "reason": "…"}
    definition = Definition(Schema.of(a=INTEGER), evolved=story)
    assert (definition.ending, definition.has_ended) == (ending, bool(ending))
