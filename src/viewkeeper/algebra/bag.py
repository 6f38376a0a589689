"""`Bag`: the reference body of the algebra, a dict from rows to signed counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

from viewkeeper.algebra.evaluation import compiled, holds
from viewkeeper.algebra.expressions import TRUE, Aggregate, Column, Expression, Output
from viewkeeper.algebra.grouping import aggregate_fields, group_rows
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.relation import JoinKeys, Relation
from viewkeeper.algebra.types import Field, Kind, Row, Schema, Value, canonical_row
from viewkeeper.errors import InvariantViolated, invariant

SignedRow = tuple[Row, int]


class Bag(Relation):
    """Rows with signed counts, in memory. Equal bags hold the same rows with the same counts."""

    __slots__ = ("_counts", "schema")

    def __init__(self, schema: Schema, signed_rows: Iterable[SignedRow] = ()) -> None:
        """From rows in canonical form; `of` and `signed` check and canonicalise foreign values."""
        self.schema = schema
        self._counts = _summed(signed_rows)

    @classmethod
    def of(cls, schema: Schema, rows: Iterable[Iterable[Value]] = ()) -> Bag:
        """A bag that holds each of ``rows`` once per occurrence; raises UsageError on a bad value."""
        return cls(schema, ((canonical_row(row, schema), 1) for row in rows))

    @classmethod
    def signed(cls, schema: Schema, rows: Iterable[tuple[Iterable[Value], int]]) -> Bag:
        """A bag from ``(row, count)`` pairs, counts of either sign."""
        return cls(schema, ((canonical_row(row, schema), count) for row, count in rows))

    # -- reading ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[SignedRow]:
        """``(row, count)`` pairs; the order is that of arrival and means nothing."""
        return iter(self._counts.items())

    def __len__(self) -> int:
        """How many distinct rows there are."""
        return len(self._counts)

    @property
    def total(self) -> int:
        """How many rows come or go, each counted as often as it does."""
        return sum(map(abs, self._counts.values()))

    def count(self, row: Iterable[Value]) -> int:
        return self._counts.get(canonical_row(row, self.schema), 0)

    def sorted(self) -> list[SignedRow]:
        """The pairs in an order that depends on the values alone; NULL comes first."""
        return sorted(self._counts.items(), key=lambda pair: tuple(map(_sort_key, pair[0])))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bag):
            return NotImplemented
        return self.schema == other.schema and self._counts == other._counts

    def __hash__(self) -> int:
        return hash((self.schema.names, frozenset(self._counts.items())))

    def __repr__(self) -> str:
        rows = ", ".join(f"{row!r}[{count}]" for row, count in self.sorted())
        return f"Bag({', '.join(self.schema.names)}: {rows or '⊥'})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through `signed`, because a NaN that was pickled is no longer the one NaN.
        return (Bag.signed, (self.schema, list(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Bag:
        return self  # immutable

    # -- the algebra ------------------------------------------------------------------------------

    def __add__(self, other: Bag) -> Bag:
        if self.schema is not other.schema and self.schema != other.schema:
            raise InvariantViolated(
                "only relations with the same schema can be added",
                detail=f"{self.schema} and {other.schema}",
            )
        if not other._counts:
            return self
        if not self._counts:
            return other
        return Bag(self.schema, _chained(self, other))

    def __neg__(self) -> Bag:
        return Bag(self.schema, ((row, -count) for row, count in self))

    def join(self, other: Bag, on: JoinKeys = (), where: Expression = TRUE) -> Bag:
        schema = self.schema.joined(other.schema)
        return Bag(schema, _kept(_matches(self, other, on), where, schema))

    def pairs_with(self, other: Bag, on: JoinKeys = ()) -> int:
        """How many pairs of rows a join would give before its condition: what it costs."""
        if not on:
            return len(self) * len(other)
        key_of_left, key_of_right = _keys(self.schema, other.schema, on)
        found = Counter(key_of_right(row) for row, _ in other)
        return sum(found[key_of_left(row)] for row, _ in self)

    def where(self, predicate: Expression) -> Bag:
        return Bag(self.schema, _kept(self, predicate, self.schema))

    def select(self, outputs: tuple[Output, ...]) -> Bag:
        schema, project = _projection(outputs, self.schema)
        return Bag(schema, ((project(row), count) for row, count in self))

    def renamed(self, names: Iterable[str]) -> Bag:
        return Bag(self.schema.renamed(names), self)

    def copied(self, column: str) -> Bag:
        position = self.schema.position(column)
        return Bag(self.schema, ((row, count * copies_in(row[position])) for row, count in self))

    def versions(self, lo: str, hi: str) -> Bag:
        first, last = self.schema.position(lo), self.schema.position(hi)
        steps: dict[Row, Counter[int]] = defaultdict(Counter)
        for row, count in self:
            begin, end = int(row[first]), int(row[last])  # type: ignore[arg-type]
            if begin <= end:
                rest = tuple(v for i, v in enumerate(row) if i not in (first, last))
                steps[rest][begin] += count
                steps[rest][end + 1] -= count
        return Bag(self.schema, _versions(steps, first, last))

    def consolidated(self) -> Bag:
        return self

    def support(self) -> Bag:
        return Bag(self.schema, ((row, 1) for row, _ in self))

    def positive(self) -> Bag:
        return Bag(self.schema, (pair for pair in self if pair[1] > 0))

    def grouped(self, keys: tuple[Output, ...], aggregates: tuple[Aggregate, ...]) -> Bag:
        invariant(
            all(count > 0 for count in self._counts.values()),
            "only a relation without negative counts can be grouped",
        )
        key_fields = tuple(Field(k.name, type_of(k.expression, self.schema)) for k in keys)
        schema = Schema(key_fields + aggregate_fields(aggregates, self.schema))
        return Bag(schema, group_rows(self, self.schema, keys, aggregates))

    def is_empty(self) -> bool:
        return not self._counts

    def like(self, bag: Bag) -> Bag:
        return bag

    def to_bag(self) -> Bag:
        return self


def copies_in(value: Value) -> int:
    """What a column that counts copies says; NULL is none."""
    invariant(value is None or isinstance(value, int), "copies are counted by an integer")
    return value if isinstance(value, int) else 0


def _versions(steps: dict[Row, Counter[int]], first: int, last: int) -> Iterator[SignedRow]:
    """What each row's steps, by their places, add up to between one and the next."""
    for rest, by_place in steps.items():
        places = sorted(place for place, step in by_place.items() if step)
        level = 0
        for place, following in pairwise(places):
            level += by_place[place]
            if level:
                values = list(rest)
                for position, value in sorted(((first, place), (last, following - 1))):
                    values.insert(position, value)
                yield tuple(values), level


def _summed(signed_rows: Iterable[SignedRow]) -> dict[Row, int]:
    """The one place where counts meet and zero counts vanish."""
    counts: dict[Row, int] = {}
    for row, count in signed_rows:
        total = counts.get(row, 0) + count
        if total:
            counts[row] = total
        else:
            counts.pop(row, None)
    return counts


def _chained(first: Iterable[SignedRow], second: Iterable[SignedRow]) -> Iterator[SignedRow]:
    yield from first
    yield from second


def _kept(
    signed_rows: Iterable[SignedRow], predicate: Expression, schema: Schema
) -> Iterable[SignedRow]:
    if predicate == TRUE:
        return signed_rows
    keep = holds(predicate, schema)
    return (pair for pair in signed_rows if keep(pair[0]))


def _matches(left: Bag, right: Bag, on: JoinKeys) -> Iterator[SignedRow]:
    """A hash join: the right side by its key, the left side looked up in it. Counts multiply."""
    if not on:
        for left_row, left_count in left:
            for right_row, right_count in right:
                yield left_row + right_row, left_count * right_count
        return
    key_of_left, key_of_right = _keys(left.schema, right.schema, on)
    index: defaultdict[Row, list[SignedRow]] = defaultdict(list)
    for row, count in right:
        index[key_of_right(row)].append((row, count))
    for left_row, left_count in left:
        key = key_of_left(left_row)
        if None in key:
            continue
        for right_row, right_count in index.get(key, ()):
            yield left_row + right_row, left_count * right_count


@lru_cache(maxsize=4096)
def _projection(outputs: tuple[Output, ...], schema: Schema) -> tuple[Schema, Callable[[Row], Row]]:
    """The columns that a projection gives, and the function that computes them from a row."""
    result = Schema(tuple(Field(o.name, type_of(o.expression, schema)) for o in outputs))
    names = [o.expression.name for o in outputs if isinstance(o.expression, Column)]
    if len(names) == len(outputs) > 0:
        return result, _tuple_getter([schema.position(name) for name in names])
    columns = [compiled(output.expression, schema) for output in outputs]
    return result, lambda row: tuple(column(row) for column in columns)


@lru_cache(maxsize=4096)
def _keys(
    left: Schema, right: Schema, on: JoinKeys
) -> tuple[Callable[[Row], Row], Callable[[Row], Row]]:
    """The key of a row on either side. Python finds 1, 1.0 and Decimal(1) under one key."""
    for left_name, right_name in on:
        kinds = {left.type_of(left_name).kind, right.type_of(right_name).kind}
        invariant(
            len(kinds) == 1 or kinds == {Kind.INTEGER, Kind.DECIMAL},
            "join keys of these types are not equal by hash: use a residual predicate",
            detail=f"{left_name} and {right_name}: {sorted(kind.value for kind in kinds)}",
        )
    return (
        _tuple_getter([left.position(name) for name, _ in on]),
        _tuple_getter([right.position(name) for _, name in on]),
    )


def _tuple_getter(positions: list[int]) -> Callable[[Row], Row]:
    if len(positions) == 1:
        (position,) = positions
        return lambda row: (row[position],)
    return itemgetter(*positions)


def _sort_key(value: Value) -> tuple[bool, bool, Any]:
    present = value is not None
    is_nan = isinstance(value, float) and value != value
    return (present, is_nan, None if is_nan or not present else value)
