"""The management of an evolving view: the upper level of concurrency control.

Paper: DyDa, section 4.2, Figures 3 and 4. Updates are handled one at a time, in the order of their
arrival. A data change is maintained (VM); a schema change first gives the view another definition (VS),
then the extent that belongs to it (VA), and then maintenance starts again (Reset-VM). When a query meets a
drop that has not been handled yet, what was being done is aborted, goes into that drop's concurrent
update set, and is seen to when its turn comes. Level: strong. Assumes: each source's updates and answers
arrive in order, or are brought into it (an answer after everything that it reflects).

The states and what leads from one to the next are in `states`.

Where we differ:
- Updates of one source are never taken out of their order: while one of them is aborted, later ones
  wait for the same schema change instead of being tried. The paper does not say so.
- An adaptation takes in *everything* that was aborted up to then, also what another schema change
  aborted: its extent then is the view at one cut, exactly.
- Reset-VM asks nothing, so it can't detect anything; its arc is kept for those whose does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, cast

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.errors import InvariantViolated, UsageError, invariant
from viewkeeper.evolution.adaptation import Adapted, Task, adapted
from viewkeeper.evolution.changes import SchemaChanged, Update, catalog_after
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.maintenance import maintained
from viewkeeper.evolution.messages import (
    Action,
    Event,
    InstallVersion,
    QueryBroken,
    ReadRelation,
    RetireView,
    RowsArrived,
    UpdateArrived,
)
from viewkeeper.evolution.naming import Names
from viewkeeper.evolution.query_engine import Answered, Interrupted, Outcome, QueryEngine
from viewkeeper.evolution.reading import Process
from viewkeeper.evolution.relationships import ConcurrentUpdates
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.evolution.states import TRANSITIONS, Happening, State
from viewkeeper.evolution.synchronization import (
    Renamed,
    Retired,
    Synchronized,
    preferences_after,
    synchronized,
)
from viewkeeper.evolution.update_log import UpdateLog
from viewkeeper.evolution.versions import VersionHistory, ViewVersion
from viewkeeper.protocols.messages import InstallChange, SourceSettled
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import Occurrence, ViewDefinition
from viewkeeper.views.pruning import pruned


class Management:
    """Keeps one view through data and schema changes. `step` is its only entry."""

    def __init__(
        self,
        view: EvolvingView,
        extent: Any,
        catalog: Catalog,
        knowledge: Knowledge,
        start: Cut,
    ) -> None:
        """``extent`` is the view at ``start``, which names every source that updates come from.

        Raises UsageError for a view that groups or removes duplicates: keep the rows before that.
        """
        if view.definition.steps or not all(term.is_linear for term in view.definition.terms):
            raise UsageError(
                "view-not-linear",
                f"{view.definition.name} can't be maintained here: it groups or removes duplicates",
                hint="maintain the rows before grouping",
            )
        self.versions = VersionHistory(view.definition, view.preferences)
        self.extent = extent
        self.catalog = catalog
        self.knowledge = knowledge
        self.applied = start
        self._settled = start
        self.log = UpdateLog(start)
        self.engine = QueryEngine(self.log)
        self.relationships = ConcurrentUpdates()
        self.state = State.WAIT
        self.is_retired = False
        self.queue: deque[Update] = deque()
        # Received and begun, but in no state yet; each was aborted, or waits with one that was.
        self.pending: list[Update] = []
        self._handling: Update | None = None
        self._process: Process[Any] | None = None

    def step(self, event: Event) -> tuple[Action, ...]:
        """Take one event in; the actions must be carried out in the order given."""
        return tuple(self._stepped(event))

    def _stepped(self, event: Event) -> Iterator[Action]:
        match event:
            case UpdateArrived(update):
                if not self.is_retired:
                    self._receive(update)
            case RowsArrived():
                yield from self._continued(self.engine.rows_arrived(event))
            case QueryBroken():
                yield from self._continued(self.engine.broken(event))
            case SourceSettled(source, upto):
                self._settled = self._settled.advanced(source, upto)
        while self.state is State.WAIT and self.queue and not self.is_retired:
            yield from self._begun(self.queue.popleft())
        if self.state is State.WAIT:
            # No question is open: every answer to come reflects what is settled now.
            self.log.forget(self.applied, self._settled)

    @property
    def is_idle(self) -> bool:
        """Whether everything that arrived is in a state, or the view is retired."""
        return self.is_retired or (self.state is State.WAIT and not self.queue and not self.pending)

    @property
    def definition(self) -> ViewDefinition:
        """The latest definition, cut down to the columns it uses."""
        return pruned(self.versions.latest.definition)

    # -- Wait --------------------------------------------------------------------------------------

    def _receive(self, update: Update) -> None:
        expected = self.log.received[update.source] + 1
        invariant(update.number == expected, f"{update} came, and number {expected} was expected")
        self.log.add(update)
        self.relationships.received(update)
        self.queue.append(update)

    def _begun(self, update: Update) -> Iterator[Action]:
        self._handling = update
        if isinstance(update, SchemaChanged):
            self._becomes(Happening.SC_RECEIVED)
            yield from self._synchronizing(update)
        elif self.must_wait(update):
            self._postpone(update, self._cause_ahead())
        else:
            self._becomes(Happening.DU_RECEIVED)
            yield from self._running(self._maintenance(update))

    def must_wait(self, update: Transaction) -> bool:
        """Whether something of its source, or the view's own extent, is not as far yet."""
        return not self.versions.is_adapted or any(p.source == update.source for p in self.pending)

    def _postpone(self, update: Update, cause: SchemaChanged) -> None:
        self.relationships.aborted(update, cause)
        self.pending.append(update)

    def _cause_ahead(self) -> SchemaChanged:
        """The first schema change in the queue that has aborted something."""
        for update in self.queue:
            if isinstance(update, SchemaChanged) and self.relationships.of(update):
                return update
        raise InvariantViolated("updates wait for a schema change that is not in the queue")

    def _waits_for_another(self) -> bool:
        return any(
            isinstance(update, SchemaChanged) and self.relationships.of(update)
            for update in self.queue
        )

    # -- VM ----------------------------------------------------------------------------------------

    def _maintenance(self, update: Transaction) -> Process[Any]:
        after = self.applied.advanced(update.source, update.number)
        return maintained(self.definition, self._changes(self.applied, after), self.applied, after)

    def _changes(self, before: Cut, after: Cut) -> Any:
        """What an occurrence's relation changed by between two cuts."""

        def change_of(occurrence: Occurrence) -> Any | None:
            names = Names(occurrence.name, occurrence.schema.names)
            source = occurrence.source
            return self.log.change(names, occurrence.schema, before[source], after[source])

        return change_of

    def _maintained(self, change: Any | None) -> Iterator[Action]:
        update = cast(Transaction, self._handling)
        self.applied = self.applied.advanced(update.source, update.number)
        self.relationships.forget((update,))
        if change is None:
            change = self.extent.where(FALSE)
        else:
            self.extent = self.extent + change
        yield InstallChange(change, self.applied, (update,))
        self._becomes(Happening.DONE)

    # -- VS ----------------------------------------------------------------------------------------

    def _synchronizing(self, update: SchemaChanged) -> Iterator[Action]:
        catalog = catalog_after(self.catalog, update.change)
        latest = self.versions.latest
        result = synchronized(latest.view, update.change, self.knowledge, catalog)
        self.catalog = catalog
        self.knowledge = self.knowledge.after(update.change)
        if isinstance(result, Retired):
            yield self._retired(update, result)
            return
        if isinstance(result, Renamed | Synchronized):
            self.versions.add(_version(latest, update, result))
        else:
            self.versions.refresh(result.definition)
        self.log.synchronized(update)
        self._becomes(Happening.DONE)
        if self._waits_for_another() and not isinstance(result, Synchronized):
            # Nothing to adapt for itself, and what was aborted would break again.
            self._postpone(update, self._cause_ahead())
            self._becomes(Happening.CONCURRENT_SC_DETECTED)
            return
        self.pending.append(update)
        yield from self._running(adapted(self.task()))

    def _retired(self, update: SchemaChanged, result: Retired) -> Action:
        self.is_retired = True
        unreflected = (*self.pending, update, *self.queue)
        self.pending.clear()
        self.queue.clear()
        return RetireView(result.reason, self.applied, unreflected)

    # -- VA and Reset-VM ---------------------------------------------------------------------------

    def task(self) -> Task:
        """What is to be adapted now: to the latest version, with everything that is pending."""
        after = self.applied
        for update in self.pending:
            after = after.advanced(update.source, update.number)
        return Task(
            pruned(self.versions.of_extent.definition),
            self.definition,
            self.versions.mapping,
            self.extent,
            self.applied,
            after,
            self._changes(self.applied, after),
        )

    def _adapted(self, result: Adapted) -> Iterator[Action]:
        included = tuple(self.pending)
        self.applied = self.task().after
        self.pending.clear()
        self.relationships.forget(included)
        self.extent = result.extent
        self.versions.adapted()
        latest = self.versions.latest
        yield InstallVersion(
            latest, result.extent, self.applied, included, result.method, result.reason
        )
        self._becomes(Happening.DONE)
        # Reset-VM: maintenance keeps nothing between two updates, so there is nothing to reset.
        self._becomes(Happening.DONE)

    # -- processes ---------------------------------------------------------------------------------

    def _running(self, process: Process[Any]) -> Iterator[Action]:
        self._process = process
        yield from self._driven(None)

    def _driven(self, rows: Any) -> Iterator[Action]:
        """The process with its last read answered, up to its next read or its end."""
        process = cast(Process[Any], self._process)
        try:
            read = process.send(rows)
        except StopIteration as end:
            self._process = None
            result = end.value
            yield from (
                self._adapted(result) if isinstance(result, Adapted) else self._maintained(result)
            )
            return
        yield from self._continued(self.engine.ask(read))

    def _continued(self, outcome: Outcome | None) -> Iterator[Action]:
        match outcome:
            case None:
                return
            case ReadRelation():
                yield outcome
            case Answered(rows):
                yield from self._driven(rows)
            case Interrupted(cause):
                self._aborted(cause)

    def _aborted(self, cause: SchemaChanged) -> None:
        """Give up what is being done; the cause, which is in the queue, will see to it."""
        update = cast(Update, self._handling)
        self._process = None
        self.relationships.aborted(update, cause)
        if update not in self.pending:
            self.pending.append(update)
        self._becomes(Happening.CONCURRENT_SC_DETECTED)

    def _becomes(self, happening: Happening) -> None:
        self.state = TRANSITIONS[self.state, happening]


def _version(
    latest: ViewVersion, change: SchemaChanged, result: Renamed | Synchronized
) -> ViewVersion:
    number = latest.number + 1
    preferences = preferences_after(latest.preferences, result.mapping)
    if isinstance(result, Renamed):
        reason = f"{change.change}: other names underneath"
        return ViewVersion(number, result.definition, preferences, change, result.mapping, reason)
    return ViewVersion(
        number,
        result.definition,
        preferences,
        change,
        result.mapping,
        result.reason,
        result.quality,
        result.others,
    )
