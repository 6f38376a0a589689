"""Carries out what the engine wants done for one group of views: with cuts, view managers, Spark and the ledger.

Actions come in the engine's order and are carried out in it, by one thread. What came of them goes back to the
engine as events. Nothing is decided here.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from viewkeeper.engine import messages as m
from viewkeeper.engine.failures import Stopped
from viewkeeper.engine.integrator import numbers_of, places_of
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.schema_changes import does_not_fit
from viewkeeper.engine.view import View
from viewkeeper.errors import SourceError, invariant
from viewkeeper.evolution.adaptation import adapted
from viewkeeper.evolution.effects import Kind
from viewkeeper.evolution.map_va import MapVA
from viewkeeper.live.context import Context, EpochReport, shortfall_event
from viewkeeper.live.epochs import FilledView
from viewkeeper.live.evolution_log import ADAPTING, APPLIED, FROZEN, PENDING, REJECTED
from viewkeeper.live.faults import failpoint
from viewkeeper.live.jobs import Job, StageFolder, make_job
from viewkeeper.live.managers.live import LiveManager
from viewkeeper.live.managers.manager_factory import ManagerFactory, filled
from viewkeeper.live.managers.threads import ManagerThread, TakingTurns
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.live.questions.message_counts import MessageCounts
from viewkeeper.live.questions.prefetching import Prefetching
from viewkeeper.live.questions.shared_cuts import SharedCuts
from viewkeeper.live.questions.source_queries import Questions, asked_together
from viewkeeper.live.reading.bulk_reading import RowsRead
from viewkeeper.live.reading.contents import Reading, narrowed, whole_schemas
from viewkeeper.run_events import SchemaChangeApplied, SchemaChangeHeld, ViewEvolved, ViewsStopped
from viewkeeper.sources.interface import SchemaChange
from viewkeeper.spark.persisting import persisted
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import RelationName
from viewkeeper.views.upkeep import InitialContents

# So many managers do a view's jobs alternately, where its jobs need nothing of each other.
ALTERNATING = 2
# What may fail because of a source; after any other failure it is not known what the warehouse has.
READS = (m.OpenCuts, m.FillViews, m.Prefetch)


@dataclass(frozen=True)
class Opened:
    """Cuts for somebody who wants to read whole relations, and the group's views as they are there."""

    views: Mapping[str, View]
    cuts: SharedCuts
    read: m.ReadWhole
    changes: ChangeTables


class GroupWork:
    """One group's cuts, jobs and managers."""

    def __init__(
        self,
        machine: GroupMachine,
        around: Context,
        step: Callable[[m.GroupEvent], None],
        loaded: Callable[[], None],
    ) -> None:
        """``step`` takes an event of the group to the engine."""
        self.machine = machine
        self._around = around
        self._step = step
        self._loaded = loaded
        self._actions: queue.Queue[m.Action | None] = queue.Queue()
        self._stage = StageFolder(around.spark.tiny)
        self._changes = ChangeTables({})
        self._managers: dict[str, ManagerThread | TakingTurns] = {}
        self._sources: tuple[str, ...] = ()
        self._cuts: dict[int, SharedCuts] = {}
        self._jobs: dict[int, Job] = {}
        self._views: Mapping[str, View] = {}
        # By number, those who wait to read whole relations.
        self.readers: dict[int, Future[Opened]] = {}
        # The schema change that waits for a decision, and what was told of it.
        self.approval: tuple[SchemaChange, dict[str, Any]] | None = None
        self._asked_for = ""
        name = f"group-{next(iter(machine.scope.views), machine.number)}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def message_counts(self) -> dict[str, MessageCounts]:
        """What each view's manager has sent and got since it began."""
        return {name: thread.counts for name, thread in self._managers.items()}

    def put(self, action: m.Action) -> None:
        self._actions.put(action)

    def wait(self) -> None:
        """Return when all that was wanted so far is carried out."""
        self._actions.join()

    def close(self) -> None:
        """Let managers and cuts go, and what they left on the disk."""
        self._actions.put(None)
        self._thread.join()
        self._stop_managers()
        for cuts in self._cuts.values():
            with contextlib.suppress(SourceError):
                cuts.let_go()
        self._cuts = {}
        self._stage.remove()

    def _run(self) -> None:
        while (action := self._actions.get()) is not None:
            try:
                self._carry_out(action)
            except BaseException as error:
                is_final = not isinstance(action, READS)
                ticket = action.ticket if isinstance(action, m.OpenCuts) else None
                self._step(m.Failed(error, is_final=is_final, ticket=ticket))
            finally:
                self._actions.task_done()
        self._actions.task_done()

    def _carry_out(self, action: m.Action) -> None:
        match action:
            case m.TellManagers(arrivals):
                self._changes.add(arrivals)
                for manager in self._managers.values():
                    manager.tell(arrivals)
            case m.OpenCuts():
                self._open(action)
            case m.Prefetch():
                self._prefetch(action)
            case m.StartJob():
                self._start_job(action)
            case m.Commit():
                self._commit(action)
            case m.ReleaseCuts(ticket):
                self._cuts.pop(ticket).let_go()
            case m.Note(reached, positions, is_durable):
                epochs = self._around.epochs
                epochs.advance(positions) if is_durable else epochs.rest(positions)
                self._step(m.Noted(reached, is_durable))
            case m.StartManagers():
                self._start_managers(action)
            case m.StopManagers():
                self._stop_managers()
            case m.FillViews():
                self._fill(action)
            case m.ReadWhole(reader, ticket):
                opened = Opened(self._views, self._cuts.pop(ticket), action, self._changes)
                self.readers.pop(reader).set_result(opened)
            case m.RefuseReading(reader, change, error):
                self.readers.pop(reader).set_exception(error or self._schema_changing(change))
            case _:
                self._tell(action)

    # -- cuts and jobs -----------------------------------------------------------------------------

    def _open(self, wanted: m.OpenCuts) -> None:
        sources = self._around.sources
        with contextlib.ExitStack() as stack:
            cuts = {
                name: stack.enter_context(sources[name].cut(relations))
                for name, relations in wanted.relations.items()
            }
            estimates = {n: cuts[n.source].row_estimate(n.relation) for n in wanted.weigh}
            staging = Staging(self._around.spark.tiny, self._stage.path)
            questions = Questions.in_advance(cuts, staging, self._around.paces)
            self._cuts[wanted.ticket] = SharedCuts(questions, stack.pop_all())
        sizes = {name: rows for name, rows in estimates.items() if rows is not None}
        self._step(m.CutsOpened(wanted.ticket, cuts, sizes))

    def _prefetch(self, wanted: m.Prefetch) -> None:
        held = self._cuts[wanted.ticket]
        managers = [self._manager(name, held.questions.staging) for name in wanted.views]
        sources = [self._around.sources[name] for name in held.cuts]
        held.before_closing(Prefetching(held.questions, managers, wanted.batch, sources).end)

    def _start_job(self, wanted: m.StartJob) -> None:
        failpoint("cuts-open")
        held = self._cuts[wanted.ticket] if wanted.keeps else self._cuts.pop(wanted.ticket)
        held.questions.stop_asking()
        is_tiny = sum(each.rows for each in wanted.batch) <= self._around.limits.tiny_rows_max
        spark = self._around.spark
        job = make_job(
            wanted, held.hold() if wanted.keeps else held, spark.tiny if is_tiny else spark.bulk
        )
        if wanted.keeps:
            # Its cost is this job's; what was answered is there for the next one, too.
            held.questions = held.questions.of_another_batch()
        failpoint("batch-closed")
        if wanted.concerned:
            self._jobs[job.serial] = job
        for view in wanted.told:
            self._managers[view].begin(job, wanted.settled)

    def _commit(self, commit: m.Commit) -> None:
        """What the merge process has released, as one epoch."""
        jobs = [self._jobs[serial] for serial in commit.jobs]
        for job in jobs:
            job.clock.lap("join")
        tables: dict[str, list[Any]] = {}
        for contents in commit.contents:
            for name, table in contents.items():
                tables.setdefault(name, []).append(table)
        batch, states = commit.batch, commit.states
        entry = self._around.epochs.apply(
            numbers_of(batch), states, tables, commit.positions, lambda: places_of(batch, states)
        )
        for job in jobs:
            job.clock.lap("commit")
            job.stage.remove()
            del self._jobs[job.serial]
        self._changes.forget(commit.forget_upto)
        asked = asked_together(job.questions.asked for job in jobs)
        seconds = dict(jobs[-1].clock.laps)
        self._around.report(EpochReport(entry, batch, asked, commit.views, seconds))
        # Last: whoever sees that it was reached finds the epoch reported.
        self._step(m.Committed(commit.number))

    # -- managers ----------------------------------------------------------------------------------

    def _start_managers(self, wanted: m.StartManagers) -> None:
        self._views, self._sources = wanted.views, wanted.sources
        whole = whole_schemas(view.definition for view in wanted.views.values())
        self._changes = ChangeTables(dict(wanted.watched) | whole)
        staging = Staging(self._around.spark.tiny, self._stage.path)
        self._managers = {name: self._at_work(name, staging) for name in wanted.views}
        if wanted.arrivals:
            self._carry_out(m.TellManagers(wanted.arrivals))

    def _manager(self, view: str, staging: Staging) -> LiveManager:
        around = self._around
        workshop = ManagerFactory(
            staging, self._sources, self._changes, around.sources, around.spark, around.epochs
        )
        return workshop.manager(self._views[view])

    def _at_work(self, view: str, staging: Staging) -> ManagerThread | TakingTurns:
        manager = self._manager(view, staging)
        if not manager.takes_turns or self._around.limits.jobs_max < ALTERNATING:
            return ManagerThread(view, manager, self._step)
        others = [self._manager(view, staging) for _ in range(ALTERNATING - 1)]
        return TakingTurns(view, [manager, *others], self._step)

    def _stop_managers(self) -> None:
        """Whatever they still do counts for nothing."""
        managers, self._managers = self._managers, {}
        for manager in managers.values():
            manager.stop()
        for job in self._jobs.values():
            job.stage.remove()
        self._jobs = {}

    # -- whole views -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(
        self, cuts: SharedCuts, wanted: m.FillViews | m.ReadWhole, changes: ChangeTables
    ) -> Iterator[Reading]:
        """Relations as they are at the cut that the group stands at; closes the cuts."""
        session = self._around.spark.bulk
        stage = StageFolder(session)
        staging = Staging(session, stage.path)
        try:
            with persisted() as share:
                known = wanted.reflected, wanted.waiting
                yield Reading(staging, cuts.cuts, *known, changes, self._on_rows, share)
        finally:
            cuts.let_go()
            stage.remove()

    def _on_rows(self, name: RelationName, read: RowsRead) -> None:
        if self.machine.is_resting:
            raise Stopped
        self._around.on_rows(name, read)

    def _fill(self, wanted: m.FillViews) -> None:
        started = time.monotonic()
        epochs = self._around.epochs
        with self.reading(self._cuts.pop(wanted.ticket), wanted, self._changes) as reading:
            others = [n for n in wanted.views if n not in wanted.adaptations]
            new = [
                self._adapted(wanted.views[n], p, reading) for n, p in wanted.adaptations.items()
            ]
            new += self._filled(others, wanted, reading)
            rows = reading.rows_read
            new = [each.with_cost(time.monotonic() - started, rows) for each in new]
            failpoint("before-fill")
            epochs.fill(new, wanted.positions, wanted.definitions)
        self._tell_stopped(wanted.definitions)
        self._step(m.Filled({each.view.name: each.view for each in new}))

    def _filled(self, names: list[str], wanted: m.FillViews, reading: Reading) -> list[FilledView]:
        """Views from whole relations, each of which is read once."""
        views = [wanted.views[name] for name in names]
        relations = reading.relations([view.definition for view in views])
        return [filled(view, narrowed(view.definition, relations), reading.share) for view in views]

    def _adapted(self, view: View, plan: MapVA, reading: Reading) -> FilledView:
        """A view that has got another definition, from its old extent."""
        extent = self._around.epochs.extent(view.name, self._around.spark.bulk, plan.before)
        found = adapted(plan, extent, reading)
        return FilledView(view, (), InitialContents(found.extent, {}))

    def _schema_changing(self, change: SchemaChange | None) -> SourceError:
        views = ", ".join(sorted(self._views))
        return SourceError(
            "schema-changing",
            f"a source of {views} is changing its schema right now",
            source=self._sources[0] if change is None else change.source,
            retryable=True,
            hint="try again when the view has taken the change",
        )

    # -- what is told ------------------------------------------------------------------------------

    def _tell(self, action: m.Action) -> None:
        around = self._around
        match action:
            case m.CommitDefinitions():
                around.epochs.evolve(action)
                self._tell_stopped(action)
                failpoint("schema-taken")
            case m.LookForDecision():
                self._look_for_decision(action)
            case m.TieViews(views):
                around.epochs.tie(views)
            case m.TellChange(plan, is_applied):
                self.approval, self._asked_for = None, ""
                if is_applied:
                    txn = around.epochs.writer.latest.last_txn
                    note = around.log.told(plan, APPLIED, txn=txn)
                    around.tell(SchemaChangeApplied.of(note))
                else:
                    failpoint("schema-taken")
                    around.log.told(plan, ADAPTING)
            case m.TellEvolved(view, is_short):
                evolved = {"view": view.name, **(view.evolved or {})}
                around.tell(shortfall_event(view) if is_short else ViewEvolved.of(evolved))
            case m.ReportError(error):
                around.report(error)
                self._loaded()
            case m.GroupLoaded() | m.GroupEnded():
                self._loaded()
            case _:
                invariant(False, f"{type(action).__name__} is not for a group")

    def _tell_stopped(self, changed: m.CommitDefinitions) -> None:
        for view, effect, _ in changed.ended:
            if effect.kind is Kind.STOPPED:
                error = does_not_fit(view.name, effect.reason).as_dict()
                self._around.tell(ViewsStopped((view.name,), error))

    def _look_for_decision(self, wanted: m.LookForDecision) -> None:
        plan, log = wanted.plan, self._around.log
        decision = log.decision(plan)
        if decision != "approve":
            frozen = FROZEN if wanted.is_frozen else PENDING
            status = REJECTED if decision == "reject" else frozen
            asked = f"{plan.reported.position} {status}"
            if self._asked_for != asked:
                self._asked_for = asked
                note = log.told(plan, status)
                told = ("id", "at", "source", "relation", "statement", "status")
                self.approval = plan.reported, {name: note[name] for name in told}
                self._around.tell(SchemaChangeHeld.of(note))
        self._step(m.DecisionFound(plan.reported, decision))
