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
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra.types import Type
from viewkeeper.engine.intake import changed_while_uniting
from viewkeeper.engine.schema_changes import Evolution, Foreseen, as_after, does_not_fit, foreseen
from viewkeeper.engine.unions import Union
from viewkeeper.engine.view import View, shortfall_event
from viewkeeper.errors import SourceError
from viewkeeper.evolution.effects import Decision, Kind
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.runtime.adapting import adapted_extent
from viewkeeper.runtime.contents import Reading, narrowed
from viewkeeper.runtime.epochs import FilledView
from viewkeeper.runtime.evolution_log import ADAPTING, APPLIED, FROZEN, PENDING, REJECTED
from viewkeeper.runtime.exact_cuts import Stopped
from viewkeeper.runtime.faults import failpoint
from viewkeeper.runtime.feeds import Delivery
from viewkeeper.runtime.keeping import Keeping
from viewkeeper.runtime.managers.live import pruned_upkeep
from viewkeeper.runtime.managers.making import filled
from viewkeeper.runtime.standing import Standing
from viewkeeper.runtime.surroundings import Surroundings
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.sources.stretch import transactions_of
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import InitialContents

RETRY_SECONDS = 1.0
DECISION_WAIT_SECONDS = 1.0
# Errors that mean: the schema is another one than we believe, and the feed will say what it is.
BROKEN = ("broken-query", "unknown-relation", "not-recorded")
# How soon to look again when a transaction has arrived that no cut shows yet.
INVISIBLE_WAIT_SECONDS = 0.02
# How soon to look again whether those that end together with a group have come to their end.
UNION_WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class _Finish:
    """Apply what lies before these positions, then end; what comes then is another group's."""

    end: Mapping[str, Position]
    union: Union


class Group(Keeping):
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

        With predecessors it begins when they have ended, which they do at the cut where it starts.
        """
        self.new = tuple(new)
        # For views whose extent is behind their definition: the one it belongs to, and what happened.
        self._outdated: dict[str, tuple[ViewDefinition, EvolutionMapping]] = {}
        # Sources of which the next state is one further on, with nothing shown of what led there;
        # views over them are computed from their sources.
        self._jumps: dict[str, Position] = {}
        self._asked_for: str | None = None
        # What was told of the change that waits for somebody's word.
        self._approval: dict[str, Any] | None = None
        # Schema changes that are taken, but whose rows are not in the warehouse yet.
        self._taken: list[Foreseen] = []
        self.began_with = tuple(views)
        self._predecessors = predecessors
        self._thread: threading.Thread | None = None
        self.has_failed = False
        # Whether it has applied all up to its end.
        self.has_ended = False
        self.is_loaded = False
        super().__init__(views, around, starts, evolution)

    def handle(self, message: Any) -> None:
        if isinstance(message, _Finish):
            self.end_at(message.end, message.union)
        else:
            super().handle(message)

    # -- its thread -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, or go on after `rest`."""
        for group in self._predecessors:
            if not (group.has_ended or group.has_failed or group.is_running):
                group.start()
        name = f"group-{next(iter(self.views))}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """End the thread when the jobs at hand are committed; the caller owns the group then."""
        # Itself first: when a predecessor has stopped short of its end, it must know why.
        waited_for = tuple(self._lineage())
        for group in waited_for:
            group.ending = True
            group.inbox.put(None)
        for group in waited_for:
            group.join()
        for group in waited_for:
            group.ending = False

    def _lineage(self) -> Iterator[Group]:
        yield self
        for predecessor in self._predecessors:
            yield from predecessor._lineage()

    def finish(self, end: Mapping[str, Position], union: Union) -> None:
        """End the thread when all up to these positions is committed, here and in the union."""
        self.inbox.put(_Finish(end, union))

    @property
    def is_at_work(self) -> bool:
        return bool(self.new) or super().is_at_work

    def wants(self, delivery: Delivery) -> bool:
        """Whether it may be news for the group: what its predecessors apply is not."""
        source = delivery.source
        if source not in self.sources:
            return False
        if not self._predecessors:
            return True
        return self.compared(source, delivery.position, self.starts[source]) >= 0

    def close(self) -> None:
        for predecessor in self._predecessors:
            predecessor.close()
        super().close()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._succeed()
            while not self._is_over:
                self._retried(self._turn)
            if self.is_parting and not self.ending:
                self._part()
            self.has_ended = self.end is not None and not self.ending
            self.is_done = self.is_done or self.has_ended
        except BaseException as error:  # the pipeline's to judge: a group has no caller
            self.has_failed = True
            self.around.report(error)
        finally:
            self.let_go_of_cuts()

    def _part(self) -> None:
        """All up to its end is applied."""
        self.reached = self.passed
        if self.union.taken:
            # Its successor would have to begin before the changes, with views that are behind them.
            self.around.epochs.advance(self.cuts_of(self.reached))
            raise changed_while_uniting(self.union.taken[0])

    @property
    def _is_over(self) -> bool:
        if self.ending or not self.views:
            return not self.jobs
        self.look_whether_done()
        return self.is_done and self.union.is_over

    def _succeed(self) -> None:
        for predecessor in self._predecessors:
            predecessor.join()
        if self.ending and self._predecessors:
            return  # they rest as well, perhaps short of their end
        if any(predecessor.has_failed for predecessor in self._predecessors):
            self.has_failed = self.ending = True  # it said why
            self.around.loaded()
            return
        for predecessor in self._predecessors:
            for name, position in predecessor.reached.items():
                # The same place; but only its predecessors know what they have heard of there.
                if self.compared(name, position, self.starts[name]) == 0:
                    self.reached[name] = self.fed[name] = position
            for name, generation in predecessor.generation.items():
                self.generation[name] = max(generation, self.generation.get(name, 0))
            # Where they ended may be in no entry of the ledger.
            self._noted = {}
            predecessor.close()
        if any(predecessor.has_evolved for predecessor in self._predecessors):
            self._inherit()
        self._predecessors = ()
        while self.new and not self.ending:
            self._retried(self._turn)
        self.is_loaded = True
        self.around.loaded()

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
            if error.source is not None:
                self.around.renew(error.source)
            self._recover()

    def _await_cause(self, broken: SourceError) -> None:
        """A query broke: somebody changed the schema, and the feed is about to say how."""
        deadline = time.monotonic() + self.around.limits.bound_wait_seconds
        while not self.due and not self.ending:
            self.take_in(0.1)
            if time.monotonic() > deadline:
                raise broken

    def _recover(self) -> None:
        uncommitted = [arrival for job in self.jobs.values() for arrival in job.batch]
        uncommitted += self.integrator.pending
        self.dismiss()
        deadline = time.monotonic() + RETRY_SECONDS
        self.begin_anew(uncommitted)
        while (left := deadline - time.monotonic()) > 0 and not self.ending:
            self.take_in(left)

    def _turn(self) -> None:
        if not self.cut_seconds_left or not (self.jobs or self._may_begin):
            self.let_go_of_cuts()
        if self.due and not self.jobs:
            self._evolve()
        elif self.new and not self.jobs:
            with contextlib.suppress(Stopped):
                self._load()
        elif self._may_begin:
            self.take_in(None)
            with contextlib.suppress(Stopped):
                if not self.begin_job():
                    self.take_in(INVISIBLE_WAIT_SECONDS)
        else:
            idle = not self.jobs and not self.integrator.pending
            if idle:
                self.note_positions()  # of what came with the last job's end
            wait = min(self.around.limits.idle_seconds, self.cut_seconds_left)
            wait = min(wait, UNION_WAIT_SECONDS) if self.is_done else wait
            self.take_in(wait if idle else min(wait, self._early_seconds or wait))
            if idle:
                self.note_positions()

    @property
    def _may_begin(self) -> bool:
        limits = self.around.limits
        # One more where much waits: somebody always has work, and small batches do not become smaller.
        is_backlog = self.integrator.waiting >= limits.backlog_from
        has_room = len(self.jobs) < limits.jobs_max + is_backlog
        stays = not self.ending and not self.due and not self.new
        return self.has_work and has_room and stays and not self._early_seconds

    @property
    def _early_seconds(self) -> float:
        """How long the next batch has to wait: a periodic view holds back all that move with it."""
        if self.end is not None or self.is_full or not self.around.limits.heeds_periods:
            return 0.0
        periods = (period_seconds(view.definition) or 0.0 for view in self.views.values())
        return max(0.0, self.begun_at + max(periods, default=0.0) - time.monotonic())

    @property
    def is_loose(self) -> bool:
        """Whether its views ask for no more than to be right in the end, whatever others show."""
        return all(v.definition.level is Level.CONVERGENT for v in self.views.values())

    def note_at_the_end(self) -> None:
        """At rest: the ledger is to say where it really stands, for whoever begins there."""
        if self.is_loaded and self.is_settled and not (self.new or self.has_failed):
            self.reached = self.passed
            self.note(self.reached)

    # -- whole views ------------------------------------------------------------------------------

    def _load(self) -> None:
        """Fill the new views, all at the cut that the group stands at."""
        started = time.monotonic()
        with self.reading() as reading:
            adapted = [n for n in self.new if n in self._outdated]
            others = [n for n in self.new if n not in self._outdated]
            new = [self._adapted(name, reading) for name in adapted]
            new += self._filled(others, reading)
            rows = reading.rows_read
            new = [each.with_cost(time.monotonic() - started, rows) for each in new]
            failpoint("before-fill")
            reached = self.reached | self._jumps
            # All of the group stand there: the next run finds them together, and so do readers.
            self.around.epochs.fill(new, self.cuts_of(reached))
        self.reached = reached
        self._tell_applied()
        for name in adapted:
            self.views[name] = next(each.view for each in new if each.view.name == name)
            self.around.tell({"event": "evolved", "view": name, **self.views[name].evolved})
        self.new, self._outdated, self._jumps = (), {}, {}
        self.dismiss()
        self.begin_anew(list(self.integrator.pending))

    @contextlib.contextmanager
    def recomputed(self, view: str) -> Iterator[FilledView]:
        """A view and its stores from its sources alone, at the state that the warehouse stands at."""
        definition = self.views[view].definition
        try:
            if self.new or self._predecessors:
                raise Stopped
            with self.reading() as reading:
                contents = narrowed(definition, reading.relations([definition]))
                found = filled(self.views[view], contents, reading.share)
                # As the definition says, not as the view's manager would go about it.
                rows = WholeView(pruned(definition)).evaluated(contents)
                yield replace(found, contents=InitialContents(rows, found.contents.stores))
        except Stopped:
            raise SourceError(
                "schema-changing",
                f"a source of {view} is changing its schema right now",
                source=self.due[0].source if self.due else definition.sources[0],
                retryable=True,
                hint="try again when the view has taken the change",
            ) from None

    def _filled(self, views: Iterable[str], reading: Reading) -> list[FilledView]:
        """Views from whole relations, each of which is read once."""
        definitions = {name: self.views[name].definition for name in views}
        relations = reading.relations(definitions.values())
        return [
            filled(self.views[name], narrowed(definition, relations), reading.share)
            for name, definition in definitions.items()
        ]

    def _adapted(self, view: str, reading: Reading) -> FilledView:
        """A view that has got another definition: from its old extent where that is possible."""
        old, mapping = self._outdated[view]
        new = self.views[view].definition
        stored = pruned_upkeep(new).stores or pruned_upkeep(old).stores
        if not stored and self._jumps.keys().isdisjoint(new.sources):
            extent = self.around.epochs.extent(view, self.around.spark.bulk, old.schema)
            found = adapted_extent(old, new, mapping, extent, reading)
            if found is not None:
                return FilledView(self.views[view], (), InitialContents(found, {}))
        (anew,) = self._filled([view], reading)
        return anew

    # -- schema changes ---------------------------------------------------------------------------

    def _evolve(self) -> None:
        """Take the next schema change: everything before it is applied, or waits in its new shape."""
        change = self.due[0]
        plan = foreseen(change, self.views, self.evolution)
        if plan.must_wait and not self._is_approved(plan):
            self.take_in(DECISION_WAIT_SECONDS)
            return
        self.due.popleft()
        self.due_since.pop(change.source, None)
        self._asked_for = self._approval = None
        before = self.views
        is_cut_off = change.skips or (plan.rewrites and self._holds_rows_of(change.source))
        jumped = change.source if is_cut_off else None
        uncommitted = [
            arrival._replace(origin=as_after(origin, change))
            for arrival in self.integrator.pending
            if arrival.origin.source != jumped
            for origin in transactions_of(arrival.origin)
        ]
        self.dismiss()
        for name, mapping in plan.mappings().items():
            if name in self.new and name not in self._outdated:
                continue  # not filled yet: an extent under its name is that of another text
            old, known = self._outdated.get(name, (before[name].definition, None))
            merged = mapping if known is None else known.merged(mapping)
            self._outdated[name] = (old, merged)
        self.evolution = plan.evolution
        self.take_on(plan.views(before))
        refilled = {*self.new, *plan.mappings()}
        # What is kept beside a view has the types that its relations had.
        refilled |= {
            n for n, v in self.views.items() if _stored_types(v) != _stored_types(before[n])
        }
        if jumped is not None or (plan.rewrites and refilled):
            # The rows that are read next are those after the change: so are the positions that go with them.
            source = change.source
            self._jumps[source] = self.fed[source]
            if self.is_parting and self.end is not None:
                self.end[source] = self.fed[source]
        if jumped is not None:
            refilled |= {n for n, v in self.views.items() if jumped in v.definition.sources}
        self.new = tuple(name for name in self.views if name in refilled)
        # A view whose rows stay the same is another one from here on, without a new extent.
        same = [v for name, v in self.views.items() if v != before[name] and name not in refilled]
        if same or plan.ended:
            ended = [(plan.with_lineage(before[n]), effect) for n, effect in plan.ended.items()]
            self.around.epochs.evolve(same, ended, change)
            for name, effect in plan.ended.items():
                if effect.kind is Kind.STOPPED:
                    error = does_not_fit(name, effect.reason).as_dict()
                    self.around.tell({"event": "views_stopped", "views": [name], "error": error})
        failpoint("schema-taken")
        self.begin_anew(uncommitted)
        # The change has no rows: else a process that begins now would meet it once more.
        self.notes_soon = True
        self._taken.append(plan)
        if self.new:
            self.around.log.told(plan, ADAPTING)
        else:
            self._tell_applied()
        for name, view in self.views.items():
            if view.shortfall is not None and before[name].shortfall is None:
                self.around.tell(shortfall_event(view))
        self._go_on_after(change)

    def _tell_applied(self) -> None:
        """The views' rows are there: what was taken is applied."""
        taken, self._taken = self._taken, []
        for plan in taken:
            txn = self.around.epochs.writer.latest.last_txn
            note = self.around.log.told(plan, APPLIED, txn=txn)
            self.around.tell({"event": "schema_changed", **note})

    def _holds_rows_of(self, source: str) -> bool:
        """Whether changes of the source have arrived that are not applied.

        Also of other relations: the one that was rewritten can be read only as it is after that, and beside
        it a row that was committed before would be missing.
        """
        return any(arrival.origin.source == source for arrival in self.integrator.pending)

    def _go_on_after(self, change: SchemaChange) -> None:
        """What came after the change can be taken in now; by a new name, it must be read again."""
        source = change.source
        now = {r.relation for r in (*self.relations, *self.watched) if r.source == source}
        if change.renamed_to is not None and change.renamed_to in now:
            self.go_back(source)
        else:
            self.let_go(source)

    def _is_approved(self, plan: Foreseen) -> bool:
        frozen = any(effect.decision is Decision.FREEZE for effect in plan.must_wait)
        decision = self.around.log.decision(plan)
        if decision == "approve":
            return True
        status = REJECTED if decision == "reject" else FROZEN if frozen else PENDING
        if self._asked_for != (asked := f"{plan.reported.position} {status}"):
            self._asked_for = asked
            note = self.around.log.told(plan, status)
            # Another run may have met it before this one.
            self.due_since[plan.reported.source] = dt.datetime.fromisoformat(note["at"])
            self.note_unshown()
            told = ("id", "at", "source", "relation", "statement", "status")
            self._approval = {name: note[name] for name in told}
            self.around.tell({"event": "schema_waits", **note})
        return False

    def standing(self) -> Standing:
        found, approval = super().standing(), self._approval
        if approval is None:
            return found
        # Nothing of the group moves: also a view that does not read the source is held up.
        told = approval | {"views": sorted(found.views)}
        return replace(found, approvals=(told,))

    @property
    def waits_for_word(self) -> SchemaChange | None:
        """The schema change that somebody must decide on before the group can go on."""
        return self.due[0] if self.due and self._asked_for is not None and not self.jobs else None

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
        self.dismiss()
        self.take_on(kept)
        self.begin_anew(list(self.integrator.pending))

    @property
    def has_evolved(self) -> bool:
        return self.began_with != tuple(self.views) or any(
            view.evolved is not None for view in self.views.values()
        )


def _stored_types(view: View) -> list[tuple[Type, ...]]:
    """The types of the columns of everything that is kept beside a view."""
    stores = pruned_upkeep(view.definition).stores
    return [tuple(field.type for field in store.schema) for store in stores]
