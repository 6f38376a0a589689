"""The integrator: numbers a group's transactions in the order of their arrival, and forms batches.

Pure. Sources are independent of each other, so any order that keeps each source's own is right; the
order of arrival is the natural one.

A batch is a prefix of that order in which every transaction is visible in its source's cut. So nothing
is ever applied that a later query might not see, and after a restart no change from before it is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import Position, RelationChange, SourceTransaction
from viewkeeper.sources.transaction_block import ChangedRows, Numbers, TransactionBlock
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.places import PlacesMaker, SourcePlaces, place_of

Weights = Mapping[RelationName, float]


class Arrival(NamedTuple):
    """A transaction of a source, as far as it concerns the group, with its place in the order.

    Or a stretch of them, with numbers from ``number`` on.
    """

    number: int
    origin: SourceTransaction | TransactionBlock
    transaction: Transaction
    rows: int
    # Arrivals of one unit come one after the other and must show in one state.
    unit: object = None

    @property
    def size(self) -> int:
        """How many transactions it stands for."""
        return self.transaction.size

    @property
    def last_number(self) -> int:
        return self.number + self.transaction.size - 1

    def divided(self, size: int) -> tuple[Arrival, Arrival]:
        """Of a stretch: its first ``size`` transactions, and the others."""
        return self._between(0, size), self._between(size, self.size)

    def _between(self, start: int, end: int) -> Arrival:
        stretch = stretch_of(self).between(start, end)
        changes = _changes(stretch, {name.relation: name for name, _ in self.transaction.changes})
        transaction = self.transaction.between(start, end)._replace(changes=changes)
        return Arrival(self.number + start, stretch, transaction, _rows_of(changes))


def _changes(
    stretch: TransactionBlock, names: Mapping[str, RelationName]
) -> tuple[tuple[RelationName, ChangedRows], ...]:
    """What a stretch changes in some relations."""
    return tuple((names[n], rows) for n, rows in stretch.changes.items() if n in names)


def _rows_of(changes: Iterable[tuple[RelationName, ChangedRows]]) -> int:
    return sum(len(rows) for _, rows in changes)


def stretch_of(arrival: Arrival) -> TransactionBlock:
    invariant(isinstance(arrival.origin, TransactionBlock), "a single transaction can't be divided")
    return cast(TransactionBlock, arrival.origin)


def transactions_in(arrivals: Iterable[Arrival]) -> int:
    return sum(arrival.transaction.size for arrival in arrivals)


def numbers_of(arrivals: Iterable[Arrival]) -> Numbers:
    """The numbers of all their transactions."""
    numbers: list[int] = []
    for number, _, transaction, _, _ in arrivals:
        numbers += range(number, number + transaction.size)
    return np.asarray(numbers, np.int64)


@dataclass(frozen=True, eq=False)
class _Block:
    """The unit of transactions that only a view's header has put together; each one's own unit, by its number."""

    units: dict[int, object] = field(default_factory=dict)


def own_unit(arrival: Arrival) -> object:
    """What a transaction must show with, wherever blocks end."""
    unit = arrival.unit
    return unit.units[arrival.number] if isinstance(unit, _Block) else unit


class Integrator:
    """Transactions that have arrived and are in no batch yet."""

    def __init__(self, relations: Iterable[RelationName], block: int = 1) -> None:
        """``relations``: what the group's views read; other changes are left out.

        ``block``: this many transactions are a unit, and show in one state (MVC, section 6.3: complete-N). A unit that
        crosses a block's end makes it longer.
        """
        self._names: dict[tuple[str, str], RelationName] = {
            (name.source, name.relation): name for name in relations
        }
        self._next_number = 1
        self._next_of_source = {name.source: 1 for name in self._names.values()}
        self.pending: deque[Arrival] = deque()
        # How many transactions that is.
        self.waiting = 0
        self._block = block
        # The unit of the block that is not full yet, how many transactions it has, and the last one's own unit.
        self.open_block: _Block | None = None
        self._in_block = 0
        self._last_unit: object = None

    def arrived(self, origin: SourceTransaction, unit: object = None) -> Arrival | None:
        """Take a transaction in and number it; None when it concerns nobody here."""
        source = origin.source
        rows = 0
        changes = []
        for change in origin.changes:
            relation, deleted, inserted = change
            name = self._names.get((source, relation))
            size = len(deleted) + len(inserted)
            if name is not None and size:
                changes.append((name, change))
                rows += size
        if not changes:
            return None
        number = self._next_of_source[source]
        transaction = Transaction(source, number, tuple(changes))
        if self._block > 1:
            unit = self._blocked(unit)
        arrival = Arrival(self._next_number, origin, transaction, rows, unit)
        self._next_of_source[source] = number + 1
        self._next_number += 1
        self.waiting += 1
        self.pending.append(arrival)
        return arrival

    def _blocked(self, unit: object) -> object:
        """The block that the next transaction is in."""
        is_within_unit = unit is not None and unit is self._last_unit
        if self.is_full and not is_within_unit:
            self.end_block()
        if self.open_block is None:
            self.open_block = _Block()
        self.open_block.units[self._next_number] = unit
        self._last_unit = unit
        self._in_block += 1
        return self.open_block

    def end_block(self) -> None:
        """The block is over, though it may have fewer transactions than others."""
        self.open_block, self._in_block, self._last_unit = None, 0, None

    def stretch_arrived(self, stretch: TransactionBlock) -> Arrival | None:
        """Take a stretch in and number its transactions; None when it concerns nobody here."""
        source = stretch.source
        names = {name: known for (of, name), known in self._names.items() if of == source}
        origin = stretch.touching(names)
        if origin is None:
            return None
        changes = _changes(origin, names)
        transaction = Transaction(source, self._next_of_source[source], changes, len(origin))
        arrival = Arrival(self._next_number, origin, transaction, _rows_of(changes))
        self._next_of_source[source] += len(origin)
        self._next_number += len(origin)
        self.waiting += len(origin)
        self.pending.append(arrival)
        return arrival

    @property
    def is_full(self) -> bool:
        """Whether the open block has all its transactions; a global one that is on its way may be longer."""
        return self._in_block >= self._block

    @property
    def waits_for_block(self) -> bool:
        """Whether nothing is here but the beginning of a block."""
        first = self.pending[0].unit if self.pending else None
        return first is not None and first is self.open_block and not self.is_full

    def newest(self, source: str) -> int:
        """The number of the source's last transaction that has arrived; 0 before the first."""
        return self._next_of_source[source] - 1

    def close_batch(
        self,
        reflects: Mapping[str, Reflected | None],
        transactions_max: int,
        rows_max: float,
        is_wanted: Callable[[Arrival], bool] | None = None,
        weights: Weights = MappingProxyType({}),
    ) -> tuple[Arrival, ...]:
        """Take out the longest prefix that all cuts reflect, within limits; at least one if one is
        visible and wanted. No unit is divided, whatever the limits are; a stretch is, where it must be.

        ``reflects`` says of each source what its cut shows, None: all that waits. ``weights``: how many
        rows a changed row of a relation counts for, one where nothing is said.
        """
        batch, rest = self.first_batch(reflects, transactions_max, rows_max, is_wanted, weights)
        for _ in batch:
            self.pending.popleft()
        self.waiting -= transactions_in(batch)
        if rest is not None:
            self.pending.appendleft(rest)
        return batch

    def first_batch(
        self,
        reflects: Mapping[str, Reflected | None],
        transactions_max: int,
        rows_max: float,
        is_wanted: Callable[[Arrival], bool] | None = None,
        weights: Weights = MappingProxyType({}),
    ) -> tuple[tuple[Arrival, ...], Arrival | None]:
        """What `close_batch` would take out, and what it would leave of a stretch that it divides."""
        batch: list[Arrival] = []
        rest: Arrival | None = None
        size, rows = 0, 0.0
        for arrival in self.pending:
            if is_wanted is not None and not is_wanted(arrival):
                break
            if arrival.unit is not None and arrival.unit is self.open_block and not self.is_full:
                break
            shown = reflects[arrival.origin.source]
            weight = _weighed(arrival, weights) if weights else arrival.rows
            if arrival.size > 1:
                light = np.searchsorted(_weights_upto(arrival, weights), rows_max - rows, "right")
                fits = min(
                    _visible(arrival, shown),
                    transactions_max - size,
                    int(light) if batch else max(int(light), 1),
                )
                if fits < arrival.size:
                    if fits > 0:
                        first, rest = arrival.divided(fits)
                        batch.append(first)
                    break
            else:
                is_full = size >= transactions_max or (batch and rows + weight > rows_max)
                if is_full and not _are_one(batch[-1], arrival):
                    break
                if shown is not None and not shown.includes(arrival.transaction.number):
                    while batch and _are_one(batch[-1], arrival):
                        batch.pop()
                    break
            batch.append(arrival)
            size += arrival.size
            rows += weight
        return tuple(batch), rest


def _visible(stretch: Arrival, shown: Reflected | None) -> int:
    """How many of its transactions, from the first on, a cut shows."""
    if shown is None:
        return stretch.size
    first, last = stretch.transaction.number, stretch.transaction.last_number
    _, end, is_shown = next(shown.divided(first, last))
    return end - first + 1 if is_shown else 0


def _weights_upto(stretch: Arrival, weights: Weights) -> npt.NDArray[np.float64]:
    """How much its transactions weigh together, from the first to each of them."""
    found = np.zeros(stretch.size)
    for name, rows in stretch.transaction.changes:
        found += np.bincount(rows.places, minlength=stretch.size) * weights.get(name, 1.0)
    return np.cumsum(found)


def _weighed(arrival: Arrival, weights: Weights) -> float:
    changes = arrival.transaction.changes
    if len(changes) == 1:
        return arrival.rows * weights.get(changes[0][0], 1.0)
    return sum(rows_in(change) * weights.get(name, 1.0) for name, change in changes)


def rows_in(change: RelationChange | ChangedRows) -> int:
    """How many rows were taken out and put in."""
    if isinstance(change, ChangedRows):
        return len(change)
    return len(change.deleted) + len(change.inserted)


def _are_one(earlier: Arrival, later: Arrival) -> bool:
    return later.unit is not None and earlier.unit is later.unit


def states_of(batch: Sequence[Arrival]) -> list[int]:
    """For each transaction, how many states the batch has before the one that it shows in."""
    if all(arrival.unit is None for arrival in batch):
        return list(range(transactions_in(batch)))
    states: list[int] = []
    for place, arrival in enumerate(batch):
        first = states[-1] + (not _are_one(batch[place - 1], arrival)) if place else 0
        states += range(first, first + arrival.size)
    return states


def reflected_numbers(
    arrivals: Iterable[Arrival], name: RelationName, reflected: Reflected
) -> Numbers:
    """The numbers of those that may have changed a relation, and that an answer of its source reflects."""
    found = [np.empty(0, np.int64)]
    for number, _, transaction, _, _ in arrivals:
        if transaction.source == name.source and name in transaction.relations:
            to_number = number - transaction.number
            for first, last, is_reflected in reflected.divided(
                transaction.number, transaction.last_number
            ):
                if is_reflected:
                    found.append(np.arange(first + to_number, last + to_number + 1))
    return np.concatenate(found)


def singly(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """The same, with the transactions of every stretch one by one."""
    for arrival in arrivals:
        if not isinstance(arrival.origin, TransactionBlock):
            yield arrival
            continue
        names = {name.relation: name for name, _ in arrival.transaction.changes}
        for place, origin in enumerate(arrival.origin.transactions()):
            changes = tuple((names[c.relation], c) for c in origin.changes if c.relation in names)
            number = arrival.transaction.number + place
            transaction = Transaction(origin.source, number, changes)
            rows = sum(rows_in(change) for _, change in changes)
            yield Arrival(arrival.number + place, origin, transaction, rows)


def last_positions(batch: Iterable[Arrival]) -> dict[str, Position]:
    """How far each source has been read when the batch is applied."""
    origins = [arrival.origin for arrival in batch]
    return {origin.source: origin.position for origin in origins}


def places_of(batch: Sequence[Arrival], states: Sequence[int]) -> dict[str, SourcePlaces] | None:
    """By source, where the batch's transactions stand in its log, each with the state it shows in.

    None where they have no common order: a source's log began anew in between.
    """
    by_source: dict[str, PlacesMaker] = {}
    first = 0
    for arrival in batch:
        maker = by_source.setdefault(arrival.origin.source, PlacesMaker())
        shown = states[first : first + arrival.size]
        _add_places(maker, shown, arrival.origin)
        first += arrival.size
    found = {source: maker.made() for source, maker in by_source.items()}
    known = {source: each for source, each in found.items() if each is not None}
    return known if len(known) == len(found) else None


def _add_places(
    maker: PlacesMaker, shown: Sequence[int], origin: SourceTransaction | TransactionBlock
) -> None:
    if not isinstance(origin, TransactionBlock):
        maker.add(shown, [place_of(origin.position)])
        return
    marks = origin.marks.tolist()
    ends = [place_of(origin.position_of(mark)) for mark in (marks[0], marks[-1])]
    if [place.order for place in ends] == [(marks[0], 0), (marks[-1], 0)]:
        # A mark is the place itself: no object for each of a hundred thousand.
        maker.add_marks(shown, ends[0].history, marks)
    else:
        maker.add(shown, [place_of(origin.position_of(mark)) for mark in marks])
