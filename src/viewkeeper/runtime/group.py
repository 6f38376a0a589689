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
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra.types import Type
from viewkeeper.errors import SourceError
from viewkeeper.evolution.effects import Decision
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.runtime.adapting import adapted_extent
from viewkeeper.runtime.contents import Reading, narrowed
from viewkeeper.runtime.epochs import FilledView
from viewkeeper.runtime.evolution_log import APPLIED, FROZEN, PENDING, REJECTED
from viewkeeper.runtime.evolving import Evolution, Foreseen, as_after, foreseen
from viewkeeper.runtime.exact_cuts import Stopped
from viewkeeper.runtime.faults import failpoint
from viewkeeper.runtime.keeping import Keeping
from viewkeeper.runtime.managers.live import pruned_upkeep
from viewkeeper.runtime.managers.making import filled
from viewkeeper.runtime.surroundings import Surroundings
from viewkeeper.runtime.view import View
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.sources.stretch import transactions_of
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import InitialContents

RETRY_SECONDS = 1.0
DECISION_WAIT_SECONDS = 1.0
# Errors that mean: the schema is another one than we believe.
BROKEN = ("broken-query", "unknown-relation")
# How soon to look again when a transaction has arrived that no cut shows yet.
INVISIBLE_WAIT_SECONDS = 0.02


@dataclass(frozen=True)
class _Finish:
    """Apply what is here, then end; what is still coming is somebody else's to apply."""


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

        With predecessors it begins when they have ended, and at the cut where they did.
        """
        self.new = tuple(new)
        # For views whose extent is behind their definition: the one it belongs to, and what happened.
        self._outdated: dict[str, tuple[ViewDefinition, EvolutionMapping]] = {}
        # Sources of which the next state is one further on, with nothing shown of what led there;
        # views over them are computed from their sources.
        self._jumps: dict[str, Position] = {}
        self._asked_for: str | None = None
        self.began_with = tuple(views)
        self._predecessors = predecessors
        self._finishing = False
        self._thread: threading.Thread | None = None
        self.has_failed = False
        self.is_loaded = False
        super().__init__(views, around, starts, evolution)

    def handle(self, message: Any) -> None:
        if isinstance(message, _Finish):
            self._finishing = True
            self.end = dict(self.fed)
        else:
            super().handle(message)

    # -- its thread -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, or go on after `rest`."""
        name = f"group-{next(iter(self.views))}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """End the thread when the jobs at hand are committed; the caller owns the group then."""
        waited_for = (*self._predecessors, self)
        for group in waited_for:
            group.ending = True
            group.inbox.put(None)
        self.join()
        for group in waited_for:
            group.ending = False

    def finish(self) -> None:
        """End the thread when all that was delivered is committed."""
        self.inbox.put(_Finish())

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
            if self._finishing and not self.ending:
                self.reached = self.passed
        except BaseException as error:  # the pipeline's to judge: a group has no caller
            self.has_failed = True
            self.around.report(error)
        finally:
            self.let_go_of_cuts()

    @property
    def _is_over(self) -> bool:
        if self.ending or not self.views:
            return not self.jobs
        return self._finishing and not self.jobs and not self.has_work

    def _succeed(self) -> None:
        for predecessor in self._predecessors:
            predecessor.join()
            if predecessor.has_failed:
                self.ending = True  # it said why
            for name, position in predecessor.reached.items():
                self.reached[name] = self.fed[name] = self._noted[name] = position
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
            wait = min(self.around.limits.idle_seconds, self.cut_seconds_left)
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
        if self._finishing or self.is_full or not self.around.limits.heeds_periods:
            return 0.0
        periods = (period_seconds(view.definition) or 0.0 for view in self.views.values())
        return max(0.0, self.begun_at + max(periods, default=0.0) - time.monotonic())

    @property
    def is_loose(self) -> bool:
        """Whether its views ask for no more than to be right in the end, whatever others show."""
        return all(v.definition.level is Level.CONVERGENT for v in self.views.values())

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
            self.around.epochs.fill(new, self.cuts_of(reached, self.new))
        self.reached = reached
        for name in adapted:
            self.views[name] = next(each.view for each in new if each.view.name == name)
            self.around.tell({"event": "evolved", "view": name, **self.views[name].evolved})
        self.new, self._outdated, self._jumps = (), {}, {}
        self.dismiss()
        self.begin_anew(list(self.integrator.pending))

    @contextlib.contextmanager
    def recomputed(self, view: str) -> Iterator[Any]:
        """A view computed from its sources alone, at the state that the warehouse stands at."""
        definition = self.views[view].definition
        try:
            if self.new:
                raise Stopped
            with self.reading() as reading:
                contents = narrowed(definition, reading.relations([definition]))
                yield WholeView(pruned(definition)).evaluated(contents)
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
        self._asked_for = None
        before = self.views
        jumped = change.source if plan.rewrites and self._holds_rows_of(change) else None
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
        if jumped is not None:
            self._jumps[jumped] = self.fed[jumped]
            refilled |= {n for n, v in self.views.items() if jumped in v.definition.sources}
        self.new = tuple(name for name in self.views if name in refilled)
        # A view whose rows stay the same is another one from here on, without a new extent.
        same = [v for name, v in self.views.items() if v != before[name] and name not in refilled]
        if same or plan.retired:
            retired = [(before[name], reason) for name, reason in plan.retired.items()]
            self.around.epochs.evolve(same, retired, change)
        failpoint("schema-taken")
        self.begin_anew(uncommitted)
        note = self.around.log.told(plan, APPLIED, txn=self.around.epochs.writer.latest.last_txn)
        self.around.tell({"event": "schema_changed", **note})
        self._go_on_after(change)

    def _holds_rows_of(self, change: SchemaChange) -> bool:
        """Whether changes of the relation have arrived that are not applied."""
        return any(
            name == RelationName(change.source, change.relation)
            for arrival in self.integrator.pending
            for name in arrival.transaction.relations
        )

    def _go_on_after(self, change: SchemaChange) -> None:
        """What came after the change can be taken in now; by a new name, it must be read again."""
        source = change.source
        held = self.held.pop(source)
        now = {r.relation for r in (*self.relations, *self.watched) if r.source == source}
        if change.renamed_to is not None and change.renamed_to in now:
            self.generation[source] = self.around.follow(source, self.fed[source])
            self.repeating.add(source)
            return
        for delivery in held:
            self.deliver(delivery)

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
