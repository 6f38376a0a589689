"""A group's batches: what has arrived becomes rows and jobs, as far as it need not wait.

A batch is closed at cuts that the feeds have passed. What must wait for a view that can't begin is a row that waits; the
rest, and what has waited long enough, is begun at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from viewkeeper.engine import cuts as cut_rules
from viewkeeper.engine import messages as out
from viewkeeper.engine.cut_pool import CutPool
from viewkeeper.engine.cuts import Purpose, SharedCuts
from viewkeeper.engine.fan_outs import fan_outs
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.held_rows import Held, parted
from viewkeeper.engine.integrator import Arrival, Weights
from viewkeeper.engine.jobs import BatchRow, Jobs
from viewkeeper.engine.messages import Snapshot
from viewkeeper.merging.messages import CommitTransaction
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.protocols.messages import Reflected
from viewkeeper.views.definition import RelationName

# Managers that alternate on one view, where its jobs are independent: a question is asked for their batches.
ALTERNATING = 2


class Batches:
    """What is closed and begun, and when."""

    def __init__(self, state: GroupState, cuts: CutPool) -> None:
        self._state = state
        self._cuts = cuts
        # How long the periods of periodic views are, and when each view began its last job.
        self._periods: dict[str, float] = {}
        self._begun_at: dict[str, float] = {}
        # Of the transactions that are in no batch: the views that one concerns, and its source. Those that came
        # since this was last asked are not in it; None: nothing is known.
        self._kinds: set[tuple[tuple[str, ...], str]] | None = set()
        self._new: list[Arrival] = []
        self._not_before = -math.inf
        self._arrived_at = -math.inf
        self._weights: dict[RelationName, float] = {}
        self._weighed_at = -math.inf

    def begin_periods(self, now: float) -> None:
        self._begun_at = dict.fromkeys(self._periods, now)

    def tell_managers(self, now: float) -> None:
        state = self._state
        arrivals, state.intake.arrived = state.intake.arrived, []
        if arrivals:
            self._arrived_at = now
            state.backlog_rows += sum(arrival.rows for arrival in arrivals)
            if self._kinds is not None:
                self._new += arrivals
            state.do(out.TellManagers(tuple(arrivals)))

    def begin_again(self, uncommitted: Iterable[Arrival]) -> None:
        """From the last committed state: new managers, an empty table, all that is not applied."""
        state = self._state
        is_plain = all(view.choice.is_incremental for view in state.scope.views.values())
        state.intake.takes_stretches = is_plain and state.scope.block == 1
        arrivals = tuple(state.intake.begin_again(state.scope, uncommitted))
        state.applied = dict.fromkeys(state.scope.sources, 0)
        periods = {n: period_seconds(v.definition) for n, v in state.scope.views.items()}
        self._periods = {name: period for name, period in periods.items() if period is not None}
        state.jobs = Jobs(state.scope.views, state.jobs.next_serial, self._periods, state.limits)
        state.commits = {}
        self._forget_kinds()
        state.backlog_rows = sum(arrival.rows for arrival in arrivals)
        self._weights, self._weighed_at = {}, -math.inf
        scope = state.scope
        known = {r.name: r.schema for r in scope.evolution.catalog.relations}
        watched = {name: known[name] for name in scope.watched}
        state.do(out.StartManagers(scope.views, scope.sources, watched, arrivals))

    def give_up(self) -> list[Arrival]:
        """All that is not committed; the managers' work counts for nothing."""
        state = self._state
        state.forget_unshown()
        begun = sorted([*state.jobs.batches, *state.unshown], key=lambda arrival: arrival.number)
        uncommitted = [*begun, *state.intake.integrator.pending]
        state.unshown = []
        for view in state.jobs.begun():
            self._begun_at.pop(view, None)
        self._cuts.release_common()
        state.do(out.StopManagers())
        return uncommitted

    def wake(self, now: float) -> None:
        """Have the machine look again when something that waits may go on."""
        state = self._state
        if state.intake.integrator.waits_for_block:
            state.wake(self._arrived_at + state.limits.block_seconds)
        if state.intake.has_work and now < self._not_before:
            state.wake(self._not_before)
        if state.intake.has_work or state.jobs.waiting:
            for view in self._early(now):
                state.wake(self._begun_at[view] + self._periods[view])

    def take_sizes(self, sizes: Mapping[RelationName, int], now: float) -> None:
        """About how many rows relations have, where it was asked for."""
        if sizes:
            definitions = (view.definition for view in self._state.scope.views.values())
            self._weights = fan_outs((each.relations for each in definitions), sizes)
            self._weighed_at = now

    def prefetch(self, ticket: int, snapshots: Mapping[str, Snapshot], now: float) -> None:
        """Ask for what the next batches will need, at cuts that the feeds have not passed."""
        state = self._state
        # Of as many batches as are worked on at a time: one question costs a source less than two.
        known = cut_rules.reflected(snapshots, state.intake, state.applied)
        wanted = self._wanted(known, self._weights, batches=ALTERNATING)
        batch, _ = state.intake.integrator.first_batch(*wanted)
        held, _ = self._held(now)
        views = [
            name
            for name in state.scope.relevance.concerned(batch)
            if state.scope.views[name].choice.is_incremental
            and not held.is_held((name,), ())
            and state.jobs.is_up_to_date(name)
        ]
        if views:
            state.do(out.Prefetch(ticket, batch, tuple(views)))

    # -- what waits -------------------------------------------------------------------------------

    def may_begin(self, now: float) -> bool:
        state = self._state
        self._end_block(now)
        if state.is_resting or state.intake.due or state.pending.new or state.readers:
            return False
        return bool(self._held(now)[1]) or self._may_close(now) or state.jobs.must_tell

    def _end_block(self, now: float) -> None:
        """A block with fewer transactions is shown where nothing has arrived for a while, at the group's end, and where
        too much is held."""
        state = self._state
        integrator, limits = state.intake.integrator, state.limits
        if not integrator.waits_for_block:
            return
        is_cut_short = state.intake.end is not None or state.holds_too_much
        is_quiet = now >= self._arrived_at + limits.block_seconds
        if is_cut_short or is_quiet or not limits.heeds_periods:
            integrator.end_block()

    def _may_close(self, now: float) -> bool:
        """Whether something has arrived that need not wait: all views that it concerns can begin, and nothing of
        its source waits."""
        state = self._state
        if not state.intake.has_work or now < self._not_before:
            return False
        held, _ = self._held(now)
        if held.is_empty:
            return True
        return any(not held.is_held(views, (source,)) for views, source in self._waiting_kinds())

    def _waiting_kinds(self) -> set[tuple[tuple[str, ...], str]]:
        """What is in no batch, by the views that it concerns and by source. Asked for only where something is held."""
        if self._kinds is None:
            self._kinds, self._new = set(), list(self._state.intake.integrator.pending)
        concerned = self._state.scope.relevance.concerned
        self._kinds.update((concerned((each,)), each.origin.source) for each in self._new)
        self._new = []
        return self._kinds

    def _forget_kinds(self) -> None:
        self._kinds, self._new = None, []

    def _held(self, now: float) -> tuple[Held, tuple[BatchRow, ...]]:
        """What must wait for views that can't begin, and the rows that waited and need not any more."""
        state = self._state
        # One more where much waits: somebody always has work, and small batches do not become smaller.
        most = state.limits.jobs_max + self._is_backlog
        busy = (view for view in state.scope.views if state.jobs.open_jobs(view) >= most)
        return state.jobs.look(frozenset((*busy, *self._early(now))))

    @property
    def _is_backlog(self) -> bool:
        state = self._state
        return state.intake.integrator.waiting >= state.limits.backlog_from

    def _early(self, now: float) -> list[str]:
        """The views whose period is not over. At the group's end, and where too much waits, it is cut short."""
        state = self._state
        is_cut_short = state.intake.end is not None or state.holds_too_much
        if is_cut_short or not state.limits.heeds_periods:
            return []
        begun_at = self._begun_at
        return [v for v, p in self._periods.items() if v in begun_at and now < begun_at[v] + p]

    def begin(
        self, ticket: int, snapshots: Mapping[str, Snapshot], until: float, now: float
    ) -> list[CommitTransaction]:
        """Begin what has arrived and need not wait, and what has waited, at cuts that the feeds have passed.

        What can be committed with it known.
        """
        state = self._state
        known = cut_rules.reflected(snapshots, state.intake, state.applied)
        weights = self._weights if self._is_backlog else {}
        held, waited = self._held(now)
        batch: tuple[Arrival, ...] = ()
        if state.intake.has_work:
            batch = state.intake.integrator.close_batch(*self._wanted(known, weights))
            # Else a transaction has arrived that no cut shows yet.
            self._not_before = self._not_before if batch else now + state.limits.invisible_seconds
            self._forget_kinds()
        rows, commits = self._close(batch, held.copy())
        jobs = state.jobs.start(self._first([*waited, *rows]))
        keeps = bool(jobs) and self._is_visible_backlog(known)
        if keeps:
            self._cuts.common = SharedCuts(ticket, snapshots, until)
        for job in jobs:
            self._begin_period(job.concerned, now)
            state.do(
                out.StartJob(
                    job.serial,
                    job.batch,
                    job.concerned,
                    job.told,
                    ticket,
                    known,
                    job.settled,
                    keeps or job is not jobs[-1],
                )
            )
        if not jobs:
            state.do(out.ReleaseCuts(ticket))
        return commits

    def _begin_period(self, views: Iterable[str], now: float) -> None:
        """Views begin a job. While rows still wait for one, its period stays over, also one that was cut short:
        else they would wait for the whole of the next, with all that follows them."""
        for view in views:
            if self._state.jobs.waits(view):
                self._begun_at.pop(view, None)
            else:
                self._begun_at[view] = now

    def _close(
        self, batch: tuple[Arrival, ...], held: Held
    ) -> tuple[list[BatchRow], list[CommitTransaction]]:
        """Rows for a batch: those that need not wait, and what can be committed with all of them known."""
        state = self._state
        rows: list[BatchRow] = []
        commits: list[CommitTransaction] = []
        for part, concerned, waits in parted(batch, state.scope.relevance.concerned, held):
            if not part:
                continue
            for arrival in part:
                state.applied[arrival.transaction.source] = arrival.transaction.last_number
            row, released = state.jobs.close(part, concerned, dict(state.applied))
            commits += released
            if not row.concerned:
                # Only watched relations changed, or rows that no view selects: nothing to show or to wait for.
                state.backlog_rows -= row.rows
                state.unshown += part
            elif not waits:
                rows.append(row)
        return rows, commits

    def _first(self, rows: list[BatchRow]) -> list[BatchRow]:
        """As many rows as one job may have; the others follow when it has been computed."""
        limits = self._state.limits
        transactions = changed = 0
        for place, row in enumerate(rows):
            transactions += row.transactions
            changed += row.rows
            is_much = (
                transactions > limits.batch_transactions_max or changed > limits.batch_rows_max
            )
            if place and is_much:
                return rows[:place]
        return rows

    def _wanted(self, known: Mapping[str, Reflected], weights: Weights, *, batches: int = 1) -> Any:
        """What this number of batches may be made of, for the integrator."""
        state = self._state
        limits = state.limits
        is_wanted = state.intake.is_own if state.intake.is_parting else None
        most = batches * limits.batch_transactions_max, batches * limits.batch_rows_max
        return self._visible(known), *most, is_wanted, weights

    def _visible(self, known: Mapping[str, Reflected]) -> dict[str, Reflected | None]:
        """What each source's cut shows; None where that is all that waits.

        What is only watched is asked by no view yet: it need not be visible.
        """
        state = self._state
        newest = state.intake.integrator.newest
        return {
            name: None if name not in known or newest(name) <= known[name].upto else known[name]
            for name in state.scope.sources
        }

    def _is_visible_backlog(self, known: Mapping[str, Reflected]) -> bool:
        """Whether much still waits, and all of it can be asked for at cuts that reflect this."""
        return self._is_backlog and all(v is None for v in self._visible(known).values())

    def to_weigh(self, purpose: Purpose, now: float) -> tuple[RelationName, ...]:
        """Relations whose sizes are asked for with the cuts: while much waits, now and then."""
        state = self._state
        is_known = now - self._weighed_at <= state.limits.weighed_seconds
        if purpose is not Purpose.JOB or not self._is_backlog or is_known:
            return ()
        return state.scope.relations
