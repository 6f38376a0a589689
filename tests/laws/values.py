"""Random types, values and lines of signed rows, with a taste for the values that hurt."""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, TypeVar

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from viewkeeper.algebra import Field, Row, Schema, Type, Value
from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    EXACT,
    INTEGER,
    INTEGER_MAX,
    INTEGER_MIN,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Kind,
    canonical,
    decimal_type,
)

T = TypeVar("T")

MONEY = decimal_type(10, 2)
WIDE = decimal_type(38, 10)
FRACTION = decimal_type(38, 30)

TYPES = (
    INTEGER,
    DOUBLE,
    STRING,
    BOOLEAN,
    BINARY,
    DATE,
    TIMESTAMP,
    LOCAL_TIMESTAMP,
    MONEY,
    WIDE,
)

_EAST = dt.timezone(dt.timedelta(hours=5, minutes=45))

# Few enough that joins find partners, nasty enough that bodies disagree if they can.
_SPECIAL: dict[Kind, list[Any]] = {
    Kind.INTEGER: [0, 1, 2, -1, INTEGER_MAX, INTEGER_MIN],
    Kind.DOUBLE: [0.0, 1.0, -0.0, -1.5, math.nan, math.inf, -math.inf, 5e-324, 2.0**53],
    Kind.STRING: [
        "",
        "a",
        "A",
        "ab",
        " a ",
        "é",
        "e\u0301",
        "ΑΣ",
        "ß",
        "𝄞",
        "a'b\\",
        "\x00",
        "\ufffe",
    ],
    Kind.BOOLEAN: [True, False],
    Kind.BINARY: [b"", b"\x00", b"\xff", b"a", b"\x00\x01"],
    Kind.DATE: [
        dt.date(1, 1, 1),
        dt.date(1582, 10, 10),
        dt.date(2024, 2, 29),
        dt.date(9999, 12, 31),
    ],
    Kind.TIMESTAMP: [
        dt.datetime(1, 1, 2, tzinfo=dt.UTC),
        dt.datetime(1582, 10, 10, 1, 2, 3, 4, tzinfo=dt.UTC),
        dt.datetime(2024, 3, 31, 2, 30, tzinfo=_EAST),
        dt.datetime(2024, 3, 30, 20, 45, tzinfo=dt.UTC),  # the same instant
        dt.datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ],
    Kind.LOCAL_TIMESTAMP: [
        dt.datetime(1, 1, 1),
        dt.datetime(1582, 10, 10, 1, 2, 3, 4),
        dt.datetime(2024, 3, 31, 2, 30),  # does not exist in Berlin
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ],
}


@functools.cache
def values(type: Type) -> st.SearchStrategy[Value]:
    """Values of the type in canonical form, NULL among them."""
    return st.one_of(st.none(), present_values(type))


@functools.cache
def present_values(type: Type) -> st.SearchStrategy[Value]:
    special = st.sampled_from(special_values(type))
    return st.one_of(special, special, _any(type).map(lambda value: canonical(value, type)))


@functools.cache
def special_values(type: Type) -> tuple[Value, ...]:
    """Values of the type on which bodies might disagree; the second is a plain one."""
    if type.kind is not Kind.DECIMAL:
        return tuple(canonical(value, type) for value in _SPECIAL[type.kind])
    largest = 10**type.precision - 1
    unscaled = (0, 10**type.scale, 1, -1, 5, largest, -largest)
    return tuple(canonical(EXACT.scaleb(Decimal(n), -type.scale), type) for n in unscaled)


def _any(type: Type) -> st.SearchStrategy[Any]:
    if type.kind is not Kind.DECIMAL:
        return _ANY[type.kind]
    largest = 10**type.precision - 1
    return st.integers(-largest, largest).map(lambda n: EXACT.scaleb(Decimal(n), -type.scale))


_ANY: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INTEGER: st.integers(INTEGER_MIN, INTEGER_MAX),
    Kind.DOUBLE: st.floats(),
    Kind.STRING: st.text(max_size=4),
    Kind.BOOLEAN: st.booleans(),
    Kind.BINARY: st.binary(max_size=3),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(
        min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30)
    ).map(lambda value: value.replace(tzinfo=dt.UTC)),
    Kind.LOCAL_TIMESTAMP: st.datetimes(),
}


# A line may have a count of zero, and the same row may come in several lines.
Line = tuple[Row, int]
Pools = dict[Type, list[Value]]


def pools(schemas: Iterable[Schema]) -> st.SearchStrategy[Pools]:
    """For every type that occurs, the few values it has in this case: joins must find partners."""
    types = sorted({field.type for schema in schemas for field in schema}, key=str)
    return st.fixed_dictionaries({type: _pool(type) for type in types})


@functools.cache
def _pool(type: Type) -> st.SearchStrategy[list[Value]]:
    plain = [special_values(type)[1]]  # 1 and 1.00 can meet where keys have different types
    return st.lists(values(type), min_size=1, max_size=2).map(lambda drawn: drawn + plain)


def lines(schema: Schema, pools: Pools, most: int) -> st.SearchStrategy[list[Line]]:
    cells = [st.sampled_from(pools[field.type]) for field in schema]
    return st.lists(st.tuples(st.tuples(*cells), _COUNTS), min_size=1, max_size=most)


_COUNTS = st.sampled_from([1, 2, -1, -2, 0])


def schema_of(**types: Type) -> Schema:
    """Columns named ``r.k`` for ``r_k``: names with dots, as inside a view."""
    return Schema(tuple(Field(name.replace("_", ".", 1), t) for name, t in types.items()))


def drawn(strategy: st.SearchStrategy[T], number: int) -> list[T]:
    """``number`` examples of the strategy, the same on every run: many cases for one Spark job."""
    found: list[T] = []

    @settings(max_examples=number, phases=[Phase.generate], database=None, derandomize=True)
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    run: Callable[[], None] = collect
    run()
    return found
