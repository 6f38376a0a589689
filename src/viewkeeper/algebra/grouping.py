"""GROUP BY on plain rows: which groups there are, and each aggregate's value and type.

SUM of integers is an integer that must fit 64 bits; SUM of decimals is exact and gets ten more digits
of precision; AVG of decimals is rounded to four more digits of scale; all as Spark does it.
"""

from __future__ import annotations

import decimal
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from viewkeeper.algebra.casts import checked_integer, rounded
from viewkeeper.algebra.evaluation import compiled
from viewkeeper.algebra.expressions import AGGREGATE_FUNCTIONS, Aggregate, Output
from viewkeeper.algebra.functions import ordering_key
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import (
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    EXACT,
    INTEGER,
    Field,
    Kind,
    Row,
    Schema,
    Type,
    canonical,
    decimal_type,
)
from viewkeeper.errors import UsageError


def aggregate_fields(aggregates: tuple[Aggregate, ...], schema: Schema) -> tuple[Field, ...]:
    """The columns that the aggregates give; raises UsageError where one has no type."""
    return tuple(Field(a.name, aggregate_type(a, schema)) for a in aggregates)


def aggregate_type(aggregate: Aggregate, schema: Schema) -> Type:
    if aggregate.function not in AGGREGATE_FUNCTIONS:
        raise UsageError("unknown-function", f"there is no aggregate {aggregate.function}")
    if aggregate.argument is None:
        if aggregate.function != "count":
            raise UsageError("wrong-arguments", f"{aggregate.function} needs an argument")
        return INTEGER
    argument = type_of(aggregate.argument, schema)
    if aggregate.function == "count":
        return INTEGER
    if aggregate.function in ("min", "max"):
        return argument
    if not argument.is_numeric:
        raise UsageError(
            "type-mismatch",
            f"{aggregate.function} needs a number, and this is a {argument}",
        )
    if argument.kind is not Kind.DECIMAL:
        return argument if aggregate.function == "sum" else DOUBLE
    if aggregate.function == "sum":
        return decimal_type(min(argument.precision + 10, DECIMAL_PRECISION_MAX), argument.scale)
    scale = min(argument.scale + 4, DECIMAL_PRECISION_MAX)
    return decimal_type(min(argument.precision + 4, DECIMAL_PRECISION_MAX), scale)


def group_rows(
    signed_rows: Iterable[tuple[Row, int]],
    schema: Schema,
    keys: tuple[Output, ...],
    aggregates: tuple[Aggregate, ...],
) -> Iterator[tuple[Row, int]]:
    """One row per group: its keys, then its aggregates."""
    key_columns = [compiled(key.expression, schema) for key in keys]
    groups: defaultdict[Row, list[tuple[Row, int]]] = defaultdict(list)
    if not keys:
        groups[()] = []
    for row, count in signed_rows:
        groups[tuple(column(row) for column in key_columns)].append((row, count))
    for key, members in groups.items():
        yield key + tuple(_value(aggregate, members, schema) for aggregate in aggregates), 1


def _value(aggregate: Aggregate, members: list[tuple[Row, int]], schema: Schema) -> Any:
    if aggregate.argument is None:
        return sum(count for _, count in members)
    argument = compiled(aggregate.argument, schema)
    present = [(v, count) for row, count in members if (v := argument(row)) is not None]
    if aggregate.distinct:
        present = [(value, 1) for value in dict(present)]
    if aggregate.function == "count":
        return sum(count for _, count in present)
    if not present:
        return None
    match aggregate.function:
        case "min":
            return min((value for value, _ in present), key=ordering_key)
        case "max":
            return max((value for value, _ in present), key=ordering_key)
        case _:
            return _sum_or_average(aggregate, present, aggregate_type(aggregate, schema))


def _sum_or_average(aggregate: Aggregate, present: list[tuple[Any, int]], result: Type) -> Any:
    number = sum(count for _, count in present)
    if isinstance(present[0][0], float):
        doubles = _double_sum(present)
        return canonical(doubles if aggregate.function == "sum" else doubles / number, result)
    total = decimal.Decimal(0)
    for value, count in present:
        total = with_copies(total, value, count)
    return from_total(aggregate.function, total, number, result)


def with_copies(total: decimal.Decimal, value: Any, count: int) -> decimal.Decimal:
    """The exact total with ``count`` copies of an integer or a decimal more."""
    # Not by + and *: Python's default context would round to 28 digits.
    return EXACT.fma(decimal.Decimal(value), decimal.Decimal(count), total)


def from_total(function: str, total: decimal.Decimal, number: int, result: Type) -> Any:
    """The sum or average of ``number`` integers or decimals, given their exact total."""
    if function == "sum":
        return checked_integer(int(total)) if result == INTEGER else rounded(total, result)
    if result == DOUBLE:
        return float(total) / number
    return rounded(EXACT.divide(total, decimal.Decimal(number)), result)


def _double_sum(present: list[tuple[float, int]]) -> float:
    """Correctly rounded, whatever the order; an engine that adds in some order may differ by ulps."""
    products = [value * count for value, count in present]
    try:
        return math.fsum(products)
    except (ValueError, OverflowError):  # infinities of both signs, or past the largest double
        return sum(products)
