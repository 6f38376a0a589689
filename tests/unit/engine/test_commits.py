"""What goes to the warehouse, and which positions go with it."""

from __future__ import annotations

from unit.engine.small_group import SmallGroup, renamed_column
from viewkeeper.engine import messages as out
from viewkeeper.simulator.engine.sources import position


def test_a_commit_has_the_positions_of_what_it_shows_and_of_what_was_nothing_for_the_views():
    group = SmallGroup()
    group.arrive("s")
    (job,) = group.begin()
    group.arrive("t")
    (commit,) = group.compute(job)
    # B has a transaction that waits: its source has not been passed.
    assert commit.positions == {"A": {"s": position(1)}, "B": {"t": position(0)}}


def test_positions_do_not_pass_a_schema_change_that_is_not_taken():
    group = SmallGroup()
    group.arrive("s")
    (job,) = group.begin()
    group.write("t")
    group.state.intake.due.append(renamed_column("t", 1))
    group.state.intake.fed["t"] = position(1)
    (commit,) = group.compute(job)
    assert commit.positions["B"] == {"t": position(0)}


def test_nothing_counts_as_reached_before_the_warehouse_has_it():
    group = SmallGroup()
    group.arrive("s")
    (job,) = group.begin()
    (commit,) = group.compute(job)
    assert group.state.reached["s"] == position(0)
    group.commits.take(commit.number, 0.0)
    assert group.state.reached["s"] == position(1)


def test_each_transaction_is_a_state_where_every_view_is_complete():
    group = SmallGroup()
    group.arrive("s")
    group.arrive("s")
    (job,) = group.begin()
    (commit,) = group.compute(job)
    assert list(commit.states) == [0, 1]
    periodic = "-- protocol: periodic\n-- every: 1 s\n-- consistency: strong\nSELECT k FROM s.r"
    weak = SmallGroup({"A": periodic, "B": "SELECT k FROM t.r"}, heeds_periods=False)
    weak.arrive("s")
    weak.arrive("s")
    (commit,) = weak.compute(*weak.begin())
    assert list(commit.states) == [0, 0]


def test_positions_without_rows_are_noted_and_not_while_a_change_is_due():
    group = SmallGroup()
    group.state.notes.is_soon = True
    group.state.intake.fed["s"] = position(3)
    group.state.intake.due.append(renamed_column("t", 1))
    group.commits.note_positions(0.0)
    assert group.done(out.Note) == []
    group.state.intake.due.clear()
    group.commits.note_positions(0.0)
    (note,) = group.done(out.Note)
    assert (note.reached["s"], note.is_durable) == (position(3), True)
