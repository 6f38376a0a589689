"""The running aggregates of one group, as one transaction after the other changes its rows."""

from __future__ import annotations

import decimal
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeeper.algebra.expressions import Aggregate
from viewkeeper.algebra.functions import ordering_key
from viewkeeper.algebra.grouping import from_total, with_copies
from viewkeeper.algebra.types import Row, Type
from viewkeeper.errors import invariant


@dataclass(frozen=True)
class Wanted:
    """What must be known of an argument, because some aggregate is computed from it."""

    total: bool
    least: bool
    greatest: bool
    distinct: bool
    distinct_total: bool

    @classmethod
    def by(cls, aggregates: list[Aggregate]) -> Wanted:
        plain = {a.function for a in aggregates if not a.distinct}
        distinct = {a.function for a in aggregates if a.distinct} - {"min", "max"}
        functions = plain | {a.function for a in aggregates}
        return cls(
            total=bool(plain & {"sum", "avg"}),
            least="min" in functions,
            greatest="max" in functions,
            distinct=bool(distinct),
            distinct_total=bool(distinct & {"sum", "avg"}),
        )

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The names of what an accumulator keeps of the argument."""
        named = ("total", "least", "greatest", "distinct", "distinct_total")
        return ("present", *(name for name in named if getattr(self, name)))

    @cached_property
    def extremes(self) -> bool:
        return self.least or self.greatest

    @property
    def values(self) -> bool:
        """Whether the argument's values must be kept themselves."""
        return self.extremes or self.distinct

    def bounds(self, kept: Kept) -> tuple[Any, ...]:
        """The values that hold a result up: as long as they stay, the others need not be known."""
        found = [kept.least] if self.least else []
        found += [kept.greatest] if self.greatest else []
        return tuple(value for value in found if value is not None)


@dataclass
class Kept:
    """What an accumulator keeps of one argument."""

    present: int = 0
    total: decimal.Decimal = decimal.Decimal(0)
    least: Any = None
    greatest: Any = None
    distinct: int = 0
    distinct_total: decimal.Decimal = decimal.Decimal(0)


class Argument:
    """One argument of a group: what is kept of it, and what is known of its values."""

    def __init__(
        self,
        kept: Kept,
        wanted: Wanted,
        counts: Mapping[Any, int],
        whole: Mapping[Any, int] | None,
    ) -> None:
        """``counts``: of the touched values; ``whole``: of all, or None if the bounds stay."""
        self.kept = kept
        self.wanted = wanted
        self._counts = dict(counts)
        known = dict.fromkeys(wanted.bounds(kept), 1) if whole is None else dict(whole)
        self._known = known
        self._in_order = sorted(known, key=ordering_key)

    def change(self, value: Any, count: int) -> None:
        """Let one transaction add copies of a value, or take them away."""
        kept, wanted = self.kept, self.wanted
        kept.present += count
        if wanted.total:
            kept.total = with_copies(kept.total, value, count)
        if wanted.distinct:
            self._count(value, count)
        if wanted.extremes:
            self._rank(value, count)

    def _count(self, value: Any, count: int) -> None:
        before = self._counts.get(value, 0)
        after = self._counts[value] = before + count
        invariant(after >= 0, f"the value {value!r} is taken away and was not there")
        appears = (after > 0) - (before > 0)
        self.kept.distinct += appears
        if appears and self.wanted.distinct_total:
            self.kept.distinct_total = with_copies(self.kept.distinct_total, value, appears)

    def _rank(self, value: Any, count: int) -> None:
        # Without the whole bag a value between the bounds may seem to be there less than never: it
        # can't be the least or the greatest, so it does not matter.
        before = self._known.get(value, 0)
        after = self._known[value] = before + count
        if before <= 0 < after:
            insort(self._in_order, value, key=ordering_key)
        elif after <= 0 < before:
            self._in_order.pop(bisect_left(self._in_order, ordering_key(value), key=ordering_key))
        self.kept.least, self.kept.greatest = (
            (self._in_order[0], self._in_order[-1]) if self._in_order else (None, None)
        )

    def value(self, aggregate: Aggregate, type: Type) -> Any:
        """The aggregate of the argument's values."""
        kept = self.kept
        number = kept.distinct if aggregate.distinct else kept.present
        match aggregate.function:
            case "min":
                return kept.least
            case "max":
                return kept.greatest
            case "count":
                return number
            case function:
                total = kept.distinct_total if aggregate.distinct else kept.total
                return from_total(function, total, number, type) if number else None


class Group:
    """A group's accumulator while a batch goes over it."""

    def __init__(
        self,
        kept: tuple[int, list[Kept]],
        wanted: tuple[Wanted, ...],
        counts: list[Mapping[Any, int]],
        whole: list[Mapping[Any, int] | None],
    ) -> None:
        self.rows, arguments = kept
        self.arguments = [
            Argument(*parts) for parts in zip(arguments, wanted, counts, whole, strict=True)
        ]

    def change(self, signed_rows: list[tuple[Row, int]]) -> None:
        """Let one transaction change the group by these rows of arguments."""
        for _, count in signed_rows:
            self.rows += count
        invariant(self.rows >= 0, "more rows leave a group than there are in it")
        for place, argument in enumerate(self.arguments):
            for value, count in _values(signed_rows, place):
                argument.change(value, count)


def _values(signed_rows: list[tuple[Row, int]], place: int) -> Iterable[tuple[Any, int]]:
    """The values that a transaction adds or takes away at one place; those that it moves, do not."""
    if len(signed_rows) == 1:
        ((row, count),) = signed_rows
        return () if row[place] is None else ((row[place], count),)
    counts: dict[Any, int] = {}
    for row, count in signed_rows:
        if row[place] is not None:
            counts[row[place]] = counts.get(row[place], 0) + count
    return [(value, count) for value, count in counts.items() if count]
