"""CAST of doubles and texts: bags against Spark, value by value, in one job."""

from __future__ import annotations

import itertools
import random

import pytest

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.casts import cast_value
from viewkeeper.algebra.expressions import Cast, Column
from viewkeeper.algebra.types import DATE, DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.errors import UsageError

MONEY, WHOLE, FINE = decimal_type(18, 2), decimal_type(38, 0), decimal_type(38, 22)


def doubles() -> list[float]:
    """Short and long ones, halves, powers of two, and all sizes around what is refused."""
    draw = random.Random(22)
    found = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, 1e15, 1e300]
    found += [999_999_999_999_999.4, 999_999_999_999_999.5, 0.5, 1.5, -2.5, 1.005, 0.125]
    for exponent in range(-80, 60):
        found += [2.0**exponent, -(2.0**exponent) * (1 + 2**-52), 3 * 2.0**exponent]
    for digits, exponent in itertools.product(range(1, 18), range(-12, 18)):
        mantissa = draw.randrange(10 ** (digits - 1), 10**digits)
        found.append(float(f"{mantissa}e{exponent - digits}"))
        found.append(-float(f"{mantissa}5e{exponent - digits}"))
    return found


NUMBER_PARTS = [
    "",
    "+",
    "-",
    "1",
    "05",
    ".",
    "e",
    "E",
    "400",
    "-3",
    " ",
    "\t",
    "_",
    "x",
    "\x7f",
    "\xa0",
    "٣",
]
DATE_PARTS = [
    "2020",
    "0000",
    "12020",
    "1",
    "02",
    "31",
    "-",
    "T",
    " ",
    "+",
    "x",
    "\x00",
    "\x7f",
    "/",
]


def texts() -> list[str]:
    draw = random.Random(23)
    found = [
        "".join(draw.choice(parts) for _ in range(draw.randrange(1, 8)))
        for parts in (NUMBER_PARTS, DATE_PARTS)
        for _ in range(1500)
    ]
    days = [
        f"{y}-{m}-{d}{tail}"
        for y in ("2020", "1900", "0004", "9999", "10000", "0000", "-0001")
        for m in ("2", "02", "13", "12")
        for d in ("1", "29", "30", "31")
        for tail in ("", "T1", " ", "x")
    ]
    numbers = [
        "9" * n + "." + "5" * m for n in (1, 16, 17, 37, 38, 39) for m in (0, 1, 2, 21, 22, 23, 40)
    ]
    return [*found, *days, *numbers, "1e2147483647", "1e-2147483647", "1e-2147483648", "0e400"]


def expected(value, source, target):
    try:
        return cast_value(value, source, target)
    except UsageError:
        return None


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("source", "values", "targets"),
    [(DOUBLE, doubles(), (MONEY, WHOLE, FINE)), (STRING, texts(), (MONEY, WHOLE, FINE, DATE))],
    ids=["doubles", "texts"],
)
def test_spark_casts_every_value_as_bags_do(spark, source, values, targets):
    from viewkeeper.spark.expressions import value_sql
    from viewkeeper.spark.relation import SparkRelation

    schema = Schema.of(n=INTEGER, v=source)
    data = Bag.of(schema, enumerate(values))
    # Where a CAST fails, TRY_CAST gives NULL: one job can tell of all values.
    written = [
        value_sql(Cast(Column("v"), t), schema).replace("CAST(", "TRY_CAST(") for t in targets
    ]
    frame = SparkRelation.from_bag(spark, data).frame
    found = {row[0]: row[1:] for row in frame.selectExpr("n", *written).collect()}
    wrong = [
        (value, str(target), mine, other)
        for (n, value), target in itertools.product(enumerate(values), targets)
        if (mine := expected(value, source, target)) != (other := found[n][targets.index(target)])
    ]
    assert wrong == []
    assert sum(value is not None for row in found.values() for value in row) > 500
