"""What a group reads, and what its parts have in common."""

from __future__ import annotations

from unit.engine.small_group import SmallGroup
from viewkeeper.simulator.engine.sources import position

SHARED = {"A": "SELECT s.k FROM s.r s JOIN t.r t ON s.k = t.k", "B": "SELECT k FROM t.r"}


def test_the_views_that_a_change_concerns_are_those_that_read_the_relation():
    group = SmallGroup(SHARED)
    for source in ("t", "s"):
        group.write(source)
        group.deliver(source)
    at_t, at_s = group.state.intake.integrator.pending
    concerned = group.state.scope.relevance.concerned
    assert concerned([at_t]) == ("A", "B")
    assert concerned([at_s]) == ("A",)
    assert concerned([]) == ()


def test_a_views_cut_has_the_sources_that_it_reads_and_no_other():
    scope = SmallGroup(SHARED).state.scope
    reached = {"s": position(3), "t": position(4)}
    assert scope.cuts_of(reached) == {"A": reached, "B": {"t": position(4)}}


def test_a_group_is_free_when_nothing_is_computed_or_committed():
    group = SmallGroup()
    assert group.state.is_free
    group.arrive("s")
    (job,) = group.begin()
    assert not group.state.is_free
    (commit,) = group.compute(job)
    assert not group.state.is_free
    group.commits.take(commit.number, 0.0)
    assert group.state.is_free


def test_what_is_not_in_the_warehouse_is_in_the_order_of_arrival():
    group = SmallGroup()
    group.arrive("s")
    group.begin()
    group.arrive("t")
    assert [arrival.number for arrival in group.state.uncommitted] == [1, 2]


def test_what_no_view_reads_is_kept_until_a_position_has_passed_it():
    """A view may come to read it: then it must know what was before."""
    group = SmallGroup()
    group.arrive("s")
    group.state.unshown = list(group.state.intake.integrator.pending)
    group.state.forget_unshown()
    assert len(group.state.unshown) == 1
    group.state.reached["s"] = position(1)
    group.state.forget_unshown()
    assert group.state.unshown == []


def test_rows_that_are_kept_for_a_view_count_as_backlog():
    group = SmallGroup(backlog_rows_max=3)
    group.state.backlog_rows = 2
    assert not group.state.holds_too_much
    group.state.jobs.kept_rows = 2
    assert group.state.holds_too_much
