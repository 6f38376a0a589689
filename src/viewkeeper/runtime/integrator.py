"""The integrator: numbers a group's transactions in the order of their arrival, and forms batches.

Pure. Sources are independent of each other, so any order that keeps each source's own is right; the
order of arrival is the natural one.

A batch is a prefix of that order in which every transaction is visible in its source's cut. So nothing
is ever applied that a later query might not see, and after a restart no change from before it is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from viewkeeper.sources.interface import Position, SourceTransaction
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName


class Arrival(NamedTuple):
    """A transaction of a source, as far as it concerns the group, with its place in the order."""

    number: int
    origin: SourceTransaction
    transaction: Transaction
    rows: int
    # Arrivals of one unit come one after the other and must show in one state.
    unit: object = None


class Integrator:
    """Transactions that have arrived and are in no batch yet."""

    def __init__(self, relations: Iterable[RelationName]) -> None:
        """``relations``: what the group's views read; other changes are left out."""
        self._names: dict[tuple[str, str], RelationName] = {
            (name.source, name.relation): name for name in relations
        }
        self._next_number = 1
        self._next_of_source = {name.source: 1 for name in self._names.values()}
        self.pending: deque[Arrival] = deque()

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
        arrival = Arrival(self._next_number, origin, transaction, rows, unit)
        self._next_of_source[source] = number + 1
        self._next_number += 1
        self.pending.append(arrival)
        return arrival

    def newest(self, source: str) -> int:
        """The number of the source's last transaction that has arrived; 0 before the first."""
        return self._next_of_source[source] - 1

    def close_batch(
        self,
        reflects: Mapping[str, Callable[[SourceTransaction], bool] | None],
        transactions_max: int,
        rows_max: float,
        is_wanted: Callable[[Arrival], bool] | None = None,
        weights: Mapping[RelationName, float] | None = None,
    ) -> tuple[Arrival, ...]:
        """Take out the longest prefix that all cuts reflect, within limits; at least one if one is
        visible and wanted. No unit is divided, whatever the limits are.

        ``reflects`` says of each source what its cut shows, None: all that waits. ``weights``: how many rows a changed row of a relation counts for, one where nothing is said.
        """
        batch: list[Arrival] = []
        rows = 0.0
        for arrival in self.pending:
            if is_wanted is not None and not is_wanted(arrival):
                break
            rows += arrival.rows if not weights else _weighed(arrival, weights)
            is_full = len(batch) >= transactions_max or (batch and rows > rows_max)
            if is_full and not _are_one(batch[-1], arrival):
                break
            shows = reflects[arrival.origin.source]
            if shows is not None and not shows(arrival.origin):
                while batch and _are_one(batch[-1], arrival):
                    batch.pop()
                break
            batch.append(arrival)
        for _ in batch:
            self.pending.popleft()
        return tuple(batch)


def _weighed(arrival: Arrival, weights: Mapping[RelationName, float]) -> float:
    changes = arrival.transaction.changes
    if len(changes) == 1:
        return arrival.rows * weights.get(changes[0][0], 1.0)
    return sum(
        (len(deleted) + len(inserted)) * weights.get(name, 1.0)
        for name, (_, deleted, inserted) in changes
    )


def _are_one(earlier: Arrival, later: Arrival) -> bool:
    return later.unit is not None and earlier.unit is later.unit


def states_of(batch: Sequence[Arrival]) -> list[int]:
    """For each arrival, how many states the batch has before the one that it shows in."""
    if all(arrival.unit is None for arrival in batch):
        return list(range(len(batch)))
    states: list[int] = []
    for place, arrival in enumerate(batch):
        if not place:
            states.append(0)
        else:
            states.append(states[-1] + (not _are_one(batch[place - 1], arrival)))
    return states


def last_positions(batch: Iterable[Arrival]) -> dict[str, Position]:
    """How far each source has been read when the batch is applied."""
    origins = [arrival.origin for arrival in batch]
    return {origin.source: origin.position for origin in origins}
