"""Joins of tables that are both here: which lines of one meet which lines of the other.

A join of two tables in this process by equal keys takes milliseconds where a Spark job takes a tenth of a
second before it has read a row. How many pairs there are is known before one of them is made, so that a
join that grows too large is still Spark's.

Keys become whole numbers, the same number for the same value on both sides; the right side is sorted by
them, and every line of the left finds its partners between two places of that order. Numbers that lie close
together are sorted by counting, and the place of each is looked up, not searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.expressions import (
    And,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.relation import JoinKeys
from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.arrow import arrow_type

Numbers = npt.NDArray[np.int64]
# Integers whose range is at most this many times their number are counted in an array, others in a hash table.
DENSE = 8
# The key of a line that can't meet any other: a NULL.
_NOBODY_LEFT, _NOBODY_RIGHT = -1, -2


@dataclass(frozen=True)
class Matches:
    """The pairs of a join, found and counted, not yet made."""

    _order: Numbers
    _starts: Numbers
    _counts: Numbers

    @property
    def pairs(self) -> int:
        return int(self._counts.sum())

    def lines(self) -> tuple[Numbers, Numbers]:
        """The pairs: lines of the left side, and beside each the line of the right side."""
        left = np.repeat(np.arange(len(self._counts)), self._counts)
        first = np.cumsum(self._counts) - self._counts
        within = np.arange(len(left)) - np.repeat(first, self._counts)
        return left, self._order[np.repeat(self._starts, self._counts) + within]


def can_match(left: Schema, right: Schema, on: JoinKeys) -> bool:
    """Whether values of the keys are equal exactly when their forms in Arrow are."""
    types = [(type_of(Column(a), left), type_of(Column(b), right)) for a, b in on]
    return bool(on) and all(a == b and a.kind is not Kind.DOUBLE for a, b in types)


def matches(left: list[pa.ChunkedArray], right: list[pa.ChunkedArray]) -> Matches:
    """Which lines agree on all columns, pair by pair of columns; NULL agrees with nothing."""
    if (
        len(left) == 1
        and left[0].type == pa.int64()
        and not (left[0].null_count or right[0].null_count)
    ):
        mine, theirs = left[0].to_numpy(), right[0].to_numpy()
    else:
        mine, theirs = _as_numbers(left[0], right[0])
    for more_left, more_right in zip(left[1:], right[1:], strict=True):
        mine, theirs = _combined(mine, theirs, *_as_numbers(more_left, more_right))
    return _by_place(mine, theirs) if _are_close(theirs) else _by_search(mine, theirs)


def _by_search(mine: Numbers, theirs: Numbers) -> Matches:
    order = np.argsort(theirs)
    ordered = theirs[order]
    starts = np.searchsorted(ordered, mine, "left")
    ends = np.searchsorted(ordered, mine, "right")
    return Matches(order, starts, ends - starts)


def _by_place(mine: Numbers, theirs: Numbers) -> Matches:
    least, most = theirs.min(), theirs.max()
    places = theirs - least
    # One place more than there are numbers, for those without a partner.
    counts = np.bincount(places, minlength=int(most - least) + 2)
    starts = np.cumsum(counts) - counts
    wanted = np.where((mine >= least) & (mine <= most), mine - least, len(counts) - 1)
    return Matches(_order(places), starts[wanted], counts[wanted])


def _order(numbers: Numbers) -> Numbers:
    """What sorts numbers that are not negative: 16 bits at a time, which takes no comparison."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    most, known = int(numbers.max(initial=0)), 16
    while most >> known:
        digits = (numbers >> known).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
        known += 16
    return order


def _are_close(numbers: Numbers) -> bool:
    """Whether an array with a place for each of them is not much larger than they are."""
    return bool(len(numbers)) and int(numbers.max()) - int(numbers.min()) <= DENSE * len(numbers)


def _as_numbers(left: pa.ChunkedArray, right: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """Numbers that are not negative, and equal where the values are."""
    both = pa.chunked_array([*left.chunks, *right.chunks], left.type).combine_chunks()
    codes = both.dictionary_encode().indices
    nulls = codes.is_null().to_numpy(zero_copy_only=False)
    numbers = codes.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    mine, theirs = numbers[: len(left)], numbers[len(left) :]
    mine[nulls[: len(left)]] = _NOBODY_LEFT
    theirs[nulls[len(left) :]] = _NOBODY_RIGHT
    return mine, theirs


def _combined(
    mine: Numbers, theirs: Numbers, more_mine: Numbers, more_theirs: Numbers
) -> tuple[Numbers, Numbers]:
    """One number for a pair of numbers, small again so that a third column can follow."""
    both, more = np.concatenate([mine, theirs]), np.concatenate([more_mine, more_theirs])
    nobody = (both < 0) | (more < 0)
    numbers = combined_numbers(both, more)
    numbers[: len(mine)][nobody[: len(mine)]] = _NOBODY_LEFT
    numbers[len(mine) :][nobody[len(mine) :]] = _NOBODY_RIGHT
    return numbers[: len(mine)], numbers[len(mine) :]


def are_scattered(column: pa.ChunkedArray) -> bool:
    """Whether its values are whole numbers that do not lie close together."""
    return _are_numbers(column) and not _are_close(column.to_numpy())


def _are_numbers(column: pa.ChunkedArray) -> bool:
    return bool(column.type == pa.int64() and len(column) and not column.null_count)


def small_numbers(column: pa.ChunkedArray) -> Numbers:
    """A number for every line, none negative and none large, the same for the same values and NULLs."""
    if _are_numbers(column):
        values = column.to_numpy()
        # Keys are often given one after the other: then they are such numbers, but for where they begin.
        if _are_close(values):
            numbers: Numbers = values - values.min()
            return numbers
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    codes: Numbers = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def combined_numbers(first: Numbers, second: Numbers) -> Numbers:
    """One number for every pair of numbers, none of them negative; small again."""
    pairs = first * (int(second.max(initial=0)) + 1) + second
    order = _order(pairs)
    ordered = pairs[order]
    numbers = np.empty(len(pairs), np.int64)
    numbers[order] = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)
    return numbers


# -- predicates ------------------------------------------------------------------------------------

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
# Whose order and equality is the same in Arrow as in the algebra.
_COMPARABLE = {Kind.INTEGER, Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP}


def is_simple(predicate: Expression, schema: Schema) -> bool:
    """Whether `mask` can tell of which lines the predicate is true."""
    match predicate:
        case And(operands):
            return all(is_simple(part, schema) for part in operands)
        case Comparison(symbol, Column() | Literal() as left, Column() | Literal() as right):
            types = {type_of(left, schema), type_of(right, schema)}
            return symbol in _COMPARISONS and len(types) == 1 and types.pop().kind in _COMPARABLE
        case IsNull(Column()) | Not(IsNull(Column())):
            return True
        case _:
            return False


def mask(predicate: Expression, column: Callable[[str], Any]) -> Any:
    """Of which lines a simple predicate is true; NULL where that is unknown."""
    match predicate:
        case And(operands):
            return reduce(pc.and_kleene, (mask(part, column) for part in operands))
        case Comparison(symbol, left, right):
            return _COMPARISONS[symbol](_operand(left, column), _operand(right, column))
        case IsNull(Column(name)):
            return pc.is_null(column(name))
        case Not(IsNull(Column(name))):
            return pc.is_valid(column(name))
    raise TypeError(predicate)  # `is_simple` admits no others


def _operand(expression: Expression, column: Callable[[str], Any]) -> Any:
    if isinstance(expression, Literal):
        return pa.scalar(expression.value, arrow_type(expression.type))
    if isinstance(expression, Column):
        return column(expression.name)
    raise TypeError(expression)  # `is_simple` admits no others
