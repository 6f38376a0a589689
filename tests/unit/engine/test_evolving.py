"""How a group takes schema changes, and which views it fills."""

from __future__ import annotations

from dataclasses import replace

from unit.engine.small_group import SmallGroup, renamed_column
from viewkeeper.engine import messages as out
from viewkeeper.simulator.engine.sources import position

APPROVED = {"A": "-- evolve: approve\nSELECT k, name FROM s.r", "B": "SELECT k FROM t.r"}


def due(group: SmallGroup, change) -> None:
    group.state.intake.due.append(change)
    group.state.intake.fed[change.source] = change.position


def test_what_waits_has_the_shape_of_after_and_the_ledger_hears_of_the_change():
    group = SmallGroup({"A": "SELECT k, name FROM s.r", "B": "SELECT k FROM t.r"})
    group.arrive("s")
    due(group, renamed_column("s", 2))
    assert group.evolving.take_next(0.0)
    (definitions,) = group.done(out.CommitDefinitions)
    assert [view.name for view in definitions.views] == ["A"]
    # The position is still before the change: the next run must not take it twice.
    assert [change.position for change in definitions.taken] == [position(2)]
    assert len(group.state.intake.integrator.pending) == 1


def test_a_change_that_somebody_must_approve_is_taken_when_it_is():
    group = SmallGroup(APPROVED)
    change = renamed_column("s", 1)
    due(group, change)
    assert not group.evolving.take_next(0.0)
    (asked,) = group.done(out.LookForDecision)
    assert group.evolving.waits_for_decision is change
    group.evolving.decide(asked.plan.reported, "approve")
    assert group.evolving.take_next(0.0)
    assert group.evolving.waits_for_decision is None


def test_rows_after_a_rewrite_are_claimed_for_where_the_feed_stands():
    group = SmallGroup()
    change = renamed_column("s", 4)
    due(group, replace(change, after=change.before, renamed_columns={}, rewrites=True))
    group.evolving.take_next(0.0)
    assert group.state.pending.new == ("A",)
    assert group.state.pending.jumps == {"s": position(4)}
    group.evolving.fill(1, group.snapshots())
    (fill,) = group.done(out.FillViews)
    assert fill.positions == {"A": {"s": position(4)}, "B": {"t": position(0)}}
    # Told as applied only when the rows are there.
    assert [told.is_applied for told in group.done(out.TellChange)] == []
    group.evolving.take_filling({"A": group.state.scope.views["A"]}, 0.0)
    assert [told.is_applied for told in group.done(out.TellChange)] == [True]


def test_views_that_no_relation_holds_together_any_more_are_tied():
    group = SmallGroup()
    due(group, renamed_column("s", 1))
    group.evolving.take_next(0.0)
    (tied,) = group.done(out.TieViews)
    assert tied.views == frozenset("AB")
