"""What a table refuses, and what it keeps in mind."""

from __future__ import annotations

import pytest

from unit.merging.messages_for_tests import al, rel, rows_of
from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import ActionList, WarehouseCommitted


def test_relevance_must_come_in_order() -> None:
    process = MergeProcess("x")
    process.step(rel(2, "x"))
    with pytest.raises(InvariantViolated, match="out of order"):
        process.step(rel(1, "x"))


def test_a_list_for_a_row_that_does_not_concern_its_view_is_refused() -> None:
    process = MergeProcess("xy")
    process.step(rel(1, "x"))
    with pytest.raises(InvariantViolated, match="does not wait for it"):
        process.step(al("y", 1))


def test_a_list_that_comes_twice_is_refused() -> None:
    process = MergeProcess("xy")
    process.step(rel(1, "x", "y"))
    process.step(al("x", 1))
    with pytest.raises(InvariantViolated, match="the cell is red"):
        process.step(al("x", 1))


@pytest.mark.parametrize("rows", [(), (2, 1), (1, 1)])
def test_an_action_list_covers_rows_in_ascending_order(rows) -> None:
    with pytest.raises(InvariantViolated):
        ActionList("x", rows)


def test_a_purged_row_is_gone_and_its_stream_is_not() -> None:
    process = MergeProcess("xy")
    process.step(rel(1, "x", streams="s"))
    (commit,) = process.step(al("x", 1))
    process.step(rel(2, "y", streams="s"))
    assert list(process.table.rows) == [2]
    # Row 1 is with the warehouse and not committed: row 2, of other views, must not overtake it.
    assert process.step(al("y", 2)) == ()
    assert rows_of(process.step(WarehouseCommitted(commit.number))) == [(2,)]


def test_a_list_that_skips_a_row_goes_before_the_one_that_takes_it_up() -> None:
    """Nested SWEEP may cover rows 1 and 3, and row 2 later."""
    process = MergeProcess("x")
    for row in (1, 2, 3):
        process.step(rel(row, "x"))
    assert rows_of(process.step(al("x", 1, 3))) == [(1, 3)]
    assert process.step(al("x", 2)) == ()
    assert rows_of(process.step(WarehouseCommitted(1))) == [(2,)]


def test_a_list_that_skips_a_row_waits_with_a_view_that_does_not() -> None:
    process = MergeProcess("xy")
    for row in (1, 2, 3):
        process.step(rel(row, "x", "y"))
    for row in (1, 2, 3):
        assert process.step(al("y", row)) == ()
    assert process.step(al("x", 1, 3)) == ()
    (commit,) = process.step(al("x", 2))
    assert commit.rows == (1, 2, 3)
    assert [str(a) for a in commit.lists if a.view == "x"] == ["AL_3^x", "AL_2^x"]


def test_an_action_list_names_its_last_row() -> None:
    assert str(ActionList("x", (2, 5))) == "AL_5^x"
