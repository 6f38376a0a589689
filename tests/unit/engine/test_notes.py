"""When the ledger is told of positions that bring no rows."""

from __future__ import annotations

import pytest

from viewkeeper.engine.notes import Notes
from viewkeeper.simulator.engine.sources import compare, position

IDLE_SECONDS = 30.0


@pytest.fixture
def notes() -> Notes:
    return Notes({"s": position(1)}, compare)


def is_due(notes: Notes, at: int, now: float = 0.0) -> bool:
    return notes.is_due({"s": position(at)}, now, IDLE_SECONDS)


def test_positions_are_noted_now_and_then(notes):
    notes.note({"s": position(2)}, 100.0)
    assert not is_due(notes, 3, 129.0)
    assert is_due(notes, 3, 130.0)


def test_a_position_that_somebody_waits_for_is_noted_as_soon_as_it_is_passed(notes):
    notes.want("s", position(5))
    assert not is_due(notes, 4)
    assert is_due(notes, 5)
    notes.note({"s": position(4)}, 0.0)
    assert is_due(notes, 6)
    notes.note({"s": position(6)}, 0.0)
    assert not is_due(notes, 7)


def test_the_latest_of_the_positions_that_are_waited_for_counts(notes):
    for at in (3, 9, 5):
        notes.want("s", position(at))
    notes.note({"s": position(5)}, 0.0)
    assert not is_due(notes, 8)
    assert is_due(notes, 9)


def test_what_is_waited_for_elsewhere_makes_nothing_due_here(notes):
    notes.want("other", position(1))
    assert not is_due(notes, 9)
    notes.note({"s": position(9)}, 0.0)
    assert not notes.is_due({"other": position(9)}, 0.0, IDLE_SECONDS)


def test_soon_means_with_the_next_chance_and_once(notes):
    notes.is_soon = True
    assert is_due(notes, 1)
    notes.note({"s": position(1)}, 0.0)
    assert not is_due(notes, 1)


def test_the_ledger_has_what_is_not_behind_its_note(notes):
    assert [notes.has("s", position(at)) for at in (0, 1, 2)] == [True, True, False]
    assert not notes.has("other", position(0))
