"""A group's way in: what the feeds deliver, in order, up to the next schema change.

Feeds are shared, so a delivery may repeat what the group has; a feed that was opened anew for other
relations goes back a little. What comes behind a schema change is held until the views have taken it.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from viewkeeper.errors import SourceError
from viewkeeper.runtime.evolving import Evolution
from viewkeeper.runtime.feeds import Delivery
from viewkeeper.runtime.integrator import Arrival, Integrator
from viewkeeper.runtime.surroundings import Surroundings
from viewkeeper.runtime.units import Unit
from viewkeeper.runtime.view import View
from viewkeeper.sources.interface import Position, SchemaChange, SourceTransaction
from viewkeeper.sources.stretch import Stretch, transactions_of
from viewkeeper.views.definition import RelationName


class Intake(ABC):
    """Takes deliveries in and numbers their transactions. Messages reach it through its inbox."""

    # Whether all who are told of transactions can be told of a stretch of them at once.
    takes_stretches = False

    def __init__(
        self,
        views: Mapping[str, View],
        around: Surroundings,
        starts: Mapping[str, Position],
        evolution: Evolution,
    ) -> None:
        self.around = around
        self.evolution = evolution
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.take_on(views)
        self.starts = {name: starts[name] for name in self.sources}
        # How far each source has been applied to the views, and how far it has been taken in.
        self.reached: dict[str, Position] = dict(self.starts)
        self.fed = dict(self.reached)
        self.life: dict[str, str | None] = dict.fromkeys(self.sources)
        # Schema changes that are next, and what their sources delivered after them.
        self.due: deque[SchemaChange] = deque()
        self.held: dict[str, deque[Delivery]] = {}
        self.generation: dict[str, int] = {}
        # Sources whose feed still delivers what the views have already.
        self.repeating = set(self.sources)
        self.integrator = Integrator((*self.relations, *self.watched))
        self._room = threading.Condition()
        self._backlog = 0
        self.needs_all = False
        # Once its end is set, what comes is known only so that cuts can be corrected by it: whoever
        # takes the group's place applies it. By identity, for it is numbered anew after an error.
        self.end: dict[str, Position] | None = None
        self._beyond: set[int] = set()

    def take_on(self, views: Mapping[str, View]) -> None:
        """Keep these views from now on."""
        self.views = dict(views)
        self.relations = tuple(
            dict.fromkeys(name for v in views.values() for name in v.definition.relations)
        )
        self.watched = self.evolution.watched(self.views)
        self.read_sources = {name.source for name in self.relations}
        self.sources = tuple(sorted(self.read_sources | {name.source for name in self.watched}))

    @abstractmethod
    def handle(self, message: Any) -> None:
        """A message that is not from a feed."""

    @abstractmethod
    def tell(self, arrivals: list[Arrival]) -> None:
        """Transactions have arrived."""

    def has_room(self, stop: Callable[[], bool]) -> None:
        """Return when the group can take more in; called by the feeds' threads."""
        with self._room:
            while self.is_full and not stop():
                self._room.wait(0.2)

    @property
    def is_full(self) -> bool:
        return self._backlog > self.around.limits.backlog_rows_max and not self.needs_all

    @property
    def is_behind(self) -> bool:
        """Whether more waits, or is being computed, than what has just come."""
        return self._backlog > self.around.limits.tiny_rows_max

    def take_in(self, wait_seconds: float | None) -> None:
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
                self.deliver(message)
            case Unit(parts):
                self.tell(list(self._arrivals(parts, unit=message)))
            case _:
                self.handle(message)

    @property
    def is_parting(self) -> bool:
        return self.end is not None

    @property
    def passed(self) -> dict[str, Position]:
        """How far each source has been taken in, as far as it is the group's own."""
        return dict(self.fed if self.end is None else self.end)

    def is_own(self, arrival: Arrival) -> bool:
        """Whether it came before the group's end, and so is its own to apply."""
        return id(arrival.origin) not in self._beyond

    @property
    def has_work(self) -> bool:
        return bool(self.integrator.pending) and self.is_own(self.integrator.pending[0])

    def deliver(self, delivery: Delivery) -> None:
        source, known = delivery.source, self.generation.get(delivery.source, 0)
        if delivery.generation < known:
            return  # it lacks a relation that is needed by now, and comes again
        if source in self.held:
            self.held[source].append(delivery)
            return
        if delivery.generation > known:
            # Another group had the feed go back.
            self.generation[source] = delivery.generation
            self.repeating.add(source)
        items, position = delivery.items, delivery.position
        for place, item in enumerate(items):
            if isinstance(item, SchemaChange) and self._concerns(item):
                if self.is_parting:
                    raise _changed_while_uniting(item)
                # What comes after it has another shape: first the views must take it.
                self.due.append(item)
                self.held[source] = deque([replace(delivery, items=items[place + 1 :])])
                items, position = items[:place], item.position
                break
        arrivals = list(self._arrivals(items))
        self.life[source] = delivery.life
        if self.compared(source, position, self.fed[source]) >= 0:
            self.fed[source] = position
        self.tell(arrivals)

    def _concerns(self, change: SchemaChange) -> bool:
        name = RelationName(change.source, change.relation)
        return (name in self.relations or name in self.watched) and not self._is_repeated(change)

    def _arrivals(self, items: Iterable[Any], unit: object = None) -> Iterator[Arrival]:
        arrived, sources, repeating = self.integrator.arrived, self.sources, self.repeating
        is_parting = self.is_parting
        for item in items:
            source = item.source
            if source not in sources:
                continue
            if isinstance(item, Stretch):
                yield from self._stretch_arrivals(item)
                continue
            if source in repeating and self._is_repeated(item):
                continue
            if isinstance(item, SourceTransaction):
                arrival = arrived(item, unit)
                if arrival is not None:
                    if is_parting:
                        self._beyond.add(id(item))
                    yield arrival
            elif isinstance(item, SchemaChange) and (
                RelationName(source, item.relation) in self.relations
            ):
                raise _changed_inside_a_unit(item)

    def _stretch_arrivals(self, stretch: Stretch) -> Iterator[Arrival]:
        source = stretch.source
        if source in self.repeating:
            first = stretch.position_of(int(stretch.marks[0]))
            if self.compared(source, first, self.fed[source]) > 0:
                self.repeating.discard(source)
        if not self.takes_stretches or self.is_parting or source in self.repeating:
            yield from self._arrivals(stretch.transactions())
        elif (arrival := self.integrator.stretch_arrived(stretch)) is not None:
            yield arrival

    def numbered_anew(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """They have arrived, and arrive once more at another integrator."""
        found: list[Arrival | None] = []
        for arrival in arrivals:
            if isinstance(arrival.origin, Stretch) and self.takes_stretches:
                found.append(self.integrator.stretch_arrived(arrival.origin))
            else:
                found += [
                    self.integrator.arrived(o, arrival.unit)
                    for o in transactions_of(arrival.origin)
                ]
        return [arrival for arrival in found if arrival is not None]

    def _is_repeated(self, item: Any) -> bool:
        """Whether the views have it already: another group may be behind, and feeds are shared."""
        source = item.source
        if source in self.repeating:
            order = self.compared(source, item.position, self.fed[source])
            # SQLite notices a new schema without a step in its log: the same place, told otherwise.
            is_told_anew = isinstance(item, SchemaChange) and item.position != self.fed[source]
            if order < 0 or (order == 0 and not is_told_anew):
                return True
            # SQLite tells a new schema with the place where it was noticed: what lies before may follow.
            if order > 0 and not isinstance(item, SchemaChange):
                self.repeating.discard(source)
        return False

    def compared(self, source: str, left: Position, right: Position) -> int:
        return self.around.sources[source].compare_positions(left, right)

    def count_nothing(self) -> None:
        """All that waits is about to be counted again."""
        self.count(-self._backlog)

    def count(self, rows: int) -> None:
        with self._room:
            self._backlog += rows
            self._room.notify_all()


def _changed_while_uniting(change: SchemaChange) -> SourceError:
    return SourceError(
        "schema-changed-while-uniting",
        f"source {change.source} changed {change.relation} while views were brought to one cut",
        source=change.source,
        retryable=False,
        hint="start the run again: it begins before the change, and nothing is lost",
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
