"""`SparkRelation`: lazy, flat, one action when asked, and values that survive the way there and back."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.expressions import Aggregate, Column, Comparison, Output
from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_MAX,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from viewkeeper.errors import InvariantViolated, UsageError
from viewkeeper.spark.arrow import COUNT, bag_of, table_of
from viewkeeper.spark.relation import SparkRelation

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

A = Schema((Field("o.id", INTEGER), Field("o.name", STRING)))
B = Schema((Field("c.id", INTEGER), Field("c.x", DOUBLE)))

EVERY_TYPE = Schema(
    (
        Field("i", INTEGER),
        Field("x", DOUBLE),
        Field("d", decimal_type(38, 10)),
        Field("s", STRING),
        Field("b", BOOLEAN),
        Field("y", BINARY),
        Field("day", DATE),
        Field("instant", TIMESTAMP),
        Field("local", LOCAL_TIMESTAMP),
    )
)
ROWS = [
    (
        INTEGER_MAX,
        math.nan,
        Decimal("1234567890123456789012345678.0000000001"),
        "é𝄞\x00'",
        True,
        b"\x00\xff",
        dt.date(1, 1, 1),
        dt.datetime(1500, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=3))),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ),
    (
        0,
        -0.0,
        Decimal(0),
        "",
        False,
        b"",
        dt.date(9999, 12, 31),
        dt.datetime(1, 1, 2, tzinfo=dt.UTC),
        dt.datetime(1, 1, 1),
    ),
    (None,) * 9,
]


def on(session, bag: Bag) -> SparkRelation:
    return SparkRelation.from_bag(session, bag)


@pytest.mark.parametrize("which", ["tiny", "bulk"])
def test_every_value_survives_the_way_to_spark_and_back(running_spark, which):
    bag = Bag.signed(EVERY_TYPE, zip(ROWS, (2, -3, 1), strict=True))
    assert on(getattr(running_spark, which), bag).to_bag() == bag


@pytest.mark.parametrize("which", ["tiny", "bulk"])
def test_both_sessions_give_the_same_answers(running_spark, which):
    session = getattr(running_spark, which)
    left = Bag.signed(A, [((1, "a"), 2), ((2, "b"), -1), ((None, "c"), 1)])
    right = Bag.signed(B, [((1, 0.5), 1), ((2, math.nan), 2), ((None, 1.0), 1)])
    keys = (("o.id", "c.id"),)

    def answer(one, other):
        return (one + one - other_sign(one)).join(other, keys).support()

    def other_sign(relation):
        return relation.where(Comparison("=", Column("o.name"), Column("o.name")))

    assert answer(on(session, left), on(session, right)).to_bag() == answer(left, right)


def test_a_small_plan_has_no_exchange_and_no_broadcast(spark):
    left, right = on(spark, Bag.of(A, [(1, "a")])), on(spark, Bag.of(B, [(1, 0.5)]))
    result = (left + left - left).join(right, (("o.id", "c.id"),)).consolidated()
    plan = result.frame._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan
    assert "SortMergeJoin" in plan


def test_a_sum_of_many_is_one_flat_union(spark):
    one = on(spark, Bag.of(A, [(1, "a")]))
    total = one
    for _ in range(20):
        total = total + one
    plan = total.frame._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("Union") == 1
    assert dict(total.to_bag()) == {(1, "a"): 21}


def test_consolidation_leaves_no_zero_counts_in_the_frame(spark):
    one, two = on(spark, Bag.of(A, [(1, "a")])), on(spark, Bag.of(A, [(2, "b")]))
    lines = (one - one + two + two).consolidated().frame.collect()
    assert [tuple(line) for line in lines] == [(2, "b", 2)]


def test_empty_means_that_all_counts_are_zero(spark):
    one = on(spark, Bag.of(A, [(1, "a"), (None, None)]))
    assert (one - one).is_empty()
    assert not (one + one).is_empty()
    assert on(spark, Bag.of(A)).is_empty()


def test_a_product_and_a_relation_without_columns(spark):
    one, other = Bag.signed(A, [((1, "a"), 2)]), Bag.signed(B, [((2, 1.0), 3)])
    product = on(spark, one).join(on(spark, other))
    assert product.to_bag() == one.join(other)
    assert product.select(()).to_bag() == one.join(other).select(())
    assert on(spark, Bag.of(A)).select(()).to_bag() == Bag.of(Schema(()))


def test_groups_are_what_bags_give(spark):
    schema = Schema((*A.fields, Field("o.d", decimal_type(38, 10)), Field("o.x", DOUBLE)))
    wide = Decimal("123456789012345678901234.0000000001")
    bag = Bag.signed(
        schema,
        [
            ((INTEGER_MAX, "a", wide, 0.5), 2),
            ((-INTEGER_MAX, "a", None, -0.0), 2),
            ((7, "a", Decimal("0.0000000002"), math.nan), 1),
            ((None, None, None, None), 3),
            ((2**53 + 1, "b", None, 0.25), 1),
            ((2, "b", None, None), 1),
        ],
    )
    columns = {"i": "o.id", "d": "o.d", "x": "o.x"}
    aggregates = (
        Aggregate("n", "count"),
        Aggregate("names", "count", Column("o.name")),
        *(
            Aggregate(f"{function} {short} {distinct}", function, Column(column), distinct)
            for function in ("count", "sum", "avg", "min", "max")
            for short, column in columns.items()
            for distinct in (False, True)
        ),
    )
    keys = (Output("name", Column("o.name")),)
    relation = on(spark, bag)
    assert relation.grouped(keys, aggregates).to_bag() == bag.grouped(keys, aggregates)
    nothing = bag - bag
    assert on(spark, nothing).grouped((), aggregates).to_bag() == nothing.grouped((), aggregates)
    assert relation.grouped((), ()).to_bag() == bag.grouped((), ())


def test_whether_a_sum_overflows_does_not_depend_on_order(spark):
    total = (Aggregate("total", "sum", Column("o.id")),)
    rows = Bag.of(A, [(INTEGER_MAX, "a"), (INTEGER_MAX, "b"), (-INTEGER_MAX, "c")])
    assert dict(on(spark, rows).grouped((), total).to_bag()) == {(INTEGER_MAX,): 1}
    too_much = on(spark, Bag.of(A, [(INTEGER_MAX, "a"), (1, "b")])).grouped((), total)
    with pytest.raises(UsageError) as caught:
        too_much.to_bag()
    assert caught.value.code == "integer-overflow"


def test_grouping_a_negative_count_is_our_defect_also_on_spark(spark):
    negative = on(spark, Bag.signed(A, [((1, "a"), -1)]))
    groups = negative.grouped((), (Aggregate("m", "max", Column("o.id")),))
    with pytest.raises(InvariantViolated, match="negative counts"):
        groups.to_bag()


def test_a_frame_is_checked_and_its_doubles_brought_to_one_zero(spark):
    frame = spark.sql("SELECT 1L AS `c.id`, -0.0D AS `c.x`, 1L AS _count")
    relation = SparkRelation.from_frame(frame, B)
    ((_, zero, _),) = relation.frame.collect()
    assert math.copysign(1, zero) == 1
    narrow = spark.sql("SELECT 1 AS `c.id`, 0.0D AS `c.x`, 1L AS _count")
    with pytest.raises(InvariantViolated, match="does not fit"):
        SparkRelation.from_frame(narrow, B)


def test_a_column_named_like_the_count_is_refused(spark):
    relation = on(spark, Bag.of(A, [(1, "a")]))
    with pytest.raises(UsageError) as caught:
        relation.select((Output(COUNT, Column("o.id")),))
    assert caught.value.code == "reserved-column"


def test_names_that_differ_in_case_alone_stay_apart(spark):
    schema = Schema.of(a=INTEGER, A=INTEGER)
    bag = Bag.of(schema, [(1, 2)])
    outputs = (Output("x", Column("A")), Output("X", Column("a")))
    assert on(spark, bag).select(outputs).to_bag() == bag.select(outputs)


def test_a_failing_query_is_an_error_for_people(spark):
    broken = SparkRelation.from_frame(
        spark.sql(
            "SELECT cast(raise_error('no') as bigint) AS `o.id`, 'a' AS `o.name`, 1L AS _count"
        ),
        A,
    )
    with pytest.raises(InvariantViolated, match="no"):
        broken.to_bag()


def test_arrow_tables_go_there_and_back_without_spark():
    bag = Bag.signed(EVERY_TYPE, zip(ROWS, (2, -3, 1), strict=True))
    table = table_of(EVERY_TYPE, bag)
    assert table.schema.field("instant").type == pa.timestamp("us", tz="UTC")
    assert bag_of(table, EVERY_TYPE) == bag
