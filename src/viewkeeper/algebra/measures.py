"""The measures that an accumulator keeps of an argument: their types, and how they begin.

`running.Wanted.measures` names them: present, total, least, greatest, distinct, distinct_total.
"""

from __future__ import annotations

import decimal
from typing import Any

from viewkeeper.algebra.casts import rounded
from viewkeeper.algebra.expressions import (
    Aggregate,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
)
from viewkeeper.algebra.types import DECIMAL_PRECISION_MAX, INTEGER, Kind, Type, decimal_type

# Sums of integers are kept in decimals: 64 bits may overflow only where the result is used.
_INTEGER_AS_SUMMAND = decimal_type(DECIMAL_PRECISION_MAX - 10, 0)


def measure_type(name: str, argument: Type) -> Type:
    match name:
        case "present" | "distinct":
            return INTEGER
        case "least" | "greatest":
            return argument
        case _:
            return decimal_type(DECIMAL_PRECISION_MAX, argument.scale)


def measure_of(name: str, output: str, argument: Column, type: Type) -> Aggregate:
    """A measure as an aggregate over whole rows."""
    summand = Cast(argument, _INTEGER_AS_SUMMAND) if type.kind is Kind.INTEGER else argument
    match name:
        case "present":
            return Aggregate(output, "count", argument)
        case "distinct":
            return Aggregate(output, "count", argument, distinct=True)
        case "least":
            return Aggregate(output, "min", argument)
        case "greatest":
            return Aggregate(output, "max", argument)
        case _:
            return Aggregate(output, "sum", summand, distinct=name == "distinct_total")


def never_null(name: str, column: Column, type: Type) -> Expression:
    """A total over no values is 0 where it is kept."""
    if name not in ("total", "distinct_total"):
        return column
    return Call("coalesce", (Cast(column, type), Literal(scaled(decimal.Decimal(0), type), type)))


def scaled(value: Any, type: Type) -> Any:
    """A total as a value of its column's type."""
    return rounded(value, type) if isinstance(value, decimal.Decimal) else value
