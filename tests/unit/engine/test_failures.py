"""What a group does about errors."""

from __future__ import annotations

import pytest

from unit.engine.small_group import SmallGroup, renamed_column
from viewkeeper.engine import messages as out
from viewkeeper.errors import SourceError


def error(code: str = "away", *, retryable: bool = True) -> SourceError:
    return SourceError(code, "…", source="s", retryable=retryable, hint="…")


def test_an_error_that_passes_has_everything_done_again_after_a_while():
    group = SmallGroup()
    group.arrive("s")
    group.begin()
    group.failures.take(error(), None, None)
    assert group.failures.deal_with(5.0)
    assert group.failures.paused_until == 5.0 + group.state.limits.retry_seconds
    assert [len(a.arrivals) for a in group.done(out.StartManagers)] == [1]
    assert not group.state.jobs.by_row


def test_an_error_is_not_dealt_with_while_a_commit_is_on_its_way():
    """What is done again must not be in the warehouse already."""
    group = SmallGroup()
    group.arrive("s")
    (job,) = group.begin()
    (commit,) = group.compute(job)
    group.failures.take(error(), None, None)
    assert not group.failures.deal_with(0.0)
    group.commits.take(commit.number, 0.0)
    assert group.failures.deal_with(0.0)
    assert [len(a.arrivals) for a in group.done(out.StartManagers)] == [0]


def test_a_job_that_was_given_up_has_no_errors():
    group = SmallGroup()
    group.arrive("s")
    (job,) = group.begin()
    group.batches.begin_again(group.batches.give_up())
    group.failures.take(error(), job.job, None)
    assert group.state.error is None


def test_a_broken_query_waits_for_its_cause_and_not_for_ever():
    group = SmallGroup()
    group.failures.take(error("broken-query", retryable=False), None, None)
    assert group.failures.deal_with(0.0)
    assert not group.failures.await_cause(1.0)
    with pytest.raises(SourceError, match="broken-query"):
        group.failures.await_cause(group.state.limits.bound_wait_seconds + 1.0)
    group.state.intake.due.append(renamed_column("s", 1))
    assert group.failures.await_cause(1.0)
    assert group.failures.broken is None


def test_an_error_that_does_not_pass_ends_the_group():
    group = SmallGroup()
    group.failures.take(error(retryable=False), None, None)
    with pytest.raises(SourceError):
        group.failures.deal_with(0.0)
