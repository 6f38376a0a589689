"""What a group does about errors: it tries again, waits for a schema change to arrive, or gives up."""

from __future__ import annotations

import math
from collections import deque
from typing import cast

from viewkeeper.engine import messages as out
from viewkeeper.engine.batches import Batches
from viewkeeper.engine.commits import Commits
from viewkeeper.engine.cut_pool import CutPool
from viewkeeper.engine.group_state import GroupState
from viewkeeper.errors import SourceError, invariant

# Errors that mean: the schema is another one than we believe, and the feed will say what it is.
BROKEN = ("broken-query", "unknown-relation", "not-recorded")
# An owner changed a table, or is about to: its source is well, and the change will be in its feed.
OVERTAKEN = "cut-overtaken"


class Stopped(Exception):
    """What was being read is no longer needed: the group is to rest."""


class Failures:
    """What went wrong, and until when to wait for it to pass."""

    def __init__(
        self, state: GroupState, cuts: CutPool, batches: Batches, commits: Commits
    ) -> None:
        self._state = state
        self._cuts, self._batches, self._commits = cuts, batches, commits
        self.paused_until = -math.inf
        # The error whose cause the feed is about to tell, with the time by which it should.
        self.broken: tuple[SourceError, float] | None = None

    def take(self, error: BaseException, job: int | None, ticket: int | None) -> None:
        state = self._state
        if ticket is not None and not self._cuts.is_opening(ticket):
            # They were given up meanwhile, and what broke them may be a change that was taken since: no feed
            # would tell of its cause again.
            return
        if job is not None:
            if state.jobs.is_known(job):  # else of a job that was given up
                state.error = state.error or error
            return
        self._cuts.fail()
        state.is_exclusive = self._commits.is_noting = False
        if isinstance(error, Stopped):
            return
        if not isinstance(error, SourceError):
            raise error
        state.error = state.error or error

    def deal_with(self, now: float) -> bool:
        """After an error that passes, everything that is not committed is done again."""
        state = self._state
        if state.commits:
            return False  # what is on its way to the warehouse must be known first
        error, state.error = state.error, None
        if not isinstance(error, SourceError):
            invariant(error is not None, "there is no error to deal with")
            raise cast(BaseException, error)
        refuse_readers(state, error)
        if error.code in BROKEN:
            self.broken = error, now + state.limits.bound_wait_seconds
        elif not error.retryable:
            raise error
        elif error.code != OVERTAKEN:
            state.do(out.ReportError(error, is_final=False))
            if error.source is not None:
                state.do(out.RenewFeed(error.source))
        self._cuts.drop()
        self._batches.begin_again(self._batches.give_up())
        limits = state.limits
        pause = limits.overtaken_seconds if error.code == OVERTAKEN else limits.retry_seconds
        self.paused_until = now + pause
        return True

    def await_cause(self, now: float) -> bool:
        """A query broke: somebody changed the schema, and the feed is about to say how."""
        state = self._state
        invariant(self.broken is not None, "it waits for a cause")
        error, deadline = self.broken  # type: ignore[misc]
        if state.intake.due or state.is_resting:
            self.broken = None
            return True
        if now > deadline:
            raise error
        state.wake(deadline + 0.001)
        return False


def refuse_readers(state: GroupState, error: BaseException | None = None) -> None:
    """They may try again; a group must not keep anybody waiting for what it can't say."""
    readers, state.readers = state.readers, deque()
    for reader in readers:
        state.do(out.RefuseReading(reader, state.change_due, error))
