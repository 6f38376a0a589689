"""Expressions as text: literals, and parentheses only where they are needed."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import TYPE_CHECKING

import pytest

from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
)
from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_MAX,
    INTEGER_MIN,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Kind,
    decimal_type,
)
from viewkeeper.views.spark_sql import aggregate_sql, expression_sql, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

D = decimal.Decimal
NOON = dt.datetime(2024, 1, 2, 12, 0, 0, 5)

LITERALS: dict[str, Literal] = {
    "5L": Literal(5, INTEGER),
    "-5L": Literal(-5, INTEGER),
    "-9223372036854775808L": Literal(INTEGER_MIN, INTEGER),
    "9223372036854775807L": Literal(INTEGER_MAX, INTEGER),
    "1.5D": Literal(1.5, DOUBLE),
    "-1e-07D": Literal(-1e-7, DOUBLE),
    "5e-324D": Literal(5e-324, DOUBLE),
    "CAST('NaN' AS DOUBLE)": Literal(math.nan, DOUBLE),
    "CAST('-Infinity' AS DOUBLE)": Literal(-math.inf, DOUBLE),
    "1.50": Literal(D("1.50"), decimal_type(3, 2)),
    "-0.05": Literal(D("-0.05"), decimal_type(2, 2)),
    "CAST('1.50' AS DECIMAL(9,2))": Literal(D("1.50"), decimal_type(9, 2)),
    "CAST('-12' AS DECIMAL(2,0))": Literal(D("-12"), decimal_type(2, 0)),
    "'it\\'s \\\\ \\n \\u0000 ü 漢 %'": Literal("it's \\ \n \0 ü 漢 %", STRING),
    "''": Literal("", STRING),
    "X'00FF'": Literal(b"\x00\xff", BINARY),
    "X''": Literal(b"", BINARY),
    "DATE'0001-01-01'": Literal(dt.date(1, 1, 1), DATE),
    "TIMESTAMP'2024-01-02 12:00:00.000005+00:00'": Literal(
        NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))) + dt.timedelta(hours=1), TIMESTAMP
    ),
    "TIMESTAMP_NTZ'2024-01-02 12:00:00.000005'": Literal(NOON, LOCAL_TIMESTAMP),
    "TRUE": Literal(True, BOOLEAN),
    "CAST(NULL AS DECIMAL(10,2))": Literal(None, decimal_type(10, 2)),
    "CAST(NULL AS TIMESTAMP_NTZ)": Literal(None, LOCAL_TIMESTAMP),
}


@pytest.mark.parametrize("text", LITERALS)
def test_a_literal_is_printed_with_its_type(text: str) -> None:
    assert expression_sql(LITERALS[text], quoted) == text


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_reads_a_printed_literal_as_the_same_value_of_the_same_type(
    spark: SparkSession,
) -> None:
    from pyspark.sql import functions as F

    columns = [F.expr(text).alias(f"c{index}") for index, text in enumerate(LITERALS)]
    frame = spark.range(1).select(*columns)
    (row,) = frame.collect()
    assert [f.dataType.simpleString() for f in frame.schema] == [
        str(literal.type) for literal in LITERALS.values()
    ]
    for found, (text, literal) in zip(row, LITERALS.items(), strict=True):
        if literal.type.kind is Kind.TIMESTAMP:
            found = found.astimezone(dt.UTC)  # collect gives the local time of this process
        if isinstance(found, bytearray):
            found = bytes(found)
        assert found == literal.value or (found != found and literal.value != literal.value), text


a, b, c = Column("a"), Column("b"), Column("c")

EXPRESSIONS: dict[str, Expression] = {
    "a + b * c": Arithmetic("+", a, Arithmetic("*", b, c)),
    "(a + b) * c": Arithmetic("*", Arithmetic("+", a, b), c),
    "a - b - c": Arithmetic("-", Arithmetic("-", a, b), c),
    "a - (b - c)": Arithmetic("-", a, Arithmetic("-", b, c)),
    "a - -5L": Arithmetic("-", a, Literal(-5, INTEGER)),
    "-(-a)": Negate(Negate(a)),
    "-(5L)": Negate(Literal(5, INTEGER)),
    "-(a + b)": Negate(Arithmetic("+", a, b)),
    "a OR b AND c": Or((a, And((b, c)))),
    "(a OR b) AND c": And((Or((a, b)), c)),
    "a AND (b AND c)": And((a, And((b, c)))),
    "NOT (a = b)": Not(Comparison("=", a, b)),
    "(a = b) = c": Comparison("=", Comparison("=", a, b), c),
    "(a = b) IS NULL": IsNull(Comparison("=", a, b)),
    "a IS NOT NULL": Not(IsNull(a)),
    "a NOT IN (1L, b)": Not(InList(a, (Literal(1, INTEGER), b))),
    "a NOT LIKE '10\\\\%'": Not(Like(a, "10\\%")),
    "CAST(length(a) AS BIGINT) + 1L": Arithmetic("+", Call("length", (a,)), Literal(1, INTEGER)),
    "substring(a, 1L, CAST(b AS INT))": Call("substring", (a, Literal(1, INTEGER), b)),
    "CAST(a AS STRING)": Cast(a, STRING),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_parentheses_stand_only_where_they_are_needed(text: str) -> None:
    assert expression_sql(EXPRESSIONS[text], str) == text


def test_columns_are_spelled_by_the_caller() -> None:
    assert expression_sql(Comparison("=", Column("o.x`y"), TRUE), quoted) == "`o.x``y` = TRUE"


def test_aggregates_are_calls() -> None:
    assert aggregate_sql(Aggregate("n", "count"), str) == "count(*)"
    assert aggregate_sql(Aggregate("n", "sum", a, distinct=True), str) == "sum(DISTINCT a)"
