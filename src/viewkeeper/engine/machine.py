"""A group of views that move together: from its transactions to its epochs. Pure.

Views that share no relation are in different groups (MVC, section 6.1), and groups do not wait for each other.
A group does this, again and again, in the order that makes it safe:

1. Take in what the feeds delivered; every view manager is told of every transaction.
2. Open one cut per source, and wait until each feed has passed the cut's bound: then every transaction that an
   answer can reflect is known.
3. Close the batch: the longest prefix of the order of arrival that the cuts reflect. It is a row of the view update
   table. What must wait for a view that can't begin (its period runs, or it has as many jobs as it may) is a row
   apart, and waits; the rest is a *job* at once. A view that can begin again takes all rows that waited.
4. The managers ask and compute. All answers of a source are at the job's cut.
5. Their changes are action lists; the merge process says what may become visible together.
6. Commit that, with the sources' positions, as one epoch. Only then may the sources forget.

The next job begins while this one is being computed. After an error of a source everything that is not committed
is done again from step 1; after a kill, the ledger says where to go on.

`step` takes one event and the time; its actions are carried out in their order. `wake_at` says when the machine
wants to be stepped again though nothing happens.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.engine import cuts as cut_rules
from viewkeeper.engine import messages as out
from viewkeeper.engine.batches import Batches
from viewkeeper.engine.commits import Commits
from viewkeeper.engine.cut_pool import CutPool
from viewkeeper.engine.cuts import OpenCuts, Purpose
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.evolving import Evolving
from viewkeeper.engine.failures import Failures, refuse_readers
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.intake import Follow, Intake, changed_while_uniting
from viewkeeper.engine.jobs import Jobs
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.messages import (
    Action,
    ChangeComputed,
    Committed,
    CutsOpened,
    DecisionFound,
    Failed,
    Filled,
    Noted,
    NoteWanted,
    ReadingDone,
    ReadWanted,
    Snapshot,
    TimePassed,
)
from viewkeeper.engine.notes import Notes
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.succession import take_over
from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.engine.unions import Compare, Union
from viewkeeper.engine.view import View
from viewkeeper.errors import invariant
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Finish:
    """Apply what lies before these positions, then end; what follows is another group's."""

    end: Mapping[str, Position]
    union: Union


@dataclass(frozen=True)
class Rest:
    """Finish the jobs at hand and begin nothing, until `Resume`."""


@dataclass(frozen=True)
class Resume:
    pass


class GroupMachine:
    """Some views, kept in step."""

    def __init__(
        self,
        number: int,
        views: Mapping[str, View],
        evolution: Evolution,
        starts: Mapping[str, Position],
        compare: Compare,
        follow: Follow,
        limits: Limits,
        new: Iterable[str] = (),
        predecessors: tuple[GroupMachine, ...] = (),
        taken: Iterable[SchemaChange] = (),
    ) -> None:
        """``starts``: the cut that its views stand at. ``new`` ones are filled first.

        With predecessors it begins when they have ended, which they do at the cut where it starts.
        """
        self.number = number
        self._state = GroupState(views, evolution, starts, compare, follow, limits, new, taken)
        self._cuts = CutPool(self._state)
        self._batches = Batches(self._state, self._cuts)
        self._commits = Commits(self._state)
        self._evolving = Evolving(self._state, self._batches)
        self._failures = Failures(self._state, self._cuts, self._batches, self._commits)
        self.began_with = tuple(views)
        self.predecessors = predecessors
        # What arrived while its predecessors were at work.
        self._inbox: deque[Delivery | Unit | Finish | NoteWanted] = deque()
        self._has_begun = False
        self.is_loaded = False
        self.has_failed = False
        # Whether all up to its end is applied, here and in its union.
        self.has_ended = False
        self.is_done = False
        self._batches.begin_again(())

    # -- what others look at -----------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        return self._state.scope

    @property
    def intake(self) -> Intake:
        return self._state.intake

    @property
    def jobs(self) -> Jobs:
        return self._state.jobs

    @property
    def notes(self) -> Notes:
        return self._state.notes

    @property
    def starts(self) -> Mapping[str, Position]:
        return self._state.starts

    @property
    def reached(self) -> dict[str, Position]:
        """How far each source has been applied to the views in the warehouse."""
        return self._state.reached

    @property
    def backlog_rows(self) -> int:
        return self._state.backlog_rows

    @property
    def is_resting(self) -> bool:
        return self._state.is_resting

    @property
    def wake_at(self) -> float:
        """When it wants to be stepped though nothing happens."""
        return self._state.wake_at

    # -- the machine -------------------------------------------------------------------------------

    def step(self, event: Any, now: float) -> tuple[Action, ...]:
        """Take one event in; what is to be done about it, in order."""
        if not self._has_begun:
            self._has_begun = True
            self._state.notes.noted_at = now
            self._batches.begin_periods(now)
        if self.is_over:
            self._tidy(event)
        else:
            try:
                self._take(event, now)
                self._decide(now)
            except BaseException as error:  # its driver's to judge: a group has no caller
                self._fail(error)
        return self._taken()

    def _taken(self) -> tuple[Action, ...]:
        """What is to be done."""
        actions, self._state.actions = self._state.actions, []
        return tuple(actions)

    @property
    def is_over(self) -> bool:
        return self.has_failed or self.has_ended

    def _fail(self, error: BaseException) -> None:
        state = self._state
        self.has_failed = True
        self._cuts.release_common()
        self._cuts.drop()
        refuse_readers(state, error)
        state.do(out.StopManagers())
        state.do(out.ReportError(error, is_final=True))
        state.wake_at = math.inf

    def _tidy(self, event: Any) -> None:
        """It is over: what was still on its way is let go."""
        state = self._state
        if isinstance(event, CutsOpened):
            state.do(out.ReleaseCuts(event.ticket))
        elif isinstance(event, ReadWanted):
            state.do(out.RefuseReading(event.reader, None))

    def _take(self, event: Any, now: float) -> None:
        state = self._state
        if self.predecessors and isinstance(event, Delivery | Unit | Finish | NoteWanted):
            self._inbox.append(event)
            return
        match event:
            case Delivery() | Unit():
                state.intake.take(event, now)
                self._batches.tell_managers(now)
            case Finish(end, union):
                state.intake.end_at(end, union)
            case CutsOpened(_, _, sizes):
                self._cuts.take(event, now)
                self._batches.take_sizes(sizes, now)
            case ChangeComputed(job, view, contents):
                self._commits.commit(state.jobs.computed(job, view, contents))
            case Committed(number):
                self._commits.take(number, now)
            case Noted(reached, is_durable):
                self._commits.take_note(reached, now, is_durable=is_durable)
            case Filled(views):
                self._evolving.take_filling(views, now)
            case ReadingDone():
                state.is_exclusive = False
            case ReadWanted(reader):
                state.readers.append(reader)
            case DecisionFound(change, decision):
                self._evolving.decide(change, decision)
            case NoteWanted(source, position):
                state.notes.want(source, position)
            case Failed(error, job, is_final, ticket):
                if is_final:
                    raise error
                self._failures.take(error, job, ticket)
            case Rest():
                state.is_resting = True
            case Resume():
                state.is_resting = False
            case TimePassed():
                pass
            case _:
                invariant(False, f"a group does not know {event!r}")

    # -- what comes next ---------------------------------------------------------------------------

    def _decide(self, now: float) -> None:
        self._state.wake_at = math.inf
        while not self.is_over and self._turn(now):
            pass

    def _turn(self, now: float) -> bool:
        """Do the next thing; False when there is nothing to do before something happens."""
        state = self._state
        if self.predecessors:
            return False
        if state.intake.look_at_end(now):
            self._batches.tell_managers(now)
        self._look_whether_done()
        if state.error is not None:
            return self._failures.deal_with(now)
        if self._ends():
            return False
        if now < self._failures.paused_until:
            state.wake(self._failures.paused_until)
            return False
        if self._failures.broken is not None:
            return self._failures.await_cause(now)
        if self._cuts.opening is not None:
            return self._await_bounds(now)
        if state.is_exclusive:
            return False
        return self._next(now)

    def _next(self, now: float) -> bool:
        """Nothing is on its way but jobs."""
        state = self._state
        may_begin = self._batches.may_begin(now)
        common = self._cuts.common
        if common is not None and (now >= common.until or (state.is_free and not may_begin)):
            self._cuts.release_common()
        is_free = state.is_free
        if not self.is_loaded and not state.pending.new and not state.is_resting:
            self.is_loaded = True
            state.do(out.GroupLoaded())
        if state.is_resting:
            return False
        if state.readers and is_free and (state.intake.due or state.pending.new):
            refuse_readers(state)
        if state.intake.due and is_free:
            return self._evolving.take_next(now)
        if state.pending.new and is_free:
            return self._open(Purpose.FILL, now)
        if state.readers and is_free:
            return self._open(Purpose.READ, now)
        if may_begin:
            common = self._cuts.take_common()
            if common is None:
                return self._open(Purpose.JOB, now)
            return self._begin_job(common.ticket, common.snapshots, common.until, now)
        return self._idle(now)

    def _idle(self, now: float) -> bool:
        state = self._state
        if self._cuts.common is not None:
            state.wake(self._cuts.common.until)
        if state.is_free:
            self._commits.note_positions(now)
            state.wake(max(now, state.notes.noted_at) + state.limits.idle_seconds)
        self._batches.wake(now)
        return False

    # -- cuts --------------------------------------------------------------------------------------

    def _open(self, purpose: Purpose, now: float) -> bool:
        self._cuts.open(purpose, self._batches.to_weigh(purpose, now))
        return False

    def _await_bounds(self, now: float) -> bool:
        """Wait until the feeds have passed the cuts, then do what they were opened for."""
        state = self._state
        if self._cuts.waits_for_bounds and (state.is_resting or state.intake.due):
            # A cut may be behind the very change: nothing is asked before the views have taken it.
            self._cuts.drop()
            return True
        passed = self._cuts.passed(now, self._batches.prefetch)
        if passed is None or passed.snapshots is None:
            return state.error is not None
        return self._use(passed, passed.snapshots, now)

    def _begin_job(
        self, ticket: int, snapshots: Mapping[str, Snapshot], until: float, now: float
    ) -> bool:
        self._commits.commit(self._batches.begin(ticket, snapshots, until, now))
        return True

    def _use(self, opened: OpenCuts, snapshots: Mapping[str, Snapshot], now: float) -> bool:
        state = self._state
        match opened.purpose:
            case Purpose.JOB:
                until = opened.opened_at + state.limits.cut_seconds_max
                return self._begin_job(opened.ticket, snapshots, until, now)
            case Purpose.FILL:
                state.is_exclusive = True
                self._evolving.fill(opened.ticket, snapshots)
            case Purpose.READ:
                state.is_exclusive = True
                known = cut_rules.reflected(snapshots, state.intake, state.applied)
                waiting = tuple(state.uncommitted)
                reader = state.readers.popleft()
                state.do(out.ReadWhole(reader, opened.ticket, known, waiting))
        return False

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way to the views."""
        state = self._state
        return not (state.jobs.by_row or state.intake.integrator.pending or state.intake.due)

    def note_at_rest(self) -> tuple[Action, ...]:
        """At rest: the ledger is to say where it really stands, for the run that begins there."""
        state = self._state
        if self.is_loaded and self.is_settled and not (state.pending.new or self.is_over):
            passed = state.intake.passed
            if passed != state.notes.noted:
                self._commits.note(passed, is_durable=True)
        return self._taken()

    @property
    def waits_for_filling(self) -> bool:
        """Whether views of it are to be filled, or being filled."""
        return bool(self._state.pending.new)

    @property
    def waits_for_decision(self) -> SchemaChange | None:
        """The schema change that somebody must decide on before the group can go on."""
        return self._evolving.waits_for_decision

    # -- beginning and end -------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the feeds should wait before they bring more."""
        return self._state.holds_too_much and not (self.needs_feeds or self.is_done or self.is_over)

    @property
    def needs_feeds(self) -> bool:
        """Whether it can't go on before the feeds bring more: they must pass its cuts, or come to its end, or
        tell the schema change that broke a query."""
        waits_for_bounds = self._cuts.waits_for_bounds
        comes_to_its_end = self._state.intake.comes_to_its_end
        return waits_for_bounds or comes_to_its_end or self._failures.broken is not None

    @property
    def is_behind(self) -> bool:
        """Whether more waits, or is being computed, than what has just arrived."""
        state = self._state
        return state.backlog_rows > state.limits.tiny_rows_max

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is on its way: at rest, somebody else may look at its views."""
        state = self._state
        on_their_way = (
            state.is_exclusive or self._commits.is_noting or self._cuts.opening is not None
        )
        return state.is_free and not on_their_way

    def wants(self, delivery: Delivery) -> bool:
        """Whether it may be news for the group: what its predecessors apply is not."""
        state = self._state
        source = delivery.source
        if source not in state.scope.sources:
            return False
        if not self.predecessors:
            return True
        return state.intake.compare(source, delivery.position, state.starts[source]) >= 0

    @property
    def is_loose(self) -> bool:
        """Whether its views ask for no more than to be right in the end, whatever others show."""
        views = self._state.scope.views.values()
        return all(view.definition.level is Level.CONVERGENT for view in views)

    @property
    def has_evolved(self) -> bool:
        views = self._state.scope.views
        return self.began_with != tuple(views) or any(v.evolved is not None for v in views.values())

    def has_passed_change(self, change: SchemaChange) -> bool:
        return self._state.intake.has_passed_change(change)

    def _look_whether_done(self) -> None:
        state = self._state
        is_at_work = state.pending.new or state.jobs.by_row or state.intake.has_work
        self.is_done = state.intake.is_parting and not is_at_work and not state.intake.due

    @property
    def may_end(self) -> bool:
        """Whether all up to its end is applied, here and in its union, and nothing is on its way."""
        state = self._state
        union = state.intake.union
        is_over = self.is_done and union is not None and union.is_over
        return is_over and self.is_idle and not (state.is_resting or self.is_over)

    def _ends(self) -> bool:
        """Whether it is over: its views are another group's by now, or none are left."""
        state = self._state
        union = state.intake.union
        if not self.may_end and (state.scope.views or state.is_resting or not self.is_idle):
            return False
        if self.may_end and union is not None:
            state.reached = state.intake.passed
            if union.taken:
                # Its successor would have to begin before the changes, with views that are behind them.
                positions = state.scope.cuts_of(state.reached)
                state.do(out.Note(dict(state.reached), positions, is_durable=True))
                raise changed_while_uniting(union.taken[0])
        self.has_ended = self.is_done = True
        self._cuts.release_common()
        refuse_readers(state)
        state.do(out.StopManagers())
        state.do(out.GroupEnded())
        return True

    def succeed(self, now: float) -> tuple[Action, ...]:
        """Its predecessors have ended: take over where they stand."""
        state = self._state
        predecessors, self.predecessors = self.predecessors, ()
        if any(each.has_failed for each in predecessors):
            self.has_failed = True  # one of them said why
            state.do(out.StopManagers())
            state.do(out.GroupLoaded())
        else:
            take_over(self._state, self._batches, predecessors)
        inbox, self._inbox = self._inbox, deque()
        actions: list[Action] = []
        for message in (*inbox, TimePassed()):
            actions += self.step(message, now)
        return tuple(actions)

    # -- for people --------------------------------------------------------------------------------

    @property
    def not_taken_in(self) -> tuple[Any, ...]:
        """What arrived while its predecessors are at work."""
        return tuple(self._inbox)

    def oldest_commits(self) -> dict[str, dt.datetime]:
        """By source, when the oldest transaction that is on its way to the views was committed."""
        return self._state.oldest_commits()
