"""A group of views that move together: from its transactions to its epochs. Pure.

Views that share no relation are in different groups (MVC, section 6.1), and groups do not wait for each other.
A group does this, again and again, in the order that makes it safe:

1. Take in what the feeds delivered; every view manager is told of every transaction.
2. Open one cut per source, and wait until each feed has passed the cut's bound: then every transaction that an
   answer can reflect is known.
3. Close the batch: the longest prefix of the order of arrival that the cuts reflect. It is one *job* for all view
   managers, and one row of the view update table.
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
import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from viewkeeper.algebra.types import Type
from viewkeeper.engine import cuts as cut_rules
from viewkeeper.engine import messages as out
from viewkeeper.engine.cuts import OpenCuts, Purpose, SharedCuts
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.fan_outs import fan_outs
from viewkeeper.engine.intake import Follow, Intake, changed_while_uniting
from viewkeeper.engine.integrator import (
    Arrival,
    Weights,
    last_positions,
    numbers_of,
    states_of,
)
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
from viewkeeper.engine.pending_changes import PendingChanges
from viewkeeper.engine.schema_changes import Evolution, Foreseen, as_after, foreseen
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.engine.unions import Compare, Union
from viewkeeper.engine.view import View
from viewkeeper.errors import SourceError, invariant
from viewkeeper.evolution.effects import Decision
from viewkeeper.merging.messages import CommitTransaction
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.sources.transaction_block import TransactionBlock, transactions_of
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep

# Errors that mean: the schema is another one than we believe, and the feed will say what it is.
BROKEN = ("broken-query", "unknown-relation", "not-recorded")
# Managers that alternate on one view, where its jobs are independent: a question is asked for their batches.
ALTERNATING = 2
# Of what waits, this much is looked at for the oldest: transactions arrive in about the order of commits.
HEADS_MAX = 100


class Stopped(Exception):
    """What was being read is no longer needed: the group is to rest."""


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
        self.limits = limits
        self.scope = Scope(dict(views), evolution)
        self.starts = {name: starts[name] for name in self.scope.sources}
        self.intake = Intake(self.scope, self.starts, compare, follow, taken)
        # How far each source has been applied to the views in the warehouse, and how far it will be when
        # all commits that are on their way are there.
        self.reached: dict[str, Position] = dict(self.starts)
        self._reaching = dict(self.starts)
        self.notes = Notes(self.reached, compare)
        self.pending = PendingChanges(new)
        self.began_with = tuple(views)
        self.predecessors = predecessors
        # What arrived while its predecessors were at work.
        self._inbox: deque[Delivery | Unit | Finish | NoteWanted] = deque()
        self.jobs = Jobs(views, 1)
        self.applied: dict[str, int] = {}
        self.backlog_rows = 0
        self._commits: dict[int, tuple[int, ...]] = {}
        self._tickets = 0
        self._cuts: OpenCuts | None = None
        self._common: SharedCuts | None = None
        self._stale: set[int] = set()
        # An action that nothing else may go beside: a filling, or a reading.
        self._exclusive = False
        self._noting = False
        self._readers: deque[int] = deque()
        self._weights: dict[RelationName, float] = {}
        self._weighed_at = -math.inf
        self._has_begun = False
        # When the last batch was closed.
        self._begun_at = 0.0
        self._not_before = -math.inf
        # What went wrong, until it can be dealt with; until when to wait for it to pass; and the error whose
        # cause the feed is about to tell, with the time by which it should.
        self._error: BaseException | None = None
        self._paused_until = -math.inf
        self._broken: tuple[SourceError, float] | None = None
        self._plan: Foreseen | None = None
        self._decision: str | None = None
        self._asked_at = -math.inf
        self.is_resting = False
        self.is_loaded = False
        self.has_failed = False
        # Whether all up to its end is applied, here and in its union.
        self.has_ended = False
        self.is_done = False
        self.wake_at = math.inf
        self._now = 0.0
        self._actions: list[Action] = []
        self._begin_again(())

    # -- the machine -------------------------------------------------------------------------------

    def step(self, event: Any, now: float) -> tuple[Action, ...]:
        """Take one event in; what is to be done about it, in order."""
        if not self._has_begun:
            self._has_begun = True
            self.notes.noted_at = self._begun_at = now
        self._now = now
        if self.is_over:
            self._tidy(event)
        else:
            try:
                self._take(event, now)
                self._decide(now)
            except BaseException as error:  # its driver's to judge: a group has no caller
                self._fail(error)
        actions, self._actions = self._actions, []
        return tuple(actions)

    @property
    def is_over(self) -> bool:
        return self.has_failed or self.has_ended

    def _do(self, action: Action) -> None:
        self._actions.append(action)

    def _fail(self, error: BaseException) -> None:
        self.has_failed = True
        self._release_common()
        self._drop_cuts()
        self._refuse_readers(error)
        self._do(out.StopManagers())
        self._do(out.ReportError(error, is_final=True))
        self.wake_at = math.inf

    def _tidy(self, event: Any) -> None:
        """It is over: what was still on its way is let go."""
        if isinstance(event, CutsOpened):
            self._do(out.ReleaseCuts(event.ticket))
        elif isinstance(event, ReadWanted):
            self._do(out.RefuseReading(event.reader, None))

    def _take(self, event: Any, now: float) -> None:
        if self.predecessors and isinstance(event, Delivery | Unit | Finish | NoteWanted):
            self._inbox.append(event)
            return
        match event:
            case Delivery() | Unit():
                self.intake.take(event, now)
                self._tell_managers()
            case Finish(end, union):
                self.intake.end_at(end, union)
            case CutsOpened():
                self._take_cuts(event, now)
            case ChangeComputed(job, view, contents):
                self._commit_all(self.jobs.computed(job, view, contents))
            case Committed(number):
                self._take_commit(number, now)
            case Noted(reached, is_durable):
                self._take_note(reached, now, is_durable=is_durable)
            case Filled(views):
                self._take_filling(views, now)
            case ReadingDone():
                self._exclusive = False
            case ReadWanted(reader):
                self._readers.append(reader)
            case DecisionFound(change, decision):
                if self._plan is not None and self._plan.reported is change:
                    self._decision = decision
            case NoteWanted(source, position):
                self.notes.want(source, position)
            case Failed(error, job, is_final):
                if is_final:
                    raise error
                self._take_failure(error, job)
            case Rest():
                self.is_resting = True
            case Resume():
                self.is_resting = False
            case TimePassed():
                pass
            case _:
                invariant(False, f"a group does not know {event!r}")

    # -- what comes next ---------------------------------------------------------------------------

    def _decide(self, now: float) -> None:
        self.wake_at = math.inf
        while not self.is_over and self._turn(now):
            pass

    def _wake(self, at: float) -> None:
        self.wake_at = min(self.wake_at, at)

    def _turn(self, now: float) -> bool:
        """Do the next thing; False when there is nothing to do before something happens."""
        if self.predecessors:
            return False
        if self.intake.look_at_end(now):
            self._tell_managers()
        self._look_whether_done()
        if self._error is not None:
            return self._deal_with_error(now)
        if self._ends():
            return False
        if now < self._paused_until:
            self._wake(self._paused_until)
            return False
        if self._broken is not None:
            return self._await_cause(now)
        if self._cuts is not None:
            return self._await_bounds(now)
        if self._exclusive:
            return False
        return self._next(now)

    def _next(self, now: float) -> bool:
        """Nothing is on its way but jobs."""
        may_begin = self._may_begin(now)
        if self._common is not None and (
            now >= self._common.until or not (self.jobs.by_row or may_begin)
        ):
            self._release_common()
        is_free = not self.jobs.by_row
        if not self.is_loaded and not self.pending.new and not self.is_resting:
            self._loaded()
        if self.is_resting:
            return False
        if self._readers and is_free and (self.intake.due or self.pending.new):
            self._refuse_readers()
        if self.intake.due and is_free:
            return self._evolve(now)
        if self.pending.new and is_free:
            return self._open(Purpose.FILL)
        if self._readers and is_free:
            return self._open(Purpose.READ)
        if may_begin:
            common, self._common = self._common, None
            if common is not None:
                if cut_rules.are_of_this_life(common.snapshots, self.intake.life):
                    return self._begin_job(common.ticket, common.snapshots, common.until, now)
                self._do(out.ReleaseCuts(common.ticket))
            return self._open(Purpose.JOB)
        return self._idle(now)

    def _refuse_readers(self, error: BaseException | None = None) -> None:
        """They may try again; a group must not keep anybody waiting for what it can't say."""
        readers, self._readers = self._readers, deque()
        for reader in readers:
            self._do(out.RefuseReading(reader, self._change_due, error))

    def _loaded(self) -> None:
        self.is_loaded = True
        self._do(out.GroupLoaded())

    def _idle(self, now: float) -> bool:
        if self._common is not None:
            self._wake(self._common.until)
        if not self.jobs.by_row and not self.intake.integrator.pending:
            self._note_positions(now)
            self._wake(max(now, self.notes.noted_at) + self.limits.idle_seconds)
        elif self.intake.has_work:
            at = max(self._not_before, now + self._early_seconds(now))
            if at > now:  # else it waits for a job's end
                self._wake(at)
        return False

    # -- transactions ------------------------------------------------------------------------------

    def _tell_managers(self) -> None:
        arrivals, self.intake.arrived = self.intake.arrived, []
        if arrivals:
            self.backlog_rows += sum(arrival.rows for arrival in arrivals)
            self._do(out.TellManagers(tuple(arrivals)))

    def _begin_again(self, uncommitted: Iterable[Arrival]) -> None:
        """From the last committed state: new managers, an empty table, all that is not applied."""
        self.intake.takes_stretches = all(
            view.choice.is_incremental for view in self.scope.views.values()
        )
        arrivals = tuple(self.intake.begin_again(self.scope, uncommitted))
        self.applied = dict.fromkeys(self.scope.sources, 0)
        self.jobs = Jobs(self.scope.views, self.jobs.next_serial)
        self._commits = {}
        self.backlog_rows = sum(arrival.rows for arrival in arrivals)
        self._weights, self._weighed_at = {}, -math.inf
        scope = self.scope
        known = {r.name: r.schema for r in scope.evolution.catalog.relations}
        watched = {name: known[name] for name in scope.watched}
        self._do(out.StartManagers(scope.views, scope.sources, watched, arrivals))

    def _give_up_jobs(self) -> list[Arrival]:
        """All that is not committed; the managers' work counts for nothing."""
        uncommitted = [*self.jobs.batches, *self.intake.integrator.pending]
        self._release_common()
        self._do(out.StopManagers())
        return uncommitted

    # -- cuts --------------------------------------------------------------------------------------

    def _open(self, purpose: Purpose) -> bool:
        self._tickets += 1
        self._cuts = OpenCuts(self._tickets, purpose)
        scope = self.scope
        relations = {s: scope.read_of(s) for s in scope.sources if s in scope.read_sources}
        self._do(out.OpenCuts(self._tickets, relations, self._to_weigh(purpose)))
        return False

    def _take_cuts(self, event: CutsOpened, now: float) -> None:
        opening = self._cuts
        if opening is None or opening.ticket != event.ticket:
            self._do(out.ReleaseCuts(event.ticket))  # they were given up meanwhile
            return
        opening.snapshots = event.snapshots
        opening.opened_at = opening.moved_at = now
        opening.stood = dict(self.intake.fed)
        if event.sizes:
            definitions = (view.definition for view in self.scope.views.values())
            self._weights = fan_outs((each.relations for each in definitions), event.sizes)
            self._weighed_at = now
        for name, snapshot in event.snapshots.items():
            if self.intake.compare(name, snapshot.bound, self.reached[name]) < 0:
                self._error = cut_rules.cut_behind(name)
                return

    def _drop_cuts(self) -> None:
        """The cuts that are being opened or waited for are not needed any more."""
        opening, self._cuts = self._cuts, None
        if opening is not None and opening.snapshots is not None:
            self._do(out.ReleaseCuts(opening.ticket))

    def _release_common(self) -> None:
        common, self._common = self._common, None
        if common is not None:
            self._do(out.ReleaseCuts(common.ticket))

    def _await_bounds(self, now: float) -> bool:
        """Wait until the feeds have passed the cuts, then do what they were opened for."""
        opening = self._cuts
        if opening is None or opening.snapshots is None:
            return False
        if self.is_resting or self.intake.due:
            # A cut may be behind the very change: nothing is asked before the views have taken it.
            self._drop_cuts()
            return True
        behind = cut_rules.behind(opening.snapshots, self.intake)
        if behind:
            self._keep_waiting(opening, opening.snapshots, behind, now)
            return self._error is not None
        if not cut_rules.are_of_this_life(opening.snapshots, self.intake.life):
            other = [n for n, s in opening.snapshots.items() if s.life != self.intake.life[n]]
            self._error = cut_rules.source_restarted(other[0])
            return True
        definitions = (view.definition for view in self.scope.views.values())
        self._error = cut_rules.other_type(opening.snapshots, definitions)
        if self._error is not None:
            return True
        self._cuts = None
        return self._use(opening, opening.snapshots, now)

    def _keep_waiting(
        self,
        opening: OpenCuts,
        snapshots: Mapping[str, Snapshot],
        behind: list[str],
        now: float,
    ) -> None:
        limits = self.limits
        if opening.stood != self.intake.fed:
            opening.moved_at, opening.stood = now, dict(self.intake.fed)
        if now - opening.moved_at > limits.bound_wait_seconds:
            self._error = cut_rules.feed_behind(behind, limits.bound_wait_seconds)
            return
        self._wake(opening.moved_at + limits.bound_wait_seconds + 0.001)
        if opening.purpose is not Purpose.JOB or opening.is_prefetched:
            return
        soon = opening.opened_at + limits.soon_seconds
        if now < soon:
            self._wake(soon)
            return
        opening.is_prefetched = True
        # Of as many batches as are worked on at a time: one question costs a source less than two.
        known = cut_rules.reflected(snapshots, self.intake, self.applied)
        wanted = self._wanted(known, self._weights, batches=ALTERNATING)
        batch, _ = self.intake.integrator.first_batch(*wanted)
        views = [n for n in self._concerned(batch) if self.scope.views[n].choice.is_incremental]
        if views:
            self._do(out.Prefetch(opening.ticket, batch, tuple(views)))

    def _use(self, opened: OpenCuts, snapshots: Mapping[str, Snapshot], now: float) -> bool:
        match opened.purpose:
            case Purpose.JOB:
                until = opened.opened_at + self.limits.cut_seconds_max
                return self._begin_job(opened.ticket, snapshots, until, now)
            case Purpose.FILL:
                self._exclusive = True
                self._fill(opened.ticket, snapshots)
            case Purpose.READ:
                self._exclusive = True
                known = cut_rules.reflected(snapshots, self.intake, self.applied)
                waiting = tuple(self.intake.integrator.pending)
                reader = self._readers.popleft()
                self._do(out.ReadWhole(reader, opened.ticket, known, waiting))
        return False

    # -- batches -----------------------------------------------------------------------------------

    def _may_begin(self, now: float) -> bool:
        limits = self.limits
        # One more where much waits: somebody always has work, and small batches do not become smaller.
        has_room = len(self.jobs.by_row) < limits.jobs_max + self._is_backlog
        stays = not (self.is_resting or self.intake.due or self.pending.new or self._readers)
        if not (self.intake.has_work and has_room and stays):
            return False
        return now >= self._not_before and not self._early_seconds(now)

    @property
    def _is_backlog(self) -> bool:
        return self.intake.integrator.waiting >= self.limits.backlog_from

    def _early_seconds(self, now: float) -> float:
        """How long the next batch has to wait: a periodic view holds back all that move with it."""
        if self.intake.end is not None or self.is_full or not self.limits.heeds_periods:
            return 0.0
        views = self.scope.views.values()
        period = max((period_seconds(view.definition) or 0.0 for view in views), default=0.0)
        return max(0.0, self._begun_at + period - now) if period else 0.0

    def _begin_job(
        self, ticket: int, snapshots: Mapping[str, Snapshot], until: float, now: float
    ) -> bool:
        """Begin a job with what has arrived, at cuts that the feeds have passed."""
        known = cut_rules.reflected(snapshots, self.intake, self.applied)
        weights = self._weights if self._is_backlog else {}
        batch = self.intake.integrator.close_batch(*self._wanted(known, weights))
        if not batch:
            # A transaction has arrived that no cut shows yet.
            self._do(out.ReleaseCuts(ticket))
            self._not_before = now + self.limits.invisible_seconds
            return True
        keeps = self._is_visible_backlog(known)
        if keeps:
            self._common = SharedCuts(ticket, snapshots, until)
        concerned = self._concerned(batch)
        self._begun_at = now
        for arrival in batch:
            self.applied[arrival.transaction.source] = arrival.transaction.last_number
        job, commits = self.jobs.begin(batch, concerned)
        if not concerned:
            # Only watched relations changed: nothing to show, and nothing to wait for.
            self.backlog_rows -= job.rows
        told, settled = tuple(self.scope.views), dict(self.applied)
        self._do(out.StartJob(job.serial, batch, concerned, told, ticket, known, settled, keeps))
        self._commit_all(commits)
        return True

    def _wanted(self, known: Mapping[str, Reflected], weights: Weights, *, batches: int = 1) -> Any:
        """What so many batches may be made of, for the integrator."""
        limits = self.limits
        is_wanted = self.intake.is_own if self.intake.is_parting else None
        most = batches * limits.batch_transactions_max, batches * limits.batch_rows_max
        return self._visible(known), *most, is_wanted, weights

    def _visible(self, known: Mapping[str, Reflected]) -> dict[str, Reflected | None]:
        """What each source's cut shows; None where that is all that waits.

        What is only watched is asked by no view yet: it need not be visible.
        """
        newest = self.intake.integrator.newest
        return {
            name: None if name not in known or newest(name) <= known[name].upto else known[name]
            for name in self.scope.sources
        }

    def _is_visible_backlog(self, known: Mapping[str, Reflected]) -> bool:
        """Whether much still waits, and all of it can be asked for at cuts that reflect this."""
        return self._is_backlog and all(v is None for v in self._visible(known).values())

    def _to_weigh(self, purpose: Purpose) -> tuple[RelationName, ...]:
        """Relations whose sizes are asked for with the cuts: while much waits, now and then."""
        is_known = self._now - self._weighed_at <= self.limits.weighed_seconds
        if purpose is not Purpose.JOB or not self._is_backlog or is_known:
            return ()
        return self.scope.relations

    def _concerned(self, batch: Iterable[Arrival]) -> tuple[str, ...]:
        changed = {name for arrival in batch for name, _ in arrival.transaction.changes}
        return self.scope.concerned(changed)

    # -- commits -----------------------------------------------------------------------------------

    def _commit_all(self, commits: Iterable[CommitTransaction]) -> None:
        """Have committed what the merge process has released."""
        for commit in commits:
            jobs = [self.jobs.by_row[row] for row in commit.rows]
            batch = tuple(arrival for job in jobs for arrival in job.batch)
            self._reaching = self._reached_with({job.row for job in jobs}, batch)
            numbers = numbers_of(batch)
            # Unless every manager shows every transaction, what lies between is no state of all views.
            is_complete = self.jobs.level is Level.COMPLETE
            states = states_of(batch) if is_complete else [0] * len(numbers)
            others = [j.batch[0].number for j in self.jobs.by_row.values() if j not in jobs]
            self._commits[commit.number] = commit.rows
            self._do(
                out.Commit(
                    commit.number,
                    tuple(job.serial for job in jobs),
                    batch,
                    states,
                    tuple(each.contents for each in commit.lists),
                    self.scope.cuts_of(self._reaching),
                    tuple(self.scope.views),
                    min([batch[-1].last_number + 1, *others]) - 1,
                )
            )

    def _reached_with(self, rows: set[int], batch: Iterable[Arrival]) -> dict[str, Position]:
        """Where each source stands for the views when these jobs are applied."""
        reached = self._reaching | last_positions(batch)
        waiting = {arrival.origin.source for arrival in self.intake.integrator.pending}
        # A schema change that is next has not been taken: a run that begins here must meet it.
        waiting |= {change.source for change in self.intake.due} | self.intake.held.keys()
        on_their_way = {row for some in self._commits.values() for row in some}
        for row, job in self.jobs.by_row.items():
            if row not in rows and row not in on_their_way:
                waiting.update(job.sources)
        passed = self.intake.passed
        return reached | {n: passed[n] for n in self.scope.sources if n not in waiting}

    def _take_commit(self, number: int, now: float) -> None:
        rows = self._commits.pop(number)
        jobs = [self.jobs.by_row[row] for row in rows]
        self.backlog_rows -= sum(job.rows for job in jobs)
        if not self._commits:
            self.reached = dict(self._reaching)
            self.intake.not_passed(self.reached)
            self.notes.note(self.reached, now)
        self._commit_all(self.jobs.committed(rows, number))

    # -- positions ---------------------------------------------------------------------------------

    def _note_positions(self, now: float) -> None:
        """Nothing waits: everything that the feeds have passed is applied, or was nothing for us."""
        if not self.is_settled or self.intake.end is not None or self._noting:
            return
        passed = self.intake.passed
        is_durable = self.notes.is_due(passed, now, self.limits.idle_seconds)
        if passed == self.notes.noted and passed == self.reached:
            self.notes.note(passed, now) if is_durable else None
        elif is_durable or passed != self.reached:
            self._note(passed, is_durable=is_durable)

    def _note(self, reached: Mapping[str, Position], *, is_durable: bool) -> None:
        self._noting = True
        self._do(out.Note(dict(reached), self.scope.cuts_of(reached), is_durable))

    def _take_note(self, reached: Mapping[str, Position], now: float, *, is_durable: bool) -> None:
        self._noting = False
        if is_durable:
            self.notes.note(reached, now)
        if not self.jobs.by_row:
            self.reached = self._reaching = dict(reached)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way to the views."""
        return not (self.jobs.by_row or self.intake.integrator.pending or self.intake.due)

    def note_at_rest(self) -> tuple[Action, ...]:
        """At rest: the ledger is to say where it really stands, for whoever begins there."""
        if self.is_loaded and self.is_settled and not (self.pending.new or self.is_over):
            passed = self.intake.passed
            if passed != self.notes.noted:
                self._note(passed, is_durable=True)
        actions, self._actions = self._actions, []
        return tuple(actions)

    # -- whole views -------------------------------------------------------------------------------

    def _fill(self, ticket: int, snapshots: Mapping[str, Snapshot]) -> None:
        """Fill the new views, all at the cut that the group stands at."""
        pending = self.pending
        self._reaching = self._reaching | pending.jumps
        self._do(
            out.FillViews(
                ticket,
                {name: self.scope.views[name] for name in pending.new},
                {n: o for n, o in pending.outdated.items() if n in pending.new},
                frozenset(pending.jumps),
                cut_rules.reflected(snapshots, self.intake, self.applied),
                tuple(self.intake.integrator.pending),
                # All of the group stand there: the next run finds them together, and so do readers.
                self.scope.cuts_of(self._reaching),
                self._definitions(),
            )
        )

    def _take_filling(self, views: Mapping[str, View], now: float) -> None:
        self._exclusive = False
        self.reached = dict(self._reaching)
        self.notes.note(self.reached, now)
        adapted = [name for name in self.pending.new if name in self.pending.outdated]
        self.scope = replace(self.scope, views=dict(self.scope.views) | dict(views))
        for plan in self.pending.done():
            self._do(out.TellChange(plan, is_applied=True))
        for name in adapted:
            self._do(out.TellEvolved(self.scope.views[name]))
        uncommitted = self._give_up_jobs()
        self._begin_again(uncommitted)

    # -- schema changes ----------------------------------------------------------------------------

    @property
    def _change_due(self) -> SchemaChange | None:
        return self.intake.due[0] if self.intake.due else None

    @property
    def waits_for_decision(self) -> SchemaChange | None:
        """The schema change that somebody must decide on before the group can go on."""
        waits = self._plan is not None and self._plan.must_wait and self._decision != "approve"
        return self._change_due if waits and not self.jobs.by_row else None

    def _evolve(self, now: float) -> bool:
        """Take the next schema change: everything before it is applied, or waits in its new shape."""
        change = self.intake.due[0]
        if self._plan is None or self._plan.reported is not change:
            self._plan = foreseen(change, self.scope.views, self.scope.evolution)
            self._decision, self._asked_at = None, -math.inf
        plan = self._plan
        if plan.must_wait and self._decision != "approve":
            if now >= self._asked_at + self.limits.decision_seconds:
                self._asked_at = now
                is_frozen = any(e.decision is Decision.FREEZE for e in plan.must_wait)
                self._do(out.LookForDecision(plan, is_frozen))
            self._wake(self._asked_at + self.limits.decision_seconds)
            return False
        self._plan = None
        self.intake.due.popleft()
        self.intake.due_since.pop(change.source, None)
        self._take_change(plan, change)
        if change.renamed_to in self.scope.names_of(change.source):
            # By its new name, what follows must be read again.
            self.intake.go_back(change.source)
        else:
            self.intake.let_go(change.source, now)
        self._tell_managers()
        return True

    def _take_change(self, plan: Foreseen, change: SchemaChange) -> None:
        before = self.scope.views
        is_cut_off = change.skips or (plan.rewrites and self._holds_rows_of(change.source))
        jumped = change.source if is_cut_off else None
        uncommitted = [
            arrival._replace(origin=as_after(origin, change))
            for arrival in self._give_up_jobs()
            if arrival.origin.source != jumped
            for origin in transactions_of(arrival.origin)
        ]
        self.pending.take(plan, before)
        self.scope = Scope(plan.views(before), plan.evolution)
        self._follow_sources()
        refilled = self._refilled(plan, before, jumped)
        if is_cut_off or (plan.rewrites and refilled):
            self._move_to(change)
        self.pending.new = tuple(name for name in self.scope.views if name in refilled)
        # A view whose rows stay the same is another one from here on, without a new extent.
        pending = self.pending
        pending.same |= {n: v for n, v in self.scope.views.items() if v != before[n]}
        pending.ended += [
            (plan.with_lineage(before[n]), effect, change) for n, effect in plan.ended.items()
        ]
        self.intake.take_change(change)
        if not pending.new and (pending.same or pending.ended):
            self._do(self._definitions())
        self._begin_again(uncommitted)
        # The change has no rows: else a process that begins now would meet it once more.
        self.notes.is_soon = True
        if self.pending.new:
            self._do(out.TellChange(plan, is_applied=False))
        else:
            for each in self.pending.done():
                self._do(out.TellChange(each, is_applied=True))
        for name, view in self.scope.views.items():
            if view.shortfall is not None and before[name].shortfall is None:
                self._do(out.TellEvolved(view, is_short=True))

    def _definitions(self) -> out.CommitDefinitions:
        """What the ledger is to say of the changes that were taken, in one entry: all views or none."""
        pending, views = self.pending, self.scope.views
        same = [views[n] for n in pending.same if n in views and n not in pending.new]
        taken = self.intake.not_passed(self._reaching)
        return out.CommitDefinitions(tuple(same), tuple(pending.ended), tuple(views), taken)

    def _refilled(self, plan: Foreseen, before: Mapping[str, View], jumped: str | None) -> set[str]:
        """The views whose rows are not those of their extents."""
        views = self.scope.views
        refilled = {*self.pending.new, *plan.mappings()}
        # What is kept beside a view has the types that its relations had.
        refilled |= {n for n, v in views.items() if _stored_types(v) != _stored_types(before[n])}
        if jumped is not None:
            refilled |= {n for n, v in views.items() if jumped in v.definition.sources}
        return refilled

    def _move_to(self, change: SchemaChange) -> None:
        """The rows that are read next are those after the change: so are the positions that go with them."""
        source = change.source
        fed = self.pending.jumps[source] = self.intake.fed[source]
        if self.intake.is_parting and self.intake.end is not None:
            self.intake.end[source] = fed

    def _follow_sources(self) -> None:
        """The views may read a source now that was only watched, or none of one any more."""
        for name in self.scope.sources:
            invariant(name in self.intake.fed, f"{name} was followed by no feed")

    def _holds_rows_of(self, source: str) -> bool:
        """Whether changes of the source have arrived that are not applied.

        Also of other relations: the one that was rewritten can be read only as it is after that, and beside
        it a row that was committed before would be missing.
        """
        return any(a.origin.source == source for a in self.intake.integrator.pending)

    # -- errors ------------------------------------------------------------------------------------

    def _take_failure(self, error: BaseException, job: int | None) -> None:
        if job is not None:
            if self.jobs.is_known(job):  # else of a job that was given up
                self._error = self._error or error
            return
        if self._cuts is not None and self._cuts.snapshots is None:
            self._cuts = None
        self._exclusive = self._noting = False
        if isinstance(error, Stopped):
            return
        if not isinstance(error, SourceError):
            raise error
        self._error = self._error or error

    def _deal_with_error(self, now: float) -> bool:
        """After an error that passes, everything that is not committed is done again."""
        if self._commits:
            return False  # what is on its way to the warehouse must be known first
        error, self._error = self._error, None
        if not isinstance(error, SourceError):
            invariant(error is not None, "there is no error to deal with")
            raise cast(BaseException, error)
        self._refuse_readers(error)
        if error.code in BROKEN:
            self._broken = error, now + self.limits.bound_wait_seconds
        elif not error.retryable:
            raise error
        else:
            self._do(out.ReportError(error, is_final=False))
            if error.source is not None:
                self._do(out.RenewFeed(error.source))
        self._drop_cuts()
        self._begin_again(self._give_up_jobs())
        self._paused_until = now + self.limits.retry_seconds
        return True

    def _await_cause(self, now: float) -> bool:
        """A query broke: somebody changed the schema, and the feed is about to say how."""
        invariant(self._broken is not None, "it waits for a cause")
        error, deadline = self._broken  # type: ignore[misc]
        if self.intake.due or self.is_resting:
            self._broken = None
            return True
        if now > deadline:
            raise error
        self._wake(deadline + 0.001)
        return False

    # -- beginning and end -------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the feeds should wait before they bring more."""
        needs_all = self._cuts is not None and self._cuts.snapshots is not None
        if needs_all or self.intake.comes_to_its_end or self.is_over:
            return False
        return self.backlog_rows > self.limits.backlog_rows_max

    @property
    def is_behind(self) -> bool:
        """Whether more waits, or is being computed, than what has just arrived."""
        return self.backlog_rows > self.limits.tiny_rows_max

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is on its way: at rest, somebody else may look at its views."""
        on_their_way = self.jobs.by_row or self._commits or self._exclusive or self._noting
        return not (on_their_way or self._cuts is not None)

    def wants(self, delivery: Delivery) -> bool:
        """Whether it may be news for the group: what its predecessors apply is not."""
        source = delivery.source
        if source not in self.scope.sources:
            return False
        if not self.predecessors:
            return True
        return self.intake.compare(source, delivery.position, self.starts[source]) >= 0

    @property
    def is_loose(self) -> bool:
        """Whether its views ask for no more than to be right in the end, whatever others show."""
        views = self.scope.views.values()
        return all(view.definition.level is Level.CONVERGENT for view in views)

    @property
    def has_evolved(self) -> bool:
        views = self.scope.views
        return self.began_with != tuple(views) or any(v.evolved is not None for v in views.values())

    def has_passed_change(self, change: SchemaChange) -> bool:
        return self.intake.has_passed_change(change)

    def _look_whether_done(self) -> None:
        is_at_work = self.pending.new or self.jobs.by_row or self.intake.has_work
        self.is_done = self.intake.is_parting and not is_at_work and not self.intake.due

    @property
    def may_end(self) -> bool:
        """Whether all up to its end is applied, here and in its union, and nothing is on its way."""
        union = self.intake.union
        is_over = self.is_done and union is not None and union.is_over
        return is_over and self.is_idle and not (self.is_resting or self.is_over)

    def _ends(self) -> bool:
        """Whether it is over: its views are another group's by now, or none are left."""
        union = self.intake.union
        if not self.may_end and (self.scope.views or self.is_resting or not self.is_idle):
            return False
        if self.may_end and union is not None:
            self.reached = self.intake.passed
            if union.taken:
                # Its successor would have to begin before the changes, with views that are behind them.
                positions = self.scope.cuts_of(self.reached)
                self._do(out.Note(dict(self.reached), positions, is_durable=True))
                raise changed_while_uniting(union.taken[0])
        self.has_ended = self.is_done = True
        self._release_common()
        self._refuse_readers()
        self._do(out.StopManagers())
        self._do(out.GroupEnded())
        return True

    def succeed(self, now: float) -> tuple[Action, ...]:
        """Its predecessors have ended: take over where they stand."""
        predecessors, self.predecessors = self.predecessors, ()
        if any(each.has_failed for each in predecessors):
            self.has_failed = True  # one of them said why
            self._do(out.StopManagers())
            self._do(out.GroupLoaded())
        else:
            self._take_over(predecessors)
        inbox, self._inbox = self._inbox, deque()
        actions: list[Action] = []
        for message in (*inbox, TimePassed()):
            actions += self.step(message, now)
        return tuple(actions)

    def _take_over(self, predecessors: tuple[GroupMachine, ...]) -> None:
        intake = self.intake
        for each in predecessors:
            for name, position in each.reached.items():
                # The same position; but only its predecessors know what they have heard of there.
                if intake.compare(name, position, self.starts[name]) == 0:
                    self.reached[name] = self._reaching[name] = intake.fed[name] = position
            for name, generation in each.intake.generation.items():
                intake.generation[name] = max(generation, intake.generation.get(name, 0))
            for change in each.intake.not_passed(self.starts):
                intake.take_change(change)
        # Where they ended may be in no entry of the ledger.
        self.notes.noted = {}
        if any(each.has_evolved for each in predecessors):
            self._inherit(predecessors)

    def _inherit(self, predecessors: tuple[GroupMachine, ...]) -> None:
        """The predecessors' views have changed with their sources since this group was made."""
        evolution = self.scope.evolution
        relations = {r.name: r for r in evolution.catalog.relations}
        for each in predecessors:
            if each.has_evolved:
                own = {*each.scope.relations, *each.scope.watched}
                known = each.scope.evolution.catalog.relations
                relations |= {r.name: r for r in known if r.name in own}
                evolution = each.scope.evolution
        evolution = replace(evolution, catalog=Catalog(tuple(relations.values())))
        evolved = {name: v for p in predecessors for name, v in p.scope.views.items()}
        gone = {name for p in predecessors for name in p.began_with} - evolved.keys()
        views = self.scope.views
        kept = {name: evolved.get(name, v) for name, v in views.items() if name not in gone}
        uncommitted = self._give_up_jobs()
        self.scope = Scope(kept, evolution)
        self._begin_again(uncommitted)

    # -- for people --------------------------------------------------------------------------------

    @property
    def not_taken_in(self) -> tuple[Any, ...]:
        """What arrived while its predecessors are at work."""
        return tuple(self._inbox)

    def oldest_commits(self) -> dict[str, dt.datetime]:
        """By source, when the oldest transaction that is on its way to the views was committed."""
        lists = [self.intake.integrator.pending, *(j.batch for j in self.jobs.by_row.values())]
        found: dict[str, dt.datetime] = {}
        for arrival in (a for each in lists for a in itertools.islice(each, HEADS_MAX)):
            if self.intake.is_own(arrival):
                origin = arrival.origin
                at = (
                    origin.began_at if isinstance(origin, TransactionBlock) else origin.committed_at
                )
                found[origin.source] = min(at, found.get(origin.source, at))
        return found


def _stored_types(view: View) -> list[tuple[Type, ...]]:
    """The types of the columns of everything that is kept beside a view."""
    stores = Upkeep(pruned(view.definition)).stores
    return [tuple(field.type for field in store.schema) for store in stores]
