"""GROUP BY on Spark over rows that carry counts, with results that do not depend on any order.

Spark adds integers in 64 bits, so whether a sum overflows would depend on the order of its rows, and
averages of integers in doubles. Here both are summed exactly, in decimals. Only sums of doubles keep
the freedom of their order, as everywhere.

A row with count n counts n times. Where its value can be multiplied by n without loss, it is;
decimals have no room for that, so rows are repeated instead.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from viewkeeper.algebra.expressions import Aggregate, Output
from viewkeeper.algebra.grouping import aggregate_type
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import DOUBLE, Kind, Schema, Type
from viewkeeper.spark.arrow import COUNT
from viewkeeper.spark.expressions import value_sql
from viewkeeper.views.spark_sql import quoted

_COUNT = quoted(COUNT)
# Together 38 digits: any 64-bit integer, as often as a row may appear.
_AS_DECIMAL = "CAST({} AS DECIMAL(20,0))"
_TIMES = f"CAST({_COUNT} AS DECIMAL(17,0))"

_NEGATIVE = "only a relation without negative counts can be grouped"


def group_frame(
    frame: DataFrame, schema: Schema, keys: tuple[Output, ...], aggregates: tuple[Aggregate, ...]
) -> DataFrame:
    """One line per group of a consolidated frame: keys, aggregates, and a count of one."""
    key_columns = [
        f"{value_sql(key.expression, schema)} AS {quoted(_key(index))}"
        for index, key in enumerate(keys)
    ]
    arguments = [
        f"{value_sql(aggregate.argument, schema)} AS {quoted(_argument(index))}"
        for index, aggregate in enumerate(aggregates)
        if aggregate.argument is not None
    ]
    # As a filter it can't be optimised away, and it runs on consolidated counts only.
    promised = frame.where(f"{_COUNT} > 0 OR raise_error('{_NEGATIVE}') IS NULL")
    rows = promised.selectExpr(*key_columns, *arguments, _COUNT)
    if any(_needs_single_rows(aggregate, schema) for aggregate in aggregates):
        rows = _repeated(rows)
    values = [
        F.expr(f"{_value_sql(aggregate, quoted(_argument(i)), schema)} AS {quoted(aggregate.name)}")
        for i, aggregate in enumerate(aggregates)
    ]
    groups = rows.groupBy(*(quoted(_key(index)) for index in range(len(keys))))
    found = groups.agg(*values, F.expr(f"1L AS {_COUNT}"))
    return found.toDF(*(k.name for k in keys), *(a.name for a in aggregates), COUNT)


def _key(index: int) -> str:
    return f"key {index}"


def _argument(index: int) -> str:
    return f"argument {index}"


def _repeated(rows: DataFrame) -> DataFrame:
    """Each row as often as its count says, with a count of one."""
    others = [quoted(name) for name in rows.columns if name != COUNT]
    unfolded = rows.selectExpr(*others, f"explode(sequence(1L, {_COUNT})) AS {_COUNT}")
    return unfolded.selectExpr(*others, f"1L AS {_COUNT}")


def _needs_single_rows(aggregate: Aggregate, schema: Schema) -> bool:
    return (
        aggregate.argument is not None
        and aggregate.function in ("sum", "avg")
        and not aggregate.distinct
        and type_of(aggregate.argument, schema).kind is Kind.DECIMAL
    )


def _value_sql(aggregate: Aggregate, argument: str, schema: Schema) -> str:
    if aggregate.argument is None:
        return f"coalesce(sum({_COUNT}), 0L)"
    source = type_of(aggregate.argument, schema)
    match aggregate.function:
        case "count" if aggregate.distinct:
            return f"count(DISTINCT {argument})"
        case "count":
            return f"coalesce({_number(argument)}, 0L)"
        case "min" | "max":
            return f"{aggregate.function}({argument})"
        case "sum":
            return _sum_sql(aggregate, argument, source, aggregate_type(aggregate, schema))
        case _:
            return _average_sql(aggregate, argument, source)


def _sum_sql(aggregate: Aggregate, argument: str, source: Type, result: Type) -> str:
    total = _total(aggregate, argument, source)
    return f"{total} + 0.0D" if result == DOUBLE else f"CAST({total} AS {result})"


def _average_sql(aggregate: Aggregate, argument: str, source: Type) -> str:
    distinct = "DISTINCT " if aggregate.distinct else ""
    if source.kind is Kind.DECIMAL:
        return f"avg({distinct}{argument})"
    number = f"count(DISTINCT {argument})" if aggregate.distinct else _number(argument)
    total = _total(aggregate, argument, source)
    # Over no values the total is NULL, and NULL divided by zero is NULL.
    return f"CAST({total} AS DOUBLE) / CAST({number} AS DOUBLE) + 0.0D"


def _number(argument: str) -> str:
    """How many values there are, each as often as its row; NULL when there are none."""
    return f"sum(CASE WHEN {argument} IS NOT NULL THEN {_COUNT} END)"


def _total(aggregate: Aggregate, argument: str, source: Type) -> str:
    value = _AS_DECIMAL.format(argument) if source.kind is Kind.INTEGER else argument
    if aggregate.distinct:
        return f"sum(DISTINCT {value})"
    match source.kind:
        case Kind.INTEGER:
            return f"sum({value} * {_TIMES})"
        case Kind.DOUBLE:
            return f"sum({value} * {_COUNT})"
        case _:
            return f"sum({value})"
