"""The integrator: numbers transactions in the order of their arrival, and decides what forms a batch.

Pure. Sources are independent of each other, so any order that keeps each source's own is right; the
order of arrival is the natural one, and once given a number is never changed.

A batch is a prefix of that order in which every transaction is visible in its source's cut. So nothing
is ever applied that a later query might not see, and after a restart no change from before it is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.sources.interface import Position, SourceTransaction
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName


@dataclass(frozen=True)
class Arrival:
    """A transaction of a source, with its place in the order of arrival."""

    number: int
    origin: SourceTransaction
    transaction: Transaction
    rows: int


class Integrator:
    """Transactions that have arrived and are not yet applied."""

    def __init__(self, sources: Iterable[str], first_number: int) -> None:
        self._next_number = first_number
        self._next_of_source = dict.fromkeys(sources, 1)
        self.pending: deque[Arrival] = deque()

    def arrived(self, origin: SourceTransaction) -> Arrival:
        """Take a transaction in and number it."""
        source = origin.source
        changes = tuple(
            (RelationName(source, change.relation), change)
            for change in origin.changes
            if change.deleted or change.inserted
        )
        rows = sum(len(change.deleted) + len(change.inserted) for _, change in changes)
        transaction = Transaction(source, self._next_of_source[source], changes)
        arrival = Arrival(self._next_number, origin, transaction, rows)
        self._next_of_source[source] += 1
        self._next_number += 1
        self.pending.append(arrival)
        return arrival

    def visible_prefix(
        self,
        reflects: Mapping[str, Callable[[SourceTransaction], bool]],
        transactions_max: int,
        rows_max: int,
    ) -> list[Arrival]:
        """The longest prefix that all cuts reflect, within limits; at least one if one is visible."""
        batch: list[Arrival] = []
        rows = 0
        for arrival in self.pending:
            rows += arrival.rows
            if len(batch) >= transactions_max or (batch and rows > rows_max):
                break
            if not reflects[arrival.origin.source](arrival.origin):
                break
            batch.append(arrival)
        return batch

    def applied(self, number_of: int) -> None:
        """The first so many pending transactions are durable in the warehouse."""
        for _ in range(number_of):
            self.pending.popleft()


def last_positions(batch: Iterable[Arrival]) -> dict[str, Position]:
    """How far each source has been read when the batch is applied."""
    return {arrival.origin.source: arrival.origin.position for arrival in batch}
