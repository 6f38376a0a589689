"""What is written out for Spark; that it computes the same is shown in `tests/laws`."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest

from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.expressions import (
    And,
    Arithmetic,
    Call,
    Column,
    Comparison,
    InList,
    Literal,
    Or,
    Output,
)
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.errors import UsageError
from viewkeeper.spark.expressions import predicate_sql, value_sql

SCHEMA = Schema(
    (
        Field("o.i", INTEGER),
        Field("o.x", DOUBLE),
        Field("o.d", decimal_type(10, 2)),
        Field("odd ` name", STRING),
    )
)
I_, X, D = Column("o.i"), Column("o.x"), Column("o.d")


def test_names_are_quoted_whatever_they_hold():
    assert value_sql(Column("odd ` name"), SCHEMA) == "`odd `` name`"


def test_conversions_that_typing_implies_are_written_out():
    assert value_sql(Arithmetic("+", I_, D), SCHEMA) == "CAST(`o.i` AS DECIMAL(20,0)) + `o.d`"
    assert predicate_sql(Comparison("<", I_, X), SCHEMA) == "CAST(`o.i` AS DOUBLE) < `o.x`"
    assert (
        value_sql(Call("coalesce", (I_, D)), SCHEMA)
        == "coalesce(CAST(`o.i` AS DECIMAL(22,2)), CAST(`o.d` AS DECIMAL(22,2)))"
    )


def test_a_computed_double_has_one_zero_and_a_stored_one_is_left_alone():
    assert value_sql(X, SCHEMA) == "`o.x`"
    assert value_sql(Arithmetic("*", X, X), SCHEMA) == "`o.x` * `o.x` + 0.0D"


def test_empty_connectives_and_lists_become_constants():
    assert predicate_sql(And(()), SCHEMA) == "TRUE"
    assert predicate_sql(Or(()), SCHEMA) == "FALSE"
    assert predicate_sql(InList(I_, ()), SCHEMA) == "FALSE"


def test_a_type_error_is_ours_and_not_spark_s():
    with pytest.raises(UsageError, match="different types"):
        predicate_sql(Comparison("=", I_, Column("odd ` name")), SCHEMA)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_decimals_that_no_common_type_holds_are_compared_exactly(spark):
    from viewkeeper.spark.relation import SparkRelation

    coarse, fine = decimal_type(38, 0), decimal_type(38, 37)
    schema = Schema((Field("n", INTEGER), Field("c", coarse), Field("f", fine)))
    whole = [None, 0, 1, -1, 9, 10, -10, 10**38 - 1]
    broken = [None, "0", "1", "1.0000000000000000000000000000000000001", "-1", "9." + "9" * 37]
    pairs = itertools.product(whole, broken)
    data = Bag.of(
        schema,
        (
            (n, None if c is None else Decimal(c), None if f is None else Decimal(f))
            for n, (c, f) in enumerate(pairs)
        ),
    )
    sides = [(Column("c"), Column("f")), (Column("f"), Column("c"))]
    symbols = ("=", "<>", "<", "<=", ">", ">=", "<=>")
    outputs = [
        Output(f"v{i}", Comparison(symbol, *pair))
        for i, (symbol, pair) in enumerate(itertools.product(symbols, sides))
    ]
    listed = InList(Column("f"), (Column("c"), Literal(Decimal(1), coarse)))
    chosen = (Output("n", Column("n")), *outputs, Output("listed", listed))
    assert SparkRelation.from_bag(spark, data).select(chosen).to_bag() == data.select(chosen)
