"""Many transactions of one source, one after the other, as columns.

That is what a backlog consists of, and a Python object for each of a hundred thousand transactions costs
more than all the joins with them. A feed that can tells them like this; who wants them one by one
asks for `TransactionBlock.transactions`, which says the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.algebra.types import Row, Schema
from viewkeeper.arrow import rows_of
from viewkeeper.sources.interface import FeedItem, Position, RelationChange, SourceTransaction

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """Rows of one relation that were taken out (count −1) or put in (count 1), transaction by transaction.

    ``places``: of the transaction that did it, counted from 0 in its stretch; ascending.
    """

    schema: Schema
    rows: pa.Table
    places: Numbers
    counts: Numbers

    def __len__(self) -> int:
        return len(self.places)

    def between(self, start: int, end: int) -> ChangedRows:
        """Those of the transactions from ``start`` to before ``end``, whose places begin at 0 then."""
        first, last = map(int, np.searchsorted(self.places, (start, end)))
        return ChangedRows(
            self.schema,
            self.rows.slice(first, last - first),
            self.places[first:last] - start,
            self.counts[first:last],
        )

    def of_transactions(self, wanted: npt.NDArray[np.bool_]) -> ChangedRows:
        """Those of some transactions; ``wanted`` says it of each place."""
        places = np.cumsum(wanted) - 1
        kept = wanted[self.places]
        return ChangedRows(
            self.schema,
            self.rows.filter(pa.array(kept)),
            places[self.places[kept]],
            self.counts[kept],
        )

    def first(self, most: int) -> list[Row]:
        """The first rows, whether taken out or put in; ``most`` of them, or fewer."""
        return rows_of(self.rows.slice(0, most), self.schema)

    def by_place(self) -> Iterator[tuple[int, list[Row], list[Row]]]:
        """For each transaction that is in it: the rows it took out and those it put in."""
        rows = rows_of(self.rows, self.schema)
        bounds = np.flatnonzero(np.diff(self.places, prepend=-1)).tolist()
        counts = self.counts.tolist()
        for start, end in pairwise([*bounds, len(rows)]):
            deleted = [rows[n] for n in range(start, end) if counts[n] < 0]
            inserted = [rows[n] for n in range(start, end) if counts[n] > 0]
            yield int(self.places[start]), deleted, inserted


@dataclass(frozen=True, eq=False)
class TransactionBlock:
    """Transactions in the feed's order, each of which changes something; none is tied to another."""

    source: str
    # Of each transaction: its identity, its commit in microseconds since 1970, its place in the log.
    identities: Numbers
    committed: Numbers
    marks: Numbers
    # A place in the log as a position.
    position_of: Callable[[int], Position]
    # By relation, for all that are changed.
    changes: Mapping[str, ChangedRows]

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def position(self) -> Position:
        """Behind its last transaction."""
        return self.position_of(int(self.marks[-1]))

    @property
    def committed_at(self) -> dt.datetime:
        """When the newest of its transactions was committed."""
        return _moment(int(self.committed.max()))

    @property
    def began_at(self) -> dt.datetime:
        """When the oldest of its transactions was committed."""
        return _moment(int(self.committed.min()))

    def between(self, start: int, end: int) -> TransactionBlock:
        """The transactions from ``start`` to before ``end``."""
        changes = {name: rows.between(start, end) for name, rows in self.changes.items()}
        return replace(
            self,
            identities=self.identities[start:end],
            committed=self.committed[start:end],
            marks=self.marks[start:end],
            changes={name: rows for name, rows in changes.items() if len(rows)},
        )

    def touching(self, relations: Collection[str]) -> TransactionBlock | None:
        """Those of its transactions that change one of these relations, with all that they change."""
        touches = np.zeros(len(self), bool)
        for name, rows in self.changes.items():
            if name in relations:
                touches[rows.places] = True
        if touches.all():
            return self
        if not touches.any():
            return None
        changes = {name: rows.of_transactions(touches) for name, rows in self.changes.items()}
        return replace(
            self,
            identities=self.identities[touches],
            committed=self.committed[touches],
            marks=self.marks[touches],
            changes={name: rows for name, rows in changes.items() if len(rows)},
        )

    def relations_together(self) -> set[frozenset[str]]:
        """The relations that one transaction changes, for every kind of transaction in it."""
        names = list(self.changes)
        touches = np.zeros((len(self), len(names)), bool)
        for number, rows in enumerate(self.changes.values()):
            touches[rows.places, number] = True
        return {
            frozenset(name for name, is_touched in zip(names, kind, strict=True) if is_touched)
            for kind in np.unique(touches, axis=0)
        }

    def transactions(self) -> list[SourceTransaction]:
        """The same, one by one."""
        changes: list[list[RelationChange]] = [[] for _ in range(len(self))]
        for name, rows in self.changes.items():
            for place, deleted, inserted in rows.by_place():
                changes[place].append(RelationChange(name, deleted, inserted))
        return [
            SourceTransaction(
                self.source, self.position_of(mark), identity, _moment(committed), tuple(changed)
            )
            for mark, identity, committed, changed in zip(
                self.marks.tolist(),
                self.identities.tolist(),
                self.committed.tolist(),
                changes,
                strict=True,
            )
        ]


def one_by_one(items: Iterable[FeedItem | TransactionBlock]) -> Iterator[FeedItem]:
    """The items, with the transactions of every stretch told singly."""
    for item in items:
        if isinstance(item, TransactionBlock):
            yield from item.transactions()
        else:
            yield item


def transactions_of(origin: SourceTransaction | TransactionBlock) -> list[SourceTransaction]:
    """The transactions that it tells of."""
    return origin.transactions() if isinstance(origin, TransactionBlock) else [origin]


def _moment(microseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(microseconds / 1e6, dt.UTC)
