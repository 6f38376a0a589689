"""What is closed and begun, and what waits for a period."""

from __future__ import annotations

from unit.engine.small_group import SmallGroup
from viewkeeper.engine import messages as out

PERIODIC = {
    "P": "-- protocol: periodic\n-- every: 40 s\n-- consistency: strong\nSELECT k FROM s.r",
    "B": "SELECT k FROM t.r",
}


def begun(jobs: list[out.StartJob]) -> list[tuple[tuple[str, ...], list[int]]]:
    return [(job.concerned, [arrival.number for arrival in job.batch]) for job in jobs]


def test_what_a_period_holds_waits_and_the_rest_does_not():
    group = SmallGroup(PERIODIC)
    group.arrive("s")
    assert not group.batches.may_begin(1.0)
    group.arrive("t")
    assert group.batches.may_begin(1.0)
    assert begun(group.begin(1.0)) == [(("B",), [1, 2])]
    assert list(group.state.jobs.waiting) == [1]
    assert group.batches.may_begin(40.0)


def test_what_a_transaction_is_not_visible_in_ends_the_batch():
    group = SmallGroup()
    group.arrive("s")
    group.write("s", is_hidden=True)
    group.deliver("s")
    group.arrive("t")
    assert begun(group.begin()) == [(("A",), [1])]
    assert group.begin() == []
    # No cut shows it yet: it is looked again soon, not at once.
    assert not group.batches.may_begin(0.0)
    assert group.batches.may_begin(group.state.limits.invisible_seconds)


def test_a_view_with_as_many_jobs_as_it_may_have_begins_no_other():
    group = SmallGroup(jobs_max=1)
    group.arrive("s")
    (job,) = group.begin()
    group.arrive("s")
    assert not group.batches.may_begin(0.0)
    (commit,) = group.compute(job)
    group.commits.take(commit.number, 0.0)
    assert group.batches.may_begin(0.0)


def test_a_period_that_was_cut_short_stays_over_while_rows_wait():
    """Else they would wait for the whole of the next period, with all that follows them."""
    group = SmallGroup(PERIODIC, backlog_rows_max=4, batch_transactions_max=1)
    for source in ("s", "t", "s"):
        group.arrive(source)
    jobs = [job for _ in range(3) for job in group.begin(1.0)]
    assert [job.concerned for job in jobs] == [("B",)]
    group.commits.take(group.compute(*jobs)[0].number, 1.0)
    group.arrive("t", rows=2)
    # Too much is held: the period is cut short, and one row is all that a job may have.
    (first,) = group.begin(2.0)
    assert first.concerned == ("P",)
    group.commits.take(group.compute(first)[0].number, 2.0)
    assert not group.state.holds_too_much
    assert ("P",) in [job.concerned for job in group.begin(2.0)]


def test_what_is_given_up_is_all_that_is_not_committed_in_its_order():
    group = SmallGroup()
    group.arrive("s")
    (job,) = group.begin()
    group.commits.take(group.compute(job)[0].number, 0.0)
    group.arrive("t")
    group.begin()
    group.arrive("s")
    assert [arrival.number for arrival in group.batches.give_up()] == [2, 3]
    assert group.done(out.StopManagers)
