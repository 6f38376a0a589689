"""In which order warehouse transactions are handed to the warehouse.

Paper: MVC (1997), section 4.3. A warehouse may commit what it was given in any order. Two transactions
depend on each other when they touch a common view, or when one holds an update that must not show before
one of the other; those must commit in the order in which they became ready.

| policy | what is with the warehouse at one time |
|---|---|
| `Sequential` | one transaction |
| `DependentOnly` | any number that do not depend on each other |
| `Batched` | one: all that was ready, in order |

In the paper a batch skips the states inside it. A commit of the engine has the state of every transaction (`engine.commits`),
so that a batch of commits is as complete as its parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.messages import CommitTransaction, WarehouseTransaction

BATCH_ROWS_MAX = 1000


class CommitOrder(ABC):
    """Transactions that are ready, and those the warehouse has not committed yet."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._last = 0
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
            self._last += 1
            self.in_flight[self._last] = transactions
            rows = tuple(sorted({row for t in transactions for row in t.rows}))
            lists = tuple(action_list for t in transactions for action_list in t.lists)
            commits.append(CommitTransaction(self._last, rows, lists))
        return tuple(commits)

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.in_flight


class Sequential(CommitOrder):
    """One after the other: right for small transactions that cost little."""

    name = "sequential"

    def _due(self) -> Iterator[tuple[WarehouseTransaction, ...]]:
        if self.waiting and not self.in_flight:
            yield (self.waiting.pop(0),)


class DependentOnly(CommitOrder):
    """Only what depends on something uncommitted waits."""

    name = "dependent-only"

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

    def __init__(self, batch_rows_max: int = BATCH_ROWS_MAX) -> None:
        super().__init__()
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
