"""A group's jobs: batches on their way through the view managers, and out as epochs.

Every job is a row of the view update table. What the merge process releases is committed, and nothing else.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.engine.fan_outs import fan_outs
from viewkeeper.engine.integrator import (
    Arrival,
    Integrator,
    Weights,
    last_positions,
    numbers_of,
    places_of,
    states_of,
)
from viewkeeper.engine.jobs import painted
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.view import View
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.mixtures import Promise, algorithm_for
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.protocols.messages import Reflected
from viewkeeper.runtime.asking import Questions, asked_together
from viewkeeper.runtime.change_tables import ChangeTables
from viewkeeper.runtime.contents import whole_schemas
from viewkeeper.runtime.exact_cuts import ExactCuts
from viewkeeper.runtime.faults import failpoint
from viewkeeper.runtime.foresight import Foresight
from viewkeeper.runtime.jobs import Job, StageFolder, Stopwatch, make_job
from viewkeeper.runtime.managers.live import LiveManager
from viewkeeper.runtime.managers.making import Workshop
from viewkeeper.runtime.managers.threads import (
    ChangeComputed,
    ManagerFailed,
    ManagerThread,
    TakingTurns,
)
from viewkeeper.runtime.message_counts import MessageCounts
from viewkeeper.runtime.shared_cuts import SharedCuts
from viewkeeper.runtime.standing import Standing, committed_in, oldest, oldest_commit
from viewkeeper.runtime.surroundings import Cycle, Surroundings
from viewkeeper.sources.interface import Cut, Position
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level

# So many managers do a view's jobs by turns, where its jobs need nothing of each other.
TURNS = 2
# Of what waits, so much is looked at for the oldest: it comes in about the order of commits.
HEADS_MAX = 100
# For so long it is believed how large relations are.
WEIGHED_SECONDS = 600.0


@dataclass(frozen=True)
class NoteAt:
    """Somebody waits for a place of a source: the ledger is to have it as soon as it is passed."""

    source: str
    position: Position


class Keeping(ExactCuts):
    """Keeps views from job to job, from wherever the warehouse stands."""

    def __init__(
        self,
        views: Mapping[str, View],
        around: Surroundings,
        starts: Mapping[str, Position],
        evolution: Evolution,
    ) -> None:
        super().__init__(views, around, starts, evolution)
        self._stage = StageFolder(around.spark.tiny)
        self._noted = dict(self.reached)
        self._noted_at = time.monotonic()
        # Places that somebody waits for, and whether the next chance to note is taken in any case.
        self._awaited: dict[str, Position] = {}
        self.notes_soon = False
        # By source, since when the oldest that is on its way to the views is committed.
        self.unshown: dict[str, dt.datetime] = {}
        # When the last batch was begun: a period is counted from there.
        self.begun_at = time.monotonic()
        # Where the last job was begun, while the next one can be begun there, too.
        self._common: SharedCuts | None = None
        self.begin_anew([])
        self.painting = self._painted()

    def begin_anew(self, uncommitted: Iterable[Arrival]) -> None:
        """From the last committed state: new managers, an empty table, all that is not applied."""
        staging = Staging(self.around.spark.tiny, self._stage.path)
        self.count_nothing()
        self.integrator = Integrator((*self.relations, *self.watched))
        self.applied = dict.fromkeys(self.sources, 0)
        self.jobs: dict[int, Job] = {}
        self._rows = 0
        self._fan_outs: dict[RelationName, float] = {}
        self._weighed_at = -math.inf
        whole = whole_schemas(view.definition for view in self.views.values())
        known = {r.name: r.schema for r in self.evolution.catalog.relations}
        self.changes = ChangeTables({name: known[name] for name in self.watched} | whole)
        managers = {name: self._manager(name, staging) for name in self.views}
        promises = [Promise(manager.level) for manager in managers.values()]
        self.merge = MergeProcess(algorithm_for(promises, ViewUpdateTable(self.views)))
        self._managers = {
            name: self._at_work(name, manager, staging) for name, manager in managers.items()
        }
        self.takes_stretches = all(manager.takes_stretches for manager in managers.values())
        self.tell(self.numbered_anew(uncommitted))

    def _manager(self, view: str, staging: Staging) -> LiveManager:
        around = self.around
        workshop = Workshop(
            staging, self.sources, self.changes, around.sources, around.spark, around.epochs
        )
        return workshop.manager(self.views[view])

    def _at_work(
        self, view: str, manager: LiveManager, staging: Staging
    ) -> ManagerThread | TakingTurns:
        if not manager.takes_turns or self.around.limits.jobs_max < TURNS:
            return ManagerThread(view, manager, self.inbox.put)
        others = [self._manager(view, staging) for _ in range(TURNS - 1)]
        return TakingTurns(view, [manager, *others], self.inbox.put)

    @property
    def message_counts(self) -> dict[str, MessageCounts]:
        """What each view's manager has sent and got since it began."""
        return {name: thread.counts for name, thread in self._managers.items()}

    def handle(self, message: Any) -> None:
        match message:
            case ChangeComputed(job, view, tables):
                if self.jobs.get(job.row) is job:  # else of a job that was given up
                    lists = ActionList(view, (job.row,), tables)
                    self._carry_out(self.merge.step(ActionListArrived(lists)))
            case ManagerFailed(job, _, error):
                if self.jobs.get(job.row) is job:
                    raise error
            case NoteAt(source, position):
                known = self._awaited.get(source)
                if known is None or self.compared(source, known, position) < 0:
                    self._awaited[source] = position

    def take_in(self, wait_seconds: float | None) -> None:
        super().take_in(wait_seconds)
        self.note_unshown()

    def tell(self, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        self.count(sum(arrival.rows for arrival in arrivals))
        self.changes.add(arrivals)
        for manager in self._managers.values():
            manager.tell(tuple(arrivals))

    def dismiss(self) -> None:
        """Let the managers go; whatever they still do counts for nothing."""
        self.let_go_of_cuts()
        for manager in self._managers.values():
            manager.stop()
        for job in self.jobs.values():
            job.stage.remove()

    def close(self) -> None:
        """Let the managers go, and what they left on the disk."""
        self.dismiss()
        self._stage.remove()

    @property
    def is_at_work(self) -> bool:
        return bool(self.jobs) or super().is_at_work

    def begin_job(self) -> bool:
        """Begin a job with what has come; False when nothing of it is visible yet."""
        clock = Stopwatch()
        with contextlib.ExitStack() as stack:
            held = self._cuts_at_hand()
            stack.callback(held.let_go)
            reflected = self.reflected(held.cuts)
            batch = self.integrator.close_batch(*self._wanted(reflected, self._weights(held.cuts)))
            if not batch:
                return False
            clock.lap("capture")
            self._rows += 1
            is_followed = self._is_visible_backlog(reflected)
            job = make_job(
                self._rows,
                batch,
                self._concerned(batch),
                tuple(self.views),
                held,
                reflected,
                self._session(batch),
                clock,
                is_followed=is_followed,
            )
            if is_followed:
                self._common = held.hold()
            stack.pop_all()
        if job.concerned:
            self.jobs[job.row] = job
        self.begun_at = time.monotonic()
        failpoint("batch-closed")
        for arrival in batch:
            self.applied[arrival.transaction.source] = arrival.transaction.last_number
        streams = tuple(sorted({arrival.origin.source for arrival in batch}))
        relevance = RelevanceArrived(job.row, job.concerned, streams)
        self._carry_out(self.merge.step(relevance))
        for manager in self._managers.values():
            manager.begin(job, dict(self.applied))
        if not job.concerned:
            # Only watched relations changed: nothing to show, and nothing to wait for.
            self.count(-job.rows)
            job.stage.remove()
        return True

    def _cuts_at_hand(self) -> SharedCuts:
        """Cuts that the feeds have passed, held for a job: those of the last one, or new ones."""
        common, self._common = self._common, None
        if common is not None:
            if common.seconds_left and self.are_of_this_life(common.cuts):
                common.questions = common.questions.of_another_batch()
                return common
            common.let_go()
        with contextlib.ExitStack() as stack:
            foreseen: list[Questions] = []
            cuts = self.open_cuts(stack, lambda cuts: foreseen.append(self._foreseen(cuts, stack)))
            failpoint("cuts-open")
            questions = foreseen[0] if foreseen else self._in_advance(cuts)
            questions.stop_asking()
            return SharedCuts(questions, stack.pop_all())

    def _is_visible_backlog(self, reflected: Mapping[str, Reflected]) -> bool:
        """Whether much still waits, and all of it can be asked for at cuts that reflect this."""
        is_backlog = self.integrator.waiting >= self.around.limits.backlog_from
        return is_backlog and all(shown is None for shown in self._visible(reflected).values())

    @property
    def cut_seconds_left(self) -> float:
        """For so long a job may follow at the cuts of the last one, if it left them open."""
        return math.inf if self._common is None else self._common.seconds_left

    def let_go_of_cuts(self) -> None:
        """No job will follow at the cuts of the last one."""
        common, self._common = self._common, None
        if common is not None:
            common.let_go()

    def _session(self, batch: Iterable[Arrival]) -> Any:
        is_tiny = sum(arrival.rows for arrival in batch) <= self.around.limits.tiny_rows_max
        return self.around.spark.tiny if is_tiny else self.around.spark.bulk

    def _foreseen(self, cuts: Mapping[str, Cut], stack: contextlib.ExitStack) -> Questions:
        """Has what waits already asked for, at cuts that the feeds have not passed yet."""
        # Of as many batches as are worked on at a time: one question costs a source less than two.
        wanted = self._wanted(self.reflected(cuts), self._weighed(cuts), batches=TURNS)
        batch, _ = self.integrator.first_batch(*wanted)
        questions = self._in_advance(cuts)
        managers = [
            self._manager(name, questions.staging)
            for name in self._concerned(batch)
            if self.views[name].choice.is_incremental
        ]
        sources = [self.around.sources[name] for name in cuts]
        stack.callback(Foresight(questions, managers, batch, sources).end)
        return questions

    def _in_advance(self, cuts: Mapping[str, Cut]) -> Questions:
        staging = Staging(self.around.spark.tiny, self._stage.path)
        return Questions.in_advance(cuts, staging, self.around.paces)

    def _wanted(
        self, reflected: Mapping[str, Reflected], weights: Weights, *, batches: int = 1
    ) -> Any:
        """What so many batches may be made of, as the integrator is told."""
        limits = self.around.limits
        is_wanted = self.is_own if self.is_parting else None
        most = batches * limits.batch_transactions_max, batches * limits.batch_rows_max
        return self._visible(reflected), *most, is_wanted, weights

    def _visible(self, reflected: Mapping[str, Reflected]) -> dict[str, Reflected | None]:
        """What each source's cut shows; None where that is all that waits.

        What is only watched is asked by nobody yet: it need not be visible.
        """
        newest = self.integrator.newest
        return {
            name: None
            if name not in reflected or newest(name) <= reflected[name].upto
            else reflected[name]
            for name in self.sources
        }

    def _weights(self, cuts: Mapping[str, Cut]) -> dict[RelationName, float]:
        """How much a changed row of each relation may do to a view; nothing while little waits."""
        if self.integrator.waiting < self.around.limits.backlog_from:
            return {}
        return self._weighed(cuts)

    def _weighed(self, cuts: Mapping[str, Cut]) -> dict[RelationName, float]:
        if time.monotonic() - self._weighed_at > WEIGHED_SECONDS:
            told = {name: cuts[name.source].row_estimate(name.relation) for name in self.relations}
            sizes = {name: rows for name, rows in told.items() if rows is not None}
            definitions = (view.definition for view in self.views.values())
            self._fan_outs = fan_outs((each.relations for each in definitions), sizes)
            self._weighed_at = time.monotonic()
        return self._fan_outs

    def _concerned(self, batch: Iterable[Arrival]) -> tuple[str, ...]:
        changed = {name for arrival in batch for name, _ in arrival.transaction.changes}
        return tuple(
            name
            for name, view in self.views.items()
            if not changed.isdisjoint(view.definition.relations)
        )

    def _carry_out(self, commits: Iterable[CommitTransaction]) -> None:
        self.painting = self._painted()
        todo = list(commits)
        while todo:
            commit = todo.pop(0)
            tables: dict[str, list[Any]] = {}
            for each in commit.lists:
                for name, table in each.contents.items():
                    tables.setdefault(name, []).append(table)
            self._apply([self.jobs[row] for row in commit.rows], tables)
            self.painting = self._painted()
            todo += self.merge.step(WarehouseCommitted(commit.number))

    def _painted(self) -> dict[str, Any]:
        """The view update table as it is now, for people to look at."""
        return painted(self.merge, self.jobs)

    def _apply(self, jobs: list[Job], tables: Mapping[str, list[Any]]) -> None:
        """Commit what the merge process has released, as one epoch."""
        for job in jobs:
            job.clock.lap("join")
        batch = [arrival for job in jobs for arrival in job.batch]
        reached = self._reached_with(jobs)
        numbers = numbers_of(batch)
        # Unless every manager shows every transaction, what lies between is no state of all views.
        states = states_of(batch) if self.merge.level is Level.COMPLETE else [0] * len(numbers)
        entry = self.around.epochs.apply(
            numbers, states, tables, self.cuts_of(reached), lambda: places_of(batch, states)
        )
        for job in jobs:
            job.clock.lap("commit")
            job.stage.remove()
            del self.jobs[job.row]
        begun = [job.batch[0].number for job in self.jobs.values()]
        self.changes.forget(min([batch[-1].last_number + 1, *begun]) - 1)
        self._noted, self._noted_at = reached, time.monotonic()
        self.count(-sum(job.rows for job in jobs))
        asked = asked_together(job.questions.asked for job in jobs)
        seconds = dict(jobs[-1].clock.laps)
        self.around.report(Cycle(entry, tuple(batch), asked, tuple(self.views), seconds))
        # Last: whoever sees that it was reached finds the epoch reported.
        self.reached = reached
        self.note_unshown()

    def _reached_with(self, jobs: list[Job]) -> dict[str, Position]:
        """Where each source stands for the views when these jobs are applied."""
        reached = dict(self.reached)
        for job in jobs:
            reached.update(last_positions(job.batch))
        waiting = {arrival.origin.source for arrival in self.integrator.pending}
        # A schema change that is next has not been taken: a run that begins here must meet it.
        waiting |= {change.source for change in self.due} | self.held.keys()
        for job in self.jobs.values():
            if job not in jobs:
                waiting.update(arrival.origin.source for arrival in job.batch)
        passed = self.passed
        return reached | {name: passed[name] for name in self.sources if name not in waiting}

    def cuts_of(self, reached: Mapping[str, Position]) -> dict[str, dict[str, Position]]:
        """Each view's own cut: the sources that it reads."""
        return {
            name: {source: reached[source] for source in view.definition.sources}
            for name, view in self.views.items()
        }

    def note_positions(self) -> None:
        """Nothing waits: everything that the feeds have passed is applied, or was nothing for us."""
        if not self.is_settled or self.end is not None:
            return
        passed = self.passed
        is_old = time.monotonic() - self._noted_at >= self.around.limits.idle_seconds
        if is_old or self.notes_soon or self._is_awaited(passed):
            self.note(passed)
        elif passed != self._noted:
            self.around.epochs.rest(self.cuts_of(passed))
        # Last: whoever sees that it was reached finds what readers need to know of it.
        self.reached = passed

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way to the views."""
        return not (self.jobs or self.integrator.pending or self.due)

    def note(self, reached: Mapping[str, Position]) -> None:
        """Have the ledger say what the views have reached."""
        if reached != self._noted:
            self.around.epochs.advance(self.cuts_of(reached))
            self._noted, self._noted_at = dict(reached), time.monotonic()
        self.notes_soon = False
        self._awaited = {
            name: position
            for name, position in self._awaited.items()
            if self.compared(name, reached[name], position) < 0
        }

    def _is_awaited(self, reached: Mapping[str, Position]) -> bool:
        """Whether a place that somebody waits for was passed; one entry serves all who wait."""
        return any(
            self.compared(name, reached[name], position) >= 0
            for name, position in self._awaited.items()
        )

    def note_unshown(self) -> None:
        """Say since when the oldest of what is on its way is committed; read by other threads."""
        lists = [self.integrator.pending, *(job.batch for job in self.jobs.values())]
        heads = (arrival for each in lists for arrival in itertools.islice(each, HEADS_MAX))
        commits = ({a.origin.source: oldest_commit(a.origin)} for a in heads if self.is_own(a))
        # What a change holds back came after it.
        self.unshown = oldest(self.due_since, *commits)

    def standing(self) -> Standing:
        """What its views do not show yet, as far as it is known; asked from any thread."""
        with self.inbox.mutex:
            messages = tuple(self.inbox.queue)
        unread = (committed_in(message, self.relations) for message in messages)
        sources = oldest(self.unshown, *unread)
        views: dict[str, dt.datetime | None] = {}
        for name, view in tuple(self.views.items()):
            own = [at for source, at in sources.items() if source in view.definition.sources]
            views[name] = min(own, default=None)
        return Standing(views, sources)

    def has_noted(self, source: str, position: Position) -> bool:
        """Whether the ledger says that the views have this place; asked from any thread."""
        noted = self._noted.get(source)
        return noted is not None and self.compared(source, noted, position) >= 0
