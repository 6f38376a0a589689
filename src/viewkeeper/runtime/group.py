"""A group of views that move together: from its transactions to its epochs.

Views that share no relation are in different groups (MVC, section 6.1), and groups do not wait for each
other. A group's thread does this, again and again, in the order that makes it safe:

1. Take in what the feeds delivered; every view manager is told of every transaction.
2. Open one cut per source, and wait until each feed has passed the cut's bound: then every transaction
   that an answer can reflect is known.
3. Close the batch: the longest prefix of the order of arrival that the cuts reflect. It is one *job*
   for all view managers, and one row of the view update table.
4. The managers ask and compute, each in its own thread. All answers of a source are at the job's cut.
5. Their changes are action lists; the merge process says what may become visible together.
6. Commit that, with the sources' positions, as one epoch. Only then may the sources forget.

The next job begins while this one is being computed. After an error of a source everything that is
not committed is done again from step 1; after a kill, the ledger says where to go on.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.errors import SourceError
from viewkeeper.evolution.effects import Decision
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.mixtures import Promise, algorithm_for
from viewkeeper.merging.rows import Colour
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.protocols.messages import Reflected
from viewkeeper.runtime.adapting import adapted_extent
from viewkeeper.runtime.asking import Asked, reflected_by
from viewkeeper.runtime.bulk_reading import OnRows, RowsRead
from viewkeeper.runtime.change_tables import ChangeTables
from viewkeeper.runtime.contents import Reading, narrowed, whole_schemas
from viewkeeper.runtime.epochs import Epochs, FilledView
from viewkeeper.runtime.evolution_log import APPLIED, FROZEN, PENDING, REJECTED, EvolutionLog
from viewkeeper.runtime.evolving import Evolution, Foreseen, as_after, foreseen
from viewkeeper.runtime.feeds import Delivery
from viewkeeper.runtime.integrator import Arrival, Integrator, last_positions, states_of
from viewkeeper.runtime.jobs import Job, StageFolder, Stopwatch, make_job
from viewkeeper.runtime.live_managers import LiveManager, pruned_upkeep
from viewkeeper.runtime.manager_making import Workshop, filled
from viewkeeper.runtime.managing import ChangeComputed, ManagerFailed, ManagerThread
from viewkeeper.runtime.message_counts import MessageCounts
from viewkeeper.runtime.pacing import Pace
from viewkeeper.runtime.units import Unit
from viewkeeper.runtime.view import View
from viewkeeper.sources.interface import Cut, Position, SchemaChange, Source, SourceTransaction
from viewkeeper.spark.session import Spark
from viewkeeper.spark.staged import Staging
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import InitialContents
from viewkeeper.warehouse.entries import Entry

RETRY_SECONDS = 1.0
DECISION_WAIT_SECONDS = 1.0
# Errors that mean: the schema is another one than we believe.
BROKEN = ("broken-query", "unknown-relation")
# How soon to look again when a transaction has arrived that no cut shows yet.
INVISIBLE_WAIT_SECONDS = 0.02


@dataclass(frozen=True)
class Limits:
    """What one batch may be; a batch is as large as what waits, within these."""

    batch_transactions_max: int = 50_000
    batch_rows_max: int = 200_000
    # Up to so many changed rows a batch goes through the session for small data.
    tiny_rows_max: int = 5_000
    # Jobs that a group has at work at a time: one is computed while the next one asks.
    jobs_max: int = 2
    # Rows that wait before the feeds are made to wait.
    backlog_rows_max: int = 500_000
    # For how long a feed may stand still before a cut's bound.
    bound_wait_seconds: float = 30.0
    # How often positions are noted while nothing happens.
    idle_seconds: float = 30.0
    # Whether a periodic view's group waits until its period is over.
    heeds_periods: bool = True


@dataclass
class Cycle:
    """One epoch: what it brought and how long each phase took."""

    entry: Entry
    batch: tuple[Arrival, ...]
    asked: dict[str, Asked]
    # The group's views, changed or not.
    views: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def transactions(self) -> int:
        return len(self.batch)

    @property
    def rows(self) -> int:
        return sum(arrival.rows for arrival in self.batch)

    @property
    def newest_commit(self) -> dt.datetime:
        """When the newest of the transactions was committed at its source."""
        return max(arrival.origin.committed_at for arrival in self.batch)


@dataclass(frozen=True)
class Surroundings:
    """What all groups share."""

    sources: Mapping[str, Source]
    spark: Spark
    epochs: Epochs
    limits: Limits
    paces: Mapping[str, Pace]
    # Told of epochs, of errors (the group tries again after those that pass), and of the end.
    report: Callable[[Cycle | BaseException], None]
    # Told when a group is ready to keep its views.
    loaded: Callable[[], None]
    on_rows: OnRows = lambda name, rows: None
    # Told what happens, in the form of the command line's events.
    tell: Callable[[dict[str, Any]], None] = lambda event: None
    # Has the feed of a source read what its groups need now, from a position on.
    follow: Callable[[str, Position], int] = lambda source, position: 0
    log: EvolutionLog = field(default_factory=EvolutionLog)


class _Stopped(Exception):
    """A cut was being waited for that is no longer needed: the group is to end, or a schema change
    has come, and nothing behind it is taken in before the views have."""


@dataclass(frozen=True)
class _Finish:
    """Nothing more is coming: apply what is here, then end."""


class Group:
    """Some views, kept in step. Its thread owns it; at rest, whoever let it rest does."""

    def __init__(
        self,
        views: Mapping[str, View],
        around: Surroundings,
        starts: Mapping[str, Position],
        evolution: Evolution,
        new: Iterable[str] = (),
        predecessors: tuple[Group, ...] = (),
    ) -> None:
        """``starts``: the cut that its views stand at. ``new`` ones are filled first.

        With predecessors it begins when they have ended, and at the cut where they did.
        """
        self.new = tuple(new)
        self.around = around
        self.evolution = evolution
        # For views whose extent is behind their definition: the one it belongs to, and what happened.
        self._outdated: dict[str, tuple[ViewDefinition, EvolutionMapping]] = {}
        # Schema changes that are next, and what their sources delivered after them.
        self._due: deque[SchemaChange] = deque()
        self._held: dict[str, deque[Delivery]] = {}
        self._generation: dict[str, int] = {}
        self._asked_for: str | None = None
        self._take_on(views)
        self.began_with = tuple(views)
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.starts = {name: starts[name] for name in self.sources}
        self.reached: dict[str, Position] = dict(self.starts)
        self._predecessors = predecessors
        self._fed = dict(self.reached)
        # Sources whose feed still delivers what the views have already.
        self._repeating = set(self.sources)
        self._life: dict[str, str | None] = dict.fromkeys(self.sources)
        self._noted = dict(self.reached)
        self._noted_at = time.monotonic()
        # When the last batch was begun: a period is counted from there.
        self._begun_at = time.monotonic()
        self._ending = self._finishing = False
        self._room = threading.Condition()
        self._backlog = 0
        self._needs_all = False
        self._thread: threading.Thread | None = None
        self._stage = StageFolder()
        self.has_failed = False
        self.is_loaded = False
        self._begin_anew([])
        self.painting = self._painted()

    def _take_on(self, views: Mapping[str, View]) -> None:
        """Keep these views from now on."""
        self.views = dict(views)
        self.relations = tuple(
            dict.fromkeys(name for v in views.values() for name in v.definition.relations)
        )
        self.watched = self.evolution.watched(self.views)
        self.read_sources = {name.source for name in self.relations}
        self.sources = tuple(sorted(self.read_sources | {name.source for name in self.watched}))

    def _begin_anew(self, uncommitted: Iterable[Arrival]) -> None:
        """From the last committed state: new managers, an empty table, all that is not applied."""
        staging = Staging(self.around.spark.tiny, self._stage.path)
        self.integrator = Integrator((*self.relations, *self.watched))
        self._applied = dict.fromkeys(self.sources, 0)
        self.jobs: dict[int, Job] = {}
        self._rows = 0
        whole = whole_schemas(view.definition for view in self.views.values())
        known = {r.name: r.schema for r in self.evolution.catalog.relations}
        self._changes = ChangeTables({name: known[name] for name in self.watched} | whole)
        managers = {name: self._manager(name, staging) for name in self.views}
        promises = [Promise(manager.level) for manager in managers.values()]
        self.merge = MergeProcess(algorithm_for(promises, ViewUpdateTable(self.views)))
        self._managers = {
            name: ManagerThread(name, manager, self.inbox.put) for name, manager in managers.items()
        }
        again = (self.integrator.arrived(each.origin, each.unit) for each in uncommitted)
        self._tell([arrival for arrival in again if arrival is not None])

    def _manager(self, view: str, staging: Staging) -> LiveManager:
        around = self.around
        workshop = Workshop(
            staging, self.sources, self._changes, around.sources, around.spark, around.epochs
        )
        return workshop.manager(self.views[view])

    @property
    def message_counts(self) -> dict[str, MessageCounts]:
        """What each view's manager has sent and got since it began."""
        return {name: thread.manager.counts for name, thread in self._managers.items()}

    # -- its thread -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, or go on after `rest`."""
        name = f"group-{next(iter(self.views))}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """End the thread when the jobs at hand are committed; the caller owns the group then."""
        self._ending = True
        self.inbox.put(None)
        self.join()
        self._ending = False

    def finish(self) -> None:
        """End the thread when all that was delivered is committed."""
        self.inbox.put(_Finish())

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Let the managers go, and what they left on the disk."""
        self._dismiss()
        self._stage.remove()

    def _dismiss(self) -> None:
        for manager in self._managers.values():
            manager.stop()
        for job in self.jobs.values():
            job.stage.remove()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._succeed()
            while not self._is_over:
                self._retried(self._turn)
            if self._finishing:
                self.reached = dict(self._fed)
        except BaseException as error:  # the pipeline's to judge: a group has no caller
            self.has_failed = True
            self.around.report(error)

    @property
    def _is_over(self) -> bool:
        if self._ending or not self.views:
            return not self.jobs
        return self._finishing and not self.jobs and not self.integrator.pending

    def _succeed(self) -> None:
        for predecessor in self._predecessors:
            predecessor.join()
            if predecessor.has_failed:
                self._ending = True  # it said why
            for name, position in predecessor.reached.items():
                self.reached[name] = self._fed[name] = self._noted[name] = position
            predecessor.close()
        if any(predecessor.has_evolved for predecessor in self._predecessors):
            self._inherit()
        self._predecessors = ()
        while self.new and not self._ending:
            self._retried(self._turn)
        self.is_loaded = True
        self.around.loaded()

    def _inherit(self) -> None:
        """The predecessors' views have changed with their sources since this group was made."""
        relations = {r.name: r for r in self.evolution.catalog.relations}
        for predecessor in self._predecessors:
            if predecessor.has_evolved:
                own = {*predecessor.relations, *predecessor.watched}
                known = predecessor.evolution.catalog.relations
                relations |= {r.name: r for r in known if r.name in own}
                self.evolution = predecessor.evolution
        self.evolution = replace(self.evolution, catalog=Catalog(tuple(relations.values())))
        evolved = {name: v for p in self._predecessors for name, v in p.views.items()}
        gone = {name for p in self._predecessors for name in p.began_with} - evolved.keys()
        kept = {name: evolved.get(name, v) for name, v in self.views.items() if name not in gone}
        self._dismiss()
        self._take_on(kept)
        self._begin_anew(list(self.integrator.pending))

    @property
    def has_evolved(self) -> bool:
        return self.began_with != tuple(self.views) or any(
            view.evolved is not None for view in self.views.values()
        )

    def _retried(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SourceError as error:
            if error.code in BROKEN:
                self._recover()
                self._await_cause(error)
                return
            if not error.retryable:
                raise
            self.around.report(error)
            self._recover()

    def _await_cause(self, broken: SourceError) -> None:
        """A query broke: somebody changed the schema, and the feed is about to say how."""
        deadline = time.monotonic() + self.around.limits.bound_wait_seconds
        while not self._due and not self._ending:
            self._take_in(0.1)
            if time.monotonic() > deadline:
                raise broken

    def _recover(self) -> None:
        uncommitted = [arrival for job in self.jobs.values() for arrival in job.batch]
        uncommitted += self.integrator.pending
        self._dismiss()
        self._count(-self._backlog)
        deadline = time.monotonic() + RETRY_SECONDS
        self._begin_anew(uncommitted)
        while (left := deadline - time.monotonic()) > 0 and not self._ending:
            self._take_in(left)

    def _turn(self) -> None:
        if self._due and not self.jobs:
            self._evolve()
        elif self.new and not self.jobs:
            with contextlib.suppress(_Stopped):
                self._load()
        elif self._may_begin:
            self._take_in(None)
            with contextlib.suppress(_Stopped):
                if not self._begun():
                    self._take_in(INVISIBLE_WAIT_SECONDS)
        else:
            idle = not self.jobs and not self.integrator.pending
            wait = self.around.limits.idle_seconds
            self._take_in(wait if idle else min(wait, self._early_seconds or wait))
            if idle:
                self._note_positions()

    @property
    def _may_begin(self) -> bool:
        has_room = len(self.jobs) < self.around.limits.jobs_max
        stays = not self._ending and not self._due and not self.new
        return bool(self.integrator.pending) and has_room and stays and not self._early_seconds

    @property
    def _early_seconds(self) -> float:
        """How long the next batch has to wait: a periodic view holds back all that move with it."""
        if self._finishing or self._is_full or not self.around.limits.heeds_periods:
            return 0.0
        periods = (period_seconds(view.definition) or 0.0 for view in self.views.values())
        return max(0.0, self._begun_at + max(periods, default=0.0) - time.monotonic())

    @property
    def is_loose(self) -> bool:
        """Whether its views ask for no more than to be right in the end, whatever others show."""
        return all(v.definition.level is Level.CONVERGENT for v in self.views.values())

    # -- taking in --------------------------------------------------------------------------------

    def has_room(self, stop: Callable[[], bool]) -> None:
        """Return when the group can take more in; called by the feeds' threads."""
        with self._room:
            while self._is_full and not stop():
                self._room.wait(0.2)

    @property
    def _is_full(self) -> bool:
        return self._backlog > self.around.limits.backlog_rows_max and not self._needs_all

    def _take_in(self, wait_seconds: float | None) -> None:
        """All that has come, waiting so long for the first message; None: not at all."""
        try:
            if wait_seconds is None:
                message = self.inbox.get_nowait()
            else:
                message = self.inbox.get(timeout=wait_seconds)
            while True:
                self._handle(message)
                message = self.inbox.get_nowait()
        except queue.Empty:
            return

    def _handle(self, message: Any) -> None:
        match message:
            case Delivery():
                self._delivered(message)
            case Unit(parts):
                self._tell(list(self._arrivals(parts, unit=message)))
            case ChangeComputed(job, view, tables):
                if self.jobs.get(job.row) is job:  # else of a job that was given up
                    lists = ActionList(view, (job.row,), tables)
                    self._carry_out(self.merge.step(ActionListArrived(lists)))
            case ManagerFailed(job, _, error):
                if self.jobs.get(job.row) is job:
                    raise error
            case _Finish():
                self._finishing = True

    def _delivered(self, delivery: Delivery) -> None:
        source, known = delivery.source, self._generation.get(delivery.source, 0)
        if delivery.generation < known:
            return  # it lacks a relation that is needed by now, and comes again
        if source in self._held:
            self._held[source].append(delivery)
            return
        if delivery.generation > known:
            # Another group had the feed go back.
            self._generation[source] = delivery.generation
            self._repeating.add(source)
        items, position = delivery.items, delivery.position
        for place, item in enumerate(items):
            if isinstance(item, SchemaChange) and self._concerns(item):
                # What comes after it has another shape: first the views must take it.
                self._due.append(item)
                self._held[source] = deque([replace(delivery, items=items[place + 1 :])])
                items, position = items[:place], item.position
                break
        arrivals = list(self._arrivals(items))
        self._life[source] = delivery.life
        if self._compared(source, position, self._fed[source]) >= 0:
            self._fed[source] = position
        self._tell(arrivals)

    def _concerns(self, change: SchemaChange) -> bool:
        name = RelationName(change.source, change.relation)
        return (name in self.relations or name in self.watched) and not self._is_repeated(change)

    def _arrivals(self, items: Iterable[Any], unit: object = None) -> Iterator[Arrival]:
        for item in items:
            if item.source not in self.sources or self._is_repeated(item):
                continue
            match item:
                case SourceTransaction():
                    arrival = self.integrator.arrived(item, unit)
                    if arrival is not None:
                        yield arrival
                case SchemaChange():
                    if RelationName(item.source, item.relation) in self.relations:
                        raise _changed_inside_a_unit(item)

    def _is_repeated(self, item: Any) -> bool:
        """Whether the views have it already: another group may be behind, and feeds are shared."""
        source = item.source
        if source in self._repeating:
            order = self._compared(source, item.position, self._fed[source])
            # SQLite notices a new schema without a step in its log: the same place, told otherwise.
            is_told_anew = isinstance(item, SchemaChange) and item.position != self._fed[source]
            if order < 0 or (order == 0 and not is_told_anew):
                return True
            self._repeating.discard(source)
        return False

    def _compared(self, source: str, left: Position, right: Position) -> int:
        return self.around.sources[source].compare_positions(left, right)

    def _tell(self, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        self._count(sum(arrival.rows for arrival in arrivals))
        self._changes.add(arrivals)
        for manager in self._managers.values():
            manager.tell(tuple(arrivals))

    def _count(self, rows: int) -> None:
        with self._room:
            self._backlog += rows
            self._room.notify_all()

    # -- cuts -------------------------------------------------------------------------------------

    def _open_cuts(self, stack: contextlib.ExitStack) -> dict[str, Cut]:
        """One cut per source, with everything known that they can reflect."""
        cuts = {
            name: stack.enter_context(self.around.sources[name].cut(self._relations_of(name)))
            for name in self.sources
            if name in self.read_sources
        }
        for name, cut in cuts.items():
            if self._compared(name, cut.bound, self.reached[name]) < 0:
                raise _cut_behind(name)
        self._await_bounds(cuts)
        return cuts

    def _relations_of(self, source: str) -> tuple[str, ...]:
        return tuple(name.relation for name in self.relations if name.source == source)

    def _reflected(self, cuts: Mapping[str, Cut]) -> dict[str, Reflected]:
        waiting: dict[str, list[tuple[int, object]]] = {name: [] for name in self.sources}
        for arrival in self.integrator.pending:
            transaction = arrival.transaction
            waiting[transaction.source].append((transaction.number, arrival.origin))
        return {
            name: reflected_by(cut, self._applied[name], waiting[name])
            for name, cut in cuts.items()
        }

    def _await_bounds(self, cuts: Mapping[str, Cut]) -> None:
        patience = self.around.limits.bound_wait_seconds
        behind = list(cuts)
        moved_at, stood = time.monotonic(), dict(self._fed)
        self._needs_all = True
        try:
            while behind := [name for name in behind if not self._has_passed(name, cuts[name])]:
                if self._ending or self._due:
                    raise _Stopped
                self._take_in(0.05)
                if stood != self._fed:
                    moved_at, stood = time.monotonic(), dict(self._fed)
                if time.monotonic() - moved_at > patience:
                    raise _feed_behind(behind, patience)
        finally:
            self._needs_all = False
        for name, cut in cuts.items():
            if cut.life != self._life[name]:
                raise SourceError(
                    "source-restarted",
                    f"source {name} was restarted while it was being read",
                    source=name,
                    retryable=True,
                )

    def _has_passed(self, name: str, cut: Cut) -> bool:
        known = self._life[name] is not None
        return known and self._compared(name, self._fed[name], cut.bound) >= 0

    # -- jobs -------------------------------------------------------------------------------------

    def _begun(self) -> bool:
        """Begin a job with what has come; False when nothing of it is visible yet."""
        clock = Stopwatch()
        limits = self.around.limits
        with contextlib.ExitStack() as stack:
            cuts = self._open_cuts(stack)
            reflected = self._reflected(cuts)
            visible = {name: cut.reflects for name, cut in cuts.items()}
            batch = self.integrator.close_batch(
                # What is only watched is asked by nobody yet: it need not be visible.
                {name: visible.get(name, lambda origin: True) for name in self.sources},
                limits.batch_transactions_max,
                limits.batch_rows_max,
            )
            if not batch:
                return False
            clock.lap("capture")
            self._rows += 1
            spark = self.around.spark
            rows = sum(arrival.rows for arrival in batch)
            job = make_job(
                self._rows,
                batch,
                self._concerned(batch),
                tuple(self.views),
                cuts,
                stack.pop_all(),
                reflected,
                spark.tiny if rows <= limits.tiny_rows_max else spark.bulk,
                self.around.paces,
                clock,
            )
        if job.concerned:
            self.jobs[job.row] = job
        self._begun_at = time.monotonic()
        for arrival in batch:
            self._applied[arrival.transaction.source] = arrival.transaction.number
        streams = tuple(sorted({arrival.origin.source for arrival in batch}))
        relevance = RelevanceArrived(job.row, job.concerned, streams)
        self._carry_out(self.merge.step(relevance))
        for manager in self._managers.values():
            manager.begin(job, dict(self._applied))
        if not job.concerned:
            # Only watched relations changed: nothing to show, and nothing to wait for.
            self._count(-job.rows)
            job.stage.remove()
        return True

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
        table = self.merge.table
        rows = []
        for number in table.rows:
            cells = {view: table.cell(number, view) for view in table.columns}
            job = self.jobs.get(number)
            rows.append(
                {
                    "row": number,
                    "transactions": 0 if job is None else len(job.batch),
                    "cells": {
                        view: {"colour": cell.colour.name.lower(), "state": cell.state}
                        for view, cell in cells.items()
                    },
                    "waits_for": [v for v, cell in cells.items() if cell.colour is Colour.WHITE],
                }
            )
        algorithm = self.merge.algorithm.name
        return {"views": list(table.columns), "algorithm": algorithm, "rows": rows}

    def _apply(self, jobs: list[Job], tables: Mapping[str, list[Any]]) -> None:
        """Commit what the merge process has released, as one epoch."""
        for job in jobs:
            job.clock.lap("join")
        batch = [arrival for job in jobs for arrival in job.batch]
        reached = self._reached_with(jobs)
        numbers = [arrival.number for arrival in batch]
        # Unless every manager shows every transaction, what lies between is no state of all views.
        states = states_of(batch) if self.merge.level is Level.COMPLETE else [0] * len(batch)
        entry = self.around.epochs.apply(numbers, states, tables, self._cuts_of(reached))
        for job in jobs:
            job.clock.lap("commit")
            job.stage.remove()
            del self.jobs[job.row]
        begun = [job.batch[0].number for job in self.jobs.values()]
        self._changes.forget(min([numbers[-1] + 1, *begun]) - 1)
        self._noted, self._noted_at = reached, time.monotonic()
        self._count(-sum(job.rows for job in jobs))
        last = jobs[-1]
        views = tuple(self.views)
        self.around.report(
            Cycle(entry, tuple(batch), last.questions.asked, views, dict(last.clock.laps))
        )
        # Last: whoever sees that it was reached finds the epoch reported.
        self.reached = reached

    def _reached_with(self, jobs: list[Job]) -> dict[str, Position]:
        """Where each source stands for the views when these jobs are applied."""
        reached = dict(self.reached)
        for job in jobs:
            reached.update(last_positions(job.batch))
        waiting = {arrival.origin.source for arrival in self.integrator.pending}
        for job in self.jobs.values():
            if job not in jobs:
                waiting.update(arrival.origin.source for arrival in job.batch)
        return reached | {name: self._fed[name] for name in self.sources if name not in waiting}

    def _cuts_of(
        self, reached: Mapping[str, Position], views: Iterable[str] | None = None
    ) -> dict[str, dict[str, Position]]:
        """Each view's own cut: the sources that it reads."""
        return {
            name: {source: reached[source] for source in self.views[name].definition.sources}
            for name in (self.views if views is None else views)
        }

    def _note_positions(self) -> None:
        """Nothing waits: everything that the feeds have passed is applied, or was nothing for us."""
        if self.jobs or self.integrator.pending or self._due:
            return
        self.reached = dict(self._fed)
        due = time.monotonic() - self._noted_at >= self.around.limits.idle_seconds
        if due and self.reached != self._noted:
            self.around.epochs.advance(self._cuts_of(self.reached))
            self._noted, self._noted_at = self.reached, time.monotonic()

    # -- whole views ------------------------------------------------------------------------------

    def _load(self) -> None:
        """Fill the new views, all at the cut that the group stands at."""
        started = time.monotonic()
        with self._reading() as reading:
            adapted = [n for n in self.new if n in self._outdated]
            others = [n for n in self.new if n not in self._outdated]
            new = [self._adapted(name, reading) for name in adapted]
            new += self._filled(others, reading)
            rows = reading.rows_read
            new = [each.with_cost(time.monotonic() - started, rows) for each in new]
            self.around.epochs.fill(new, self._cuts_of(self.reached, self.new))
        for name in adapted:
            self.views[name] = next(each.view for each in new if each.view.name == name)
            self.around.tell({"event": "evolved", "view": name, **self.views[name].evolved})
        self.new, self._outdated = (), {}
        self._dismiss()
        self._begin_anew(list(self.integrator.pending))

    @contextlib.contextmanager
    def recomputed(self, view: str) -> Iterator[Any]:
        """A view computed from its sources alone, at the state that the warehouse stands at."""
        definition = self.views[view].definition
        try:
            with self._reading() as reading:
                contents = narrowed(definition, reading.relations([definition]))
                yield WholeView(pruned(definition)).evaluated(contents)
        except _Stopped:
            raise SourceError(
                "schema-changing",
                f"a source of {view} is changing its schema right now",
                source=self._due[0].source,
                retryable=True,
                hint="try again when the view has taken the change",
            ) from None

    def _filled(self, views: Iterable[str], reading: Reading) -> list[FilledView]:
        """Views from whole relations, each of which is read once."""
        definitions = {name: self.views[name].definition for name in views}
        relations = reading.relations(definitions.values())
        return [
            filled(self.views[name], narrowed(definition, relations))
            for name, definition in definitions.items()
        ]

    def _adapted(self, view: str, reading: Reading) -> FilledView:
        """A view that has got another definition: from its old extent where that is possible."""
        old, mapping = self._outdated[view]
        new = self.views[view].definition
        if not pruned_upkeep(new).stores and not pruned_upkeep(old).stores:
            extent = self.around.epochs.extent(view, self.around.spark.bulk, old.schema)
            found = adapted_extent(old, new, mapping, extent, reading)
            if found is not None:
                return FilledView(self.views[view], (), InitialContents(found, {}))
        (anew,) = self._filled([view], reading)
        return anew

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Reading]:
        """Relations as they are at the cut that the group stands at."""
        stage = StageFolder()
        staging = Staging(self.around.spark.bulk, stage.path)
        try:
            with contextlib.ExitStack() as stack:
                cuts = self._open_cuts(stack)
                waiting = tuple(self.integrator.pending)
                reflected = self._reflected(cuts)
                yield Reading(staging, cuts, reflected, waiting, self._changes, self._on_rows)
        finally:
            stage.remove()

    def _on_rows(self, name: RelationName, read: RowsRead) -> None:
        if self._ending:
            raise _Stopped
        self.around.on_rows(name, read)

    # -- schema changes ---------------------------------------------------------------------------

    def _evolve(self) -> None:
        """Take the next schema change: everything before it is applied, or waits in its new shape."""
        change = self._due[0]
        plan = foreseen(change, self.views, self.evolution)
        if plan.must_wait and not self._is_approved(plan):
            self._take_in(DECISION_WAIT_SECONDS)
            return
        self._due.popleft()
        before = self.views
        uncommitted = [
            arrival._replace(origin=as_after(arrival.origin, change))
            for arrival in self.integrator.pending
        ]
        self._dismiss()
        self._count(-self._backlog)
        for name, mapping in plan.mappings().items():
            old, known = self._outdated.get(name, (before[name].definition, None))
            merged = mapping if known is None else known.merged(mapping)
            self._outdated[name] = (old, merged)
        self.evolution = plan.evolution
        self._take_on(plan.views(before))
        refilled = {*self.new, *plan.mappings()}
        self.new = tuple(name for name in self.views if name in refilled)
        # A view whose rows stay the same is another one from here on, without a new extent.
        same = [v for name, v in self.views.items() if v != before[name] and name not in refilled]
        if same or plan.retired:
            retired = [(before[name], reason) for name, reason in plan.retired.items()]
            self.around.epochs.evolve(same, retired, change)
        self._begin_anew(uncommitted)
        note = self.around.log.told(plan, APPLIED, txn=self.around.epochs.writer.latest.last_txn)
        self.around.tell({"event": "schema_changed", **note})
        self._go_on_after(change)

    def _go_on_after(self, change: SchemaChange) -> None:
        """What came after the change can be taken in now; by a new name, it must be read again."""
        source = change.source
        held = self._held.pop(source)
        now = {r.relation for r in (*self.relations, *self.watched) if r.source == source}
        if change.renamed_to is not None and change.renamed_to in now:
            self._generation[source] = self.around.follow(source, self._fed[source])
            self._repeating.add(source)
            return
        for delivery in held:
            self._delivered(delivery)

    def _is_approved(self, plan: Foreseen) -> bool:
        frozen = any(effect.decision is Decision.FREEZE for effect in plan.must_wait)
        decision = self.around.log.decision(plan)
        if decision == "approve":
            return True
        status = REJECTED if decision == "reject" else FROZEN if frozen else PENDING
        if self._asked_for != (asked := f"{plan.reported.position} {status}"):
            self._asked_for = asked
            note = self.around.log.told(plan, status)
            self.around.tell({"event": "schema_waits", **note})
        return False


def _cut_behind(name: str) -> SourceError:
    return SourceError(
        "cut-behind",
        f"source {name} shows an older state than the views have already",
        source=name,
        retryable=True,
        detail="a replica that lags behind, or a server that was restored",
        hint="it is tried again; if it stays so, look at where the source's address leads",
    )


def _feed_behind(names: list[str], waited_seconds: float) -> SourceError:
    return SourceError(
        "feed-behind",
        f"the feed of {', '.join(names)} does not keep up with its source",
        source=names[0],
        retryable=True,
        detail=f"it stood still for {waited_seconds:.0f} s before a position that it must pass",
        hint="it is tried again; look at the source's load and its log",
    )


def _changed_inside_a_unit(change: SchemaChange) -> SourceError:
    return SourceError(
        "schema-changed-in-unit",
        f"{change.source}.{change.relation} was changed between the parts of a global transaction",
        source=change.source,
        retryable=False,
        detail=change.statement,
        hint="run again: the views take the change on their way",
    )
