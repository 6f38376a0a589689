"""In which order warehouse transactions are handed to the warehouse.

Paper: MVC (1997), section 4.3. A warehouse may commit what it was given in any order. Two transactions
depend on each other when they touch a common view, or when one holds an update that must not show before
one of the other; those must commit in the order in which they became ready.

| policy | what is with the warehouse at one time | keeps |
|---|---|---|
| `Sequential` | one transaction | complete |
| `DependentOnly` | any number that do not depend on each other | complete |
| `Batched` | one: all that was ready, in order | strong, for a batch skips the states inside it |
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.messages import CommitTransaction, WarehouseTransaction
from viewkeeper.views.level import Level

BATCH_ROWS_MAX = 1000


class Numbers:
    """Numbers for commits; groups that may be joined one day share it."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


class CommitOrder(ABC):
    """Transactions that are ready, and those the warehouse has not committed yet."""

    name: ClassVar[str]
    level: ClassVar[Level]

    def __init__(self, numbers: Numbers | None = None) -> None:
        self.numbers = numbers or Numbers()
        self.waiting: list[WarehouseTransaction] = []
        self.in_flight: dict[int, tuple[WarehouseTransaction, ...]] = {}

    @abstractmethod
    def _due(self) -> Iterator[tuple[WarehouseTransaction, ...]]:
        """Take from ``waiting`` what may go now; each tuple becomes one commit."""

    def ready(self, transactions: Iterable[WarehouseTransaction]) -> tuple[CommitTransaction, ...]:
        """Transactions in the order in which they became ready; what must be committed now."""
        self.waiting += transactions
        return self._submitted()

    def committed(self, number: int) -> tuple[CommitTransaction, ...]:
        """The warehouse committed one; what must be committed now."""
        if self.in_flight.pop(number, None) is None:
            raise InvariantViolated(f"the warehouse committed {number}, which it was not given")
        return self._submitted()

    def _submitted(self) -> tuple[CommitTransaction, ...]:
        commits = []
        for transactions in self._due():
            number = self.numbers.next()
            self.in_flight[number] = transactions
            rows = tuple(sorted({row for t in transactions for row in t.rows}))
            lists = tuple(action_list for t in transactions for action_list in t.lists)
            commits.append(CommitTransaction(number, rows, lists))
        return tuple(commits)

    # -- hand-over ---------------------------------------------------------------------------------

    def drop(self, view: str) -> None:
        """Leave out the lists of a view that is no more; the warehouse may still commit some."""
        kept = [_without(t, view) for t in self.waiting]
        self.waiting = [t for t in kept if t.lists]
        for number, transactions in self.in_flight.items():
            self.in_flight[number] = tuple(_without(t, view) for t in transactions)

    def absorb(self, other: CommitOrder) -> None:
        """Take in what another group has pending; the two had no view in common."""
        self.waiting += other.waiting
        self.in_flight |= other.in_flight

    def part(self, views: Iterable[str]) -> CommitOrder:
        """What concerns these views, which no uncommitted transaction concerns together with others.

        A commit of dropped views alone concerns nobody; see `MergeGroups`, which still hears of it.
        """
        kept = set(views)
        order = copy.copy(self)
        order.waiting = [t for t in self.waiting if t.views <= kept]
        order.in_flight = {
            number: transactions
            for number, transactions in self.in_flight.items()
            if any(t.views & kept for t in transactions)
        }
        return order

    def ties(self) -> Iterator[frozenset[str]]:
        """Sets of views that one uncommitted transaction concerns."""
        yield from (t.views for t in self.waiting)
        for transactions in self.in_flight.values():
            yield frozenset(view for t in transactions for view in t.views)

    @property
    def uncommitted(self) -> Iterator[int]:
        """The rows of everything that is ready or with the warehouse."""
        for transactions in (*self.in_flight.values(), tuple(self.waiting)):
            yield from (row for t in transactions for row in t.rows)

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.in_flight


def _without(transaction: WarehouseTransaction, view: str) -> WarehouseTransaction:
    return replace(transaction, lists=tuple(a for a in transaction.lists if a.view != view))


class Sequential(CommitOrder):
    """One after the other: right for small transactions that cost little."""

    name = "sequential"
    level = Level.COMPLETE

    def _due(self) -> Iterator[tuple[WarehouseTransaction, ...]]:
        if self.waiting and not self.in_flight:
            yield (self.waiting.pop(0),)


class DependentOnly(CommitOrder):
    """Only what depends on something uncommitted waits."""

    name = "dependent-only"
    level = Level.COMPLETE

    def _due(self) -> Iterator[tuple[WarehouseTransaction, ...]]:
        views: set[str] = set()
        rows: set[int] = set()
        for transactions in self.in_flight.values():
            for t in transactions:
                views |= t.views
                rows.update(t.rows)
        still_waiting = []
        for t in self.waiting:
            if views.isdisjoint(t.views) and rows.isdisjoint(t.after):
                yield (t,)
            else:
                still_waiting.append(t)
            # Later ones wait for it either way: it goes to the warehouse now, or stays before them.
            views |= t.views
            rows.update(t.rows)
        self.waiting = still_waiting


class Batched(CommitOrder):
    """BWT: while one batch is being committed the next gathers. For warehouses with dear commits."""

    name = "batched"
    level = Level.STRONG

    def __init__(
        self, numbers: Numbers | None = None, batch_rows_max: int = BATCH_ROWS_MAX
    ) -> None:
        super().__init__(numbers)
        self.batch_rows_max = batch_rows_max

    def _due(self) -> Iterator[tuple[WarehouseTransaction, ...]]:
        if self.in_flight or not self.waiting:
            return
        size, rows = 1, len(self.waiting[0].rows)
        for t in self.waiting[1:]:
            rows += len(t.rows)
            if rows > self.batch_rows_max:
                break
            size += 1
        batch, self.waiting = tuple(self.waiting[:size]), self.waiting[size:]
        yield batch


ORDERS: dict[str, type[CommitOrder]] = {
    order.name: order for order in (Sequential, DependentOnly, Batched)
}
