"""A group's way in: what the feeds deliver, in order, up to the next schema change.

Feeds are shared, so a delivery may repeat what the group has; a feed that was opened anew for other
relations goes back a little. What comes behind a schema change is held until the views have taken it.

A group that another is to succeed has an end (`ends`). It takes in all that lies before it, then what
lies beyond: only so that cuts can be corrected by it, for its successor applies that. A schema change
beyond the end it takes if one of those that end with it has still something to apply before.
"""

from __future__ import annotations

import datetime as dt
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from viewkeeper.engine.intake import changed_inside_a_unit
from viewkeeper.engine.integrator import Arrival, Integrator
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.engine.unions import Union, divided
from viewkeeper.engine.view import View
from viewkeeper.runtime.feeds import Delivery
from viewkeeper.runtime.surroundings import Surroundings
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
        self.inbox: queue.Queue[Any] = queue.Queue()
        self.take_on(views)
        self.starts = {name: starts[name] for name in self.sources}
        # How far each source has been applied to the views, and how far it has been taken in.
        self.reached: dict[str, Position] = dict(self.starts)
        self.fed = dict(self.reached)
        self.life: dict[str, str | None] = dict.fromkeys(self.sources)
        # Schema changes that are next, and what their sources delivered after them.
        self.due: deque[SchemaChange] = deque()
        self.held: dict[str, deque[Delivery | Unit]] = {}
        # Since when the changes that are due are known; they may wait for somebody's word.
        self.due_since: dict[str, dt.datetime] = {}
        self.generation: dict[str, int] = {}
        # Sources whose feed still delivers what the views have already.
        self.repeating = set(self.sources)
        self.integrator = Integrator((*self.relations, *self.watched))
        self._room = threading.Condition()
        self._backlog = 0
        self.needs_all = False
        # Where its successor takes over, with whom it ends there, and whether all up to there is here;
        # until then, what has come from beyond.
        self.end: dict[str, Position] | None = None
        self.union = Union((self,))
        self.is_parting = False
        # Whether all up to there is applied, for those that end with it.
        self.is_done = False
        self._aside: deque[Delivery | Unit] = deque()

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
        if self.needs_all or self._comes_to_its_end:
            return False
        return self._backlog > self.around.limits.backlog_rows_max

    @property
    def is_behind(self) -> bool:
        """Whether more waits, or is being computed, than what has just come."""
        return self._backlog > self.around.limits.tiny_rows_max

    def take_in(self, wait_seconds: float | None) -> None:
        """All that has come, waiting so long for the first message; None: not at all."""
        if self._is_at_its_end():
            return
        try:
            if wait_seconds is None:
                message = self.inbox.get_nowait()
            else:
                message = self.inbox.get(timeout=wait_seconds)
            while True:
                self._handle(message)
                message = self.inbox.get_nowait()
        except queue.Empty:
            self._is_at_its_end()

    def _handle(self, message: Any) -> None:
        match message:
            case Delivery() | Unit():
                self._sort(message)
            case _:
                self.handle(message)

    # -- its end ----------------------------------------------------------------------------------

    def end_at(self, end: Mapping[str, Position], union: Union) -> None:
        """What lies beyond these positions is another group's to apply."""
        self.end = {name: end[name] for name in self.sources}
        self.union = union

    @property
    def _comes_to_its_end(self) -> bool:
        """Whether some of what lies before its end has not been taken in."""
        return self.end is not None and not self.is_parting

    def _sort(self, message: Delivery | Unit) -> None:
        own: Delivery | Unit | None = message
        if self.end is not None and not self.is_parting:
            # All that is its own gets lower numbers than what is not: batches are beginnings of the
            # order of arrival, and another source's feed may be slower.
            own, rest = divided(message, self.end, self.compared)
            if rest is not None:
                self._aside.append(rest)
            if isinstance(rest, Delivery) and self._has_all_before(rest.source):
                own = None  # what it knows of that place is not to be replaced by what others know
        if isinstance(own, Unit):
            self._take_unit(own)
        elif own is not None:
            self.deliver(own)

    def _is_at_its_end(self) -> bool:
        """Whether all that is its own has come just now; then it takes the other in as well."""
        if self.end is None or self.is_parting or self.held or self.due:
            return False
        if not all(map(self._has_all_before, self.end)):
            return False
        self.is_parting = True
        self.look_whether_done()
        aside, self._aside = self._aside, deque()
        for message in aside:
            self._sort(message)
        return True

    def _has_all_before(self, source: str) -> bool:
        return self.end is None or self.compared(source, self.fed[source], self.end[source]) >= 0

    @property
    def is_at_work(self) -> bool:
        """Whether it has something of its own to apply."""
        return self.has_work

    def look_whether_done(self) -> None:
        """Called by its own thread alone: between two steps others would see it wrongly."""
        self.is_done = self.is_parting and not self.is_at_work and not self.due

    def has_passed_change(self, change: SchemaChange) -> bool:
        source = change.source
        if source not in self.sources:
            return True
        return not self._waits(source) and (
            self.compared(source, self.fed[source], change.position) >= 0
        )

    @property
    def passed(self) -> dict[str, Position]:
        """How far each source has been taken in, as far as it is the group's own."""
        if self.end is None:
            return dict(self.fed)
        return {
            name: at if self.compared(name, at, self.end[name]) <= 0 else self.end[name]
            for name, at in self.fed.items()
        }

    def is_own(self, arrival: Arrival) -> bool:
        """Whether it came before the group's end, and so is its own to apply."""
        source, position = arrival.origin.source, arrival.origin.position
        return self.end is None or self.compared(source, position, self.end[source]) <= 0

    @property
    def has_work(self) -> bool:
        if self._comes_to_its_end or not self.integrator.pending:
            return False
        return self.is_own(self.integrator.pending[0])

    def deliver(self, delivery: Delivery) -> None:
        source, known = delivery.source, self.generation.get(delivery.source, 0)
        if delivery.generation < known:
            return  # it lacks a relation that is needed by now, and comes again
        if source in self.held:
            held = self.held[source]
            last = held[-1] if held else None
            if (
                isinstance(last, Delivery)
                and not last.items
                and last.generation == delivery.generation
            ):
                held.pop()  # it said where the feed stood, and this one says it, too
            held.append(delivery)
            return
        self._note_generation(source, delivery.generation)
        items, position = delivery.items, delivery.position
        for place, item in enumerate(items):
            if isinstance(item, SchemaChange) and self._concerns(item):
                # What comes after it has another shape: first the views must take it, or their
                # successor.
                self.held[source] = deque([replace(delivery, items=items[place + 1 :])])
                if not self.is_parting or self.union.takes(item):
                    self.due.append(item)
                    self.due_since.setdefault(source, dt.datetime.now(dt.UTC))
                    self.is_done = False
                items, position = items[:place], item.position
                break
        arrivals = list(self._arrivals(items))
        self.life[source] = delivery.life
        if self.compared(source, position, self.fed[source]) >= 0:
            self.fed[source] = position
        self.tell(arrivals)

    def _note_generation(self, source: str, generation: int) -> None:
        if generation > self.generation.get(source, 0):
            # Another group had the feed go back.
            self.generation[source] = generation
            self.repeating.add(source)

    # -- what is held -----------------------------------------------------------------------------

    def _take_unit(self, unit: Unit) -> None:
        mine = {s: of for s, of in unit.generations.items() if s in self.sources}
        stale = [s for s, of in mine.items() if of < self.generation.get(s, 0)]
        if stale:
            # Some of its parts come again, so that the others must: they are one.
            self.go_back(*(s for s in unit.generations if s not in stale), since=unit.since)
        elif any(source in self.held for source in mine):
            # Behind a schema change of one of its sources: what follows the other parts waits, too.
            for source in mine:
                self.held.setdefault(source, deque()).append(unit)
        elif any(isinstance(item, SchemaChange) and self._concerns(item) for item in unit.items):
            # A schema change lies between its parts: rows before and after it can't be in one state. They
            # are shown one by one, as those of a global transaction that is not complete in time.
            for part in unit.parts:
                if part.source in self.sources:
                    self.deliver(part)
        else:
            self._tell_unit(unit)

    def _tell_unit(self, unit: Unit) -> None:
        for source, generation in unit.generations.items():
            if source in self.sources:
                self._note_generation(source, generation)
        self.tell(list(self._arrivals(unit.items, unit=unit)))

    def let_go(self, source: str) -> None:
        """Take in what was held of a source, up to its next schema change, or to a unit of which
        another part is behind one."""
        waiting = self.held.pop(source)
        freed: list[str] = []
        while waiting and source not in self.held:
            message = waiting[0]
            if isinstance(message, Delivery):
                waiting.popleft()
                self.deliver(message)
                continue
            others = [name for name in message.generations if name in self.held]
            if any(self._waits(name) or self.held[name][0] is not message for name in others):
                break
            waiting.popleft()
            for name in others:
                self.held[name].popleft()
            freed += others
            self._tell_unit(message)
        if waiting:
            self.held.setdefault(source, deque()).extend(waiting)
        for name in dict.fromkeys(freed):
            if name in self.held and not self._waits(name):
                self.let_go(name)

    def _waits(self, source: str) -> bool:
        """Whether a schema change of the source is next."""
        return any(change.source == source for change in self.due)

    def go_back(self, *sources: str, since: Mapping[str, Position] = MappingProxyType({})) -> None:
        """Have sources read again from where the group stands, and what is held of them forgotten.

        A unit that is held comes again as a whole or not at all, so all of its sources go back. Those
        that the group does not read go to where they stood before it (``since``).
        """
        again = list(sources)
        places = dict(since)
        for source in again:
            for message in self.held.pop(source, ()):
                if isinstance(message, Unit):
                    again += [name for name in message.generations if name not in again]
                    places = dict(message.since) | places
        for source in again:
            mine = source in self.sources
            generation = self.around.follow(source, self.fed[source] if mine else places[source])
            if mine:
                self.generation[source] = generation
                self.repeating.add(source)
            if self._waits(source):
                self.held[source] = deque()

    # -- numbering --------------------------------------------------------------------------------

    def _concerns(self, change: SchemaChange) -> bool:
        name = RelationName(change.source, change.relation)
        return (name in self.relations or name in self.watched) and not self._is_repeated(change)

    def _arrivals(self, items: Iterable[Any], unit: object = None) -> Iterator[Arrival]:
        arrived, sources, repeating = self.integrator.arrived, self.sources, self.repeating
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
                    yield arrival
            elif isinstance(item, SchemaChange) and (
                RelationName(source, item.relation) in self.relations
            ):
                raise changed_inside_a_unit(item)

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
