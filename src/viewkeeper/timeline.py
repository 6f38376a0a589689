"""Transactions of the sources, and cuts through them: the vocabulary of everything that happens.

A source commits transactions one after the other and numbers them 1, 2, 3, …; a *cut* says how many
of each source's transactions are included. Knows relations and their names, nothing of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

from viewkeeper.views.definition import RelationName


class Transaction(NamedTuple):
    """One committed transaction of one source: a signed change for each relation it touched.

    A row that was modified is one row out and one row in.

    Where many come at once, one of these may stand for ``size`` of them with numbers from ``number`` on: a
    *block*. Its changes then name the relations that any of them touches; whoever told of it has the rows.
    """

    source: str
    number: int
    changes: tuple[tuple[RelationName, Any], ...]
    size: int = 1

    @property
    def last_number(self) -> int:
        return self.number + self.size - 1

    def between(self, start: int, end: int) -> Transaction:
        """Those of a block from ``start`` to before ``end``, counted from 0."""
        return self._replace(number=self.number + start, size=end - start)

    def change(self, name: RelationName) -> Any | None:
        """The signed rows it changed in that relation; None when it did not touch it."""
        for relation, rows in self.changes:
            if relation == name:
                return rows
        return None

    @property
    def relations(self) -> tuple[RelationName, ...]:
        return tuple(name for name, _ in self.changes)

    def __str__(self) -> str:
        return f"{self.source}#{self.number}"


def summed_changes(transactions: Iterable[Transaction]) -> dict[RelationName, Any]:
    """What some transactions change in all, by relation; those that they do not touch are left out."""
    total: dict[RelationName, Any] = {}
    for transaction in transactions:
        for name, rows in transaction.changes:
            total[name] = total[name] + rows if name in total else rows
    return total


@dataclass(frozen=True)
class CutVector:
    """For each source, the number of its last included transaction; 0 where none is."""

    numbers: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, numbers: Mapping[str, int] | Iterable[tuple[str, int]]) -> CutVector:
        return cls(tuple(sorted(dict(numbers).items())))

    @classmethod
    def start(cls, sources: Iterable[str]) -> CutVector:
        """The cut before anything happened."""
        return cls.of(dict.fromkeys(sources, 0))

    def __getitem__(self, source: str) -> int:
        for name, number in self.numbers:
            if name == source:
                return number
        raise KeyError(source)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.numbers)

    def advanced(self, source: str, number: int) -> CutVector:
        """The cut with one source's number replaced."""
        return CutVector(tuple((s, number if s == source else n) for s, n in self.numbers))

    def includes(self, other: CutVector) -> bool:
        """Whether every transaction that ``other`` includes is included here too."""
        return all(mine[1] >= theirs[1] for mine, theirs in zip(self, other, strict=True))

    def successors(self, lengths: Mapping[str, int]) -> Iterator[CutVector]:
        """The cuts that include one transaction more, where the source has one."""
        for source, number in self.numbers:
            if number < lengths[source]:
                yield self.advanced(source, number + 1)

    @property
    def total(self) -> int:
        """How many transactions are included in all."""
        return sum(number for _, number in self.numbers)

    def __str__(self) -> str:
        return "⟨" + ", ".join(f"{source} {number}" for source, number in self.numbers) + "⟩"


class CutVectors(Sequence[CutVector]):
    """The cut after each of some transactions, made when somebody asks: a batch has many."""

    def __init__(self, before: CutVector, transactions: tuple[Transaction, ...]) -> None:
        self._before = before
        self._transactions = transactions

    @cached_property
    def _all(self) -> tuple[CutVector, ...]:
        cuts = [self._before]
        for transaction in self._transactions:
            cuts.append(cuts[-1].advanced(transaction.source, transaction.last_number))
        return tuple(cuts[1:])

    def __len__(self) -> int:
        return len(self._transactions)

    @overload
    def __getitem__(self, index: int) -> CutVector: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[CutVector, ...]: ...

    def __getitem__(self, index: int | slice) -> CutVector | tuple[CutVector, ...]:
        return self._all[index]
