"""A group's way in: what the feeds deliver, in order, up to the next schema change.

Feeds are shared, so a delivery may repeat what the group has; a feed that was opened again for other relations
goes back a little. What comes behind a schema change is held until the views have taken it.

A group that another is to succeed has an end (`unions`). It takes in all that lies before it, then what lies
beyond: only so that cuts can be corrected by it, for its successor applies that. A schema change beyond the end
is taken if one of the groups that end together has still something to apply before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.integrator import Arrival, Integrator, own_unit
from viewkeeper.engine.schema_changes import as_after
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.engine.unions import Compare, Union, divided, is_same
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import Position, SchemaChange, SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock, transactions_of
from viewkeeper.views.definition import RelationName

Message = Delivery | Unit
# Has a feed read again from a position on; the generation of what comes then.
Follow = Callable[[str, Position], int]


class Intake:
    """Takes deliveries in and numbers their transactions.

    What has arrived is in ``arrived`` until somebody takes it from there.
    """

    def __init__(
        self,
        scope: Scope,
        starts: Mapping[str, Position],
        compare: Compare,
        follow: Follow,
        taken: Iterable[SchemaChange] = (),
    ) -> None:
        """``taken``: changes that the views are behind though the feeds begin before them."""
        self.scope = scope
        self.compare = compare
        self._follow = follow
        # How far each source has been taken in, and in which life of its server.
        self.fed: dict[str, Position] = {name: starts[name] for name in scope.sources}
        self.life: dict[str, str | None] = dict.fromkeys(scope.sources)
        # Schema changes that are next, and what their sources delivered after them.
        self.due: deque[SchemaChange] = deque()
        self.held: dict[str, deque[Message]] = {}
        # Since when the changes that are due are known; they may wait for an approval.
        self.due_since: dict[str, float] = {}
        self.generation: dict[str, int] = {}
        # Changes that the views have taken, of which the feed may repeat what was before.
        self.taken = [
            c
            for c in taken
            if c.source in starts and compare(c.source, c.position, starts[c.source]) > 0
        ]
        # The changes that were met where each source stands: one statement may be several at one position.
        self._met: dict[str, list[SchemaChange]] = {}
        # Sources whose feed still delivers what the views have already.
        self.repeating = set(scope.sources)
        # Whether all managers can be told of a stretch of transactions at once.
        self.takes_stretches = False
        self.integrator = Integrator((*scope.relations, *scope.watched), scope.block)
        self.arrived: list[Arrival] = []
        # Where its successor takes over, with whom it ends there, whether all up to there is here;
        # until then, what was delivered from beyond.
        self.end: dict[str, Position] | None = None
        self.union: Union | None = None
        self.is_parting = False
        self._aside: deque[Message] = deque()

    def take(self, message: Message, now: float) -> None:
        """Something from the feeds."""
        own: Message | None = message
        if self.end is not None and not self.is_parting:
            # All that is its own gets lower numbers than what is not: batches are beginnings of the
            # order of arrival, and another source's feed may be slower.
            own, rest = divided(message, self.end, self.compare)
            if rest is not None:
                self._aside.append(rest)
            if isinstance(rest, Delivery) and self._has_all_before(rest.source):
                own = (
                    None  # what it knows of that position is not to be replaced by what others know
                )
        if isinstance(own, Unit):
            self._take_unit(own, now)
        elif own is not None:
            self._deliver(own, now)

    # -- its end -----------------------------------------------------------------------------------

    def end_at(self, end: Mapping[str, Position], union: Union) -> None:
        """What lies beyond these positions is another group's to apply."""
        self.end = {name: end[name] for name in self.scope.sources}
        self.union = union

    @property
    def comes_to_its_end(self) -> bool:
        """Whether some of what lies before its end has not been taken in."""
        return self.end is not None and not self.is_parting

    def look_at_end(self, now: float) -> bool:
        """Whether all that is its own has arrived just now; then it takes the other in as well."""
        if self.end is None or self.is_parting or self.held or self.due:
            return False
        if not all(map(self._has_all_before, self.end)):
            return False
        self.is_parting = True
        aside, self._aside = self._aside, deque()
        for message in aside:
            self.take(message, now)
        return True

    def _has_all_before(self, source: str) -> bool:
        return self.end is None or self.compare(source, self.fed[source], self.end[source]) >= 0

    def has_passed_change(self, change: SchemaChange) -> bool:
        source = change.source
        if source not in self.scope.sources:
            return True
        return not self.waits(source) and (
            self.compare(source, self.fed[source], change.position) >= 0
        )

    @property
    def passed(self) -> dict[str, Position]:
        """How far each source has been taken in, as far as it is the group's own."""
        if self.end is None:
            return dict(self.fed)
        end = self.end
        return {
            name: at if name not in end or self.compare(name, at, end[name]) <= 0 else end[name]
            for name, at in self.fed.items()
        }

    def is_own(self, arrival: Arrival) -> bool:
        """Whether it arrived before the group's end, and so is its own to apply."""
        source, position = arrival.origin.source, arrival.origin.position
        return self.end is None or self.compare(source, position, self.end[source]) <= 0

    @property
    def has_work(self) -> bool:
        if self.comes_to_its_end or not self.integrator.pending:
            return False
        # Where the group ends, a block does, too: until it is shown, there is work.
        is_begun = self.integrator.waits_for_block and self.end is None
        return self.is_own(self.integrator.pending[0]) and not is_begun

    # -- deliveries --------------------------------------------------------------------------------

    def _deliver(self, delivery: Delivery, now: float) -> None:
        source, known = delivery.source, self.generation.get(delivery.source, 0)
        if delivery.generation < known:
            return  # it lacks a relation that is needed by now, and is read again
        if source in self.held:
            self._hold(delivery)
            return
        self._note_generation(source, delivery.generation)
        items, position = delivery.items, delivery.position
        for place, item in enumerate(items):
            if not isinstance(item, SchemaChange) or self._is_repeated(item):
                continue
            concerns = self._concerns(item)
            met = self._met.get(source, [])
            self._met[source] = [c for c in met if c.position == item.position] + [item]
            if concerns:
                # What follows has another shape: first the views must take it, or their successor.
                self.held[source] = deque([replace(delivery, items=items[place + 1 :])])
                if not self.is_parting or (self.union is not None and self.union.takes(item)):
                    self.due.append(item)
                    self.due_since.setdefault(source, now)
                items, position = items[:place], item.position
                break
        self.arrived += self._arrivals(items)
        self.life[source] = delivery.life
        if self.compare(source, position, self.fed[source]) >= 0:
            self.fed[source] = position

    def _hold(self, delivery: Delivery) -> None:
        held = self.held[delivery.source]
        last = held[-1] if held else None
        if isinstance(last, Delivery) and not last.items and last.generation == delivery.generation:
            held.pop()  # it said where the feed stood, and this one says it, too
        held.append(delivery)

    def _note_generation(self, source: str, generation: int) -> None:
        if generation > self.generation.get(source, 0):
            # Another group had the feed go back.
            self.generation[source] = generation
            self.repeating.add(source)

    # -- what is held ------------------------------------------------------------------------------

    def _take_unit(self, unit: Unit, now: float) -> None:
        mine = {s: of for s, of in unit.generations.items() if s in self.scope.sources}
        stale = [s for s, of in mine.items() if of < self.generation.get(s, 0)]
        if stale:
            # Some of its parts are read again, so that the others must be: they are one.
            self.go_back(*(s for s in unit.generations if s not in stale), since=unit.since)
        elif any(source in self.held for source in mine):
            # Behind a schema change of one of its sources: what follows the other parts waits, too.
            for source in mine:
                self.held.setdefault(source, deque()).append(unit)
        elif any(isinstance(i, SchemaChange) and self._concerns(i) for i in unit.items):
            # A schema change lies between its parts: rows before and after it can't be in one state. They
            # are shown one by one, as those of a global transaction that is not complete in time.
            for part in unit.parts:
                if part.source in self.scope.sources:
                    self._deliver(part, now)
        else:
            self._arrive_as_one(unit)

    def _arrive_as_one(self, unit: Unit) -> None:
        for source, generation in unit.generations.items():
            if source in self.scope.sources:
                self._note_generation(source, generation)
        self.arrived += self._arrivals(unit.items, unit=unit)

    def let_go(self, source: str, now: float) -> None:
        """Take in what was held of a source, up to its next schema change, or to a unit of which
        another part is behind one."""
        waiting = self.held.pop(source)
        freed: list[str] = []
        while waiting and source not in self.held:
            message = waiting[0]
            if isinstance(message, Delivery):
                waiting.popleft()
                self._deliver(message, now)
                continue
            others = [name for name in message.generations if name in self.held]
            if any(self.waits(name) or self.held[name][0] is not message for name in others):
                break
            waiting.popleft()
            for name in others:
                self.held[name].popleft()
            freed += others
            self._arrive_as_one(message)
        if waiting:
            self.held.setdefault(source, deque()).extend(waiting)
        for name in dict.fromkeys(freed):
            if name in self.held and not self.waits(name):
                self.let_go(name, now)

    def waits(self, source: str) -> bool:
        """Whether a schema change of the source is next."""
        return any(change.source == source for change in self.due)

    def go_back(self, *sources: str, since: Mapping[str, Position] = MappingProxyType({})) -> None:
        """Have sources read again from where the group stands, and what is held of them forgotten.

        A unit that is held is read again as a whole or not at all, so all of its sources go back. Those
        that the group does not read go to where they stood before it (``since``).
        """
        again = list(sources)
        places = dict(since)
        behind = {s: self._behind_same_place(s) for s in sources if s in self.fed}
        for source in again:
            for message in self.held.pop(source, ()):
                if isinstance(message, Unit):
                    again += [name for name in message.generations if name not in again]
                    places = dict(message.since) | places
        for source in again:
            mine = source in self.scope.sources
            generation = self._follow(source, self.fed[source] if mine else places[source])
            if mine:
                self.generation[source] = generation
                self.repeating.add(source)
            if self.waits(source):
                self.held[source] = deque()
            rest = behind.get(source)
            if rest is not None:
                self.held.setdefault(source, deque()).append(replace(rest, generation=generation))

    def _behind_same_place(self, source: str) -> Delivery | None:
        """What is held of the statement whose first change was just taken: no feed tells of it again that
        goes back to the place behind it."""
        at = self.fed[source]
        before = takewhile(lambda m: isinstance(m, Delivery), self.held.get(source, ()))
        deliveries = [message for message in before if isinstance(message, Delivery)]
        held = (item for each in deliveries for item in each.items)
        items = tuple(takewhile(lambda item: item.position == at, held))
        return replace(deliveries[0], items=items, position=at) if items else None

    # -- numbering ---------------------------------------------------------------------------------

    def begin_again(self, scope: Scope, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """Number transactions that have arrived once more, for views that may be others now."""
        self.scope = scope
        self.arrived = []
        self.integrator = Integrator((*scope.relations, *scope.watched), scope.block)
        found: list[Arrival | None] = []
        for arrival in arrivals:
            if isinstance(arrival.origin, TransactionBlock) and self.takes_stretches:
                found.append(self.integrator.stretch_arrived(arrival.origin))
            else:
                found += [
                    self.integrator.arrived(o, own_unit(arrival))
                    for o in transactions_of(arrival.origin)
                ]
        return [arrival for arrival in found if arrival is not None]

    def _concerns(self, change: SchemaChange) -> bool:
        name = RelationName(change.source, change.relation)
        followed = name in self.scope.relations or name in self.scope.watched
        return followed and not self._is_repeated(change) and not self._is_taken(change)

    def _is_taken(self, change: SchemaChange) -> bool:
        return any(is_same(known, change) for known in self.taken)

    def take_change(self, change: SchemaChange) -> None:
        """The views are behind the change from now on; groups that become one may both have taken it."""
        if not self._is_taken(change):
            self.taken.append(change)

    def not_passed(self, reached: Mapping[str, Position]) -> tuple[SchemaChange, ...]:
        """Of the changes that were taken, those that a run which begins at these positions meets again."""
        self.taken = [
            c
            for c in self.taken
            if c.source in reached and self.compare(c.source, c.position, reached[c.source]) > 0
        ]
        return tuple(self.taken)

    def names_of(self, source: str, begin: Position) -> tuple[str, ...]:
        """The relations that a feed which begins there must bring, also by the names that they had."""
        names = list(self.scope.names_of(source))
        for change in reversed([c for c in self.taken if c.source == source]):
            is_behind = self.compare(source, change.position, begin) > 0
            if is_behind and change.renamed_to in names and change.relation not in names:
                names.append(change.relation)
        return tuple(names)

    def _as_now(self, item: SourceTransaction) -> SourceTransaction:
        """A transaction from before changes that were taken, in the shape that its rows have after them."""
        for change in self.taken:
            if change.source == item.source and (
                self.compare(item.source, item.position, change.position) < 0
            ):
                item = as_after(item, change)
        return item

    def _arrivals(self, items: Iterable[Any], unit: object = None) -> Iterator[Arrival]:
        integrator, sources, repeating = self.integrator, self.scope.sources, self.repeating
        for item in items:
            source = item.source
            if source not in sources:
                continue
            if isinstance(item, TransactionBlock):
                yield from self._stretch_arrivals(item)
                continue
            if source in repeating and self._is_repeated(item):
                continue
            if isinstance(item, SourceTransaction):
                if self.taken:
                    item = self._as_now(item)
                arrival = integrator.arrived(item, unit)
                if arrival is not None:
                    yield arrival
            elif (
                isinstance(item, SchemaChange)
                and RelationName(source, item.relation) in self.scope.relations
                and not self._is_taken(item)
            ):
                raise changed_inside_a_unit(item)

    def _stretch_arrivals(self, stretch: TransactionBlock) -> Iterator[Arrival]:
        source = stretch.source
        first = stretch.position_of(int(stretch.marks[0]))
        if source in self.repeating and self.compare(source, first, self.fed[source]) > 0:
            self.repeating.discard(source)
        has_old_shape = any(
            change.source == source and self.compare(source, first, change.position) < 0
            for change in self.taken
        )
        is_plain = not (self.is_parting or source in self.repeating or has_old_shape)
        if not self.takes_stretches or not is_plain:
            yield from self._arrivals(stretch.transactions())
        elif (arrival := self.integrator.stretch_arrived(stretch)) is not None:
            yield arrival

    def _is_repeated(self, item: Any) -> bool:
        """Whether the views have it already: another group may be behind, and feeds are shared."""
        source = item.source
        if source in self.repeating:
            order = self.compare(source, item.position, self.fed[source])
            if order < 0 or (order == 0 and not self._is_news_here(item)):
                return True
            # SQLite tells a new schema with the position where it was noticed: what lies before may follow.
            if order > 0 and not isinstance(item, SchemaChange):
                self.repeating.discard(source)
        return False

    def _is_news_here(self, item: Any) -> bool:
        """Whether an item at the very position where its source stands is a schema change that was not met."""
        if not isinstance(item, SchemaChange):
            return False
        met = [c for c in self._met.get(item.source, ()) if c.position == self.fed[item.source]]
        # SQLite notices a new schema without a step in its log: the same position, told otherwise.
        is_told_again = item.position != self.fed[item.source]
        return is_told_again or (bool(met) and not any(is_same(item, known) for known in met))


def changed_while_uniting(change: SchemaChange) -> SourceError:
    return SourceError(
        "schema-changed-while-uniting",
        f"source {change.source} changed {change.relation} while views were brought to one cut",
        source=change.source,
        retryable=False,
        detail="all of them have taken the change, and stand at that cut",
        hint="start the run again: it goes on from there, and nothing is lost",
    )


def changed_inside_a_unit(change: SchemaChange) -> SourceError:
    return SourceError(
        "schema-changed-in-unit",
        f"{change.source}.{change.relation} was changed between the parts of a global transaction",
        source=change.source,
        retryable=False,
        detail=change.statement,
        hint="run again: the views take the change on their way",
    )
