"""GROUP BY on bags: which groups there are, and exact aggregates over counted rows."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.expressions import Aggregate, Column, Output
from viewkeeper.algebra.grouping import aggregate_type
from viewkeeper.algebra.types import DOUBLE, INTEGER, INTEGER_MAX, NAN, STRING, decimal_type
from viewkeeper.errors import InvariantViolated, UsageError

WIDE = decimal_type(38, 2)
SCHEMA = Schema((Field("k", STRING), Field("i", INTEGER), Field("x", DOUBLE), Field("d", WIDE)))
BY_K = (Output("k", Column("k")),)


def grouped(rows, *aggregates, keys=BY_K):
    return Bag.signed(SCHEMA, rows).grouped(keys, aggregates)


def rows_of(bag):
    return dict(bag)


def test_nulls_form_one_group_and_rows_count_as_often_as_they_are_there():
    bag = grouped(
        [((None, 1, None, None), 2), ((None, None, None, None), 1), (("a", 5, None, None), 1)],
        Aggregate("n", "count"),
        Aggregate("present", "count", Column("i")),
        Aggregate("total", "sum", Column("i")),
    )
    assert rows_of(bag) == {(None, 3, 2, 2): 1, ("a", 1, 1, 5): 1}


def test_without_keys_there_is_one_group_even_over_no_rows():
    aggregates = (Aggregate("n", "count"), Aggregate("total", "sum", Column("i")))
    assert rows_of(grouped([], *aggregates, keys=())) == {(0, None): 1}
    assert rows_of(grouped([], *aggregates)) == {}


def test_distinct_ignores_how_often_a_value_is_there():
    rows = [(("a", 2, None, None), 3), (("a", 4, None, None), 1), (("a", 2, 1.0, None), 1)]
    bag = grouped(
        rows,
        Aggregate("n", "count", Column("i"), distinct=True),
        Aggregate("total", "sum", Column("i"), distinct=True),
        Aggregate("average", "avg", Column("i"), distinct=True),
    )
    assert rows_of(bag) == {("a", 2, 6, 3.0): 1}


def test_a_sum_of_integers_overflows_only_by_its_result():
    fits = [(("a", INTEGER_MAX, None, None), 2), (("a", -INTEGER_MAX, None, None), 1)]
    total = Aggregate("total", "sum", Column("i"))
    assert rows_of(grouped(fits, total)) == {("a", INTEGER_MAX): 1}
    with pytest.raises(UsageError) as caught:
        grouped(fits[:1], total)
    assert caught.value.code == "integer-overflow"


def test_sums_of_decimals_keep_all_digits_and_averages_four_more():
    large = Decimal("123456789012345678901234567890.12")
    rows = [(("a", None, None, large), 2), (("a", None, None, Decimal("0.01")), 1)]
    bag = grouped(
        rows, Aggregate("total", "sum", Column("d")), Aggregate("average", "avg", Column("d"))
    )
    ((_, total, average),) = rows_of(bag)
    assert total == Decimal("246913578024691357802469135780.25")
    assert str(average) == "82304526008230452600823045260.083333"


def test_doubles_are_summed_without_regard_to_their_order():
    values = [1e100, 1.0, -1e100]
    for order in (values, values[::-1], [1.0, 1e100, -1e100]):
        rows = [(("a", None, value, None), 1) for value in order]
        assert rows_of(grouped(rows, Aggregate("t", "sum", Column("x")))) == {("a", 1.0): 1}


def test_infinities_of_both_signs_sum_to_nan_and_nan_is_the_maximum():
    rows = [(("a", None, x, None), 1) for x in (math.inf, -math.inf)]
    bag = grouped(rows, Aggregate("t", "sum", Column("x")), Aggregate("m", "max", Column("x")))
    assert rows_of(bag) == {("a", NAN, math.inf): 1}
    rows.append((("a", None, math.nan, None), 1))
    assert rows_of(grouped(rows, Aggregate("m", "max", Column("x")))) == {("a", NAN): 1}


def test_zeros_of_both_signs_and_all_nans_are_one_group_each():
    rows = [((None, None, x, None), 1) for x in (0.0, -0.0, math.nan, float("nan"))]
    bag = grouped(rows, Aggregate("n", "count"), keys=(Output("x", Column("x")),))
    assert rows_of(bag) == {(0.0, 2): 1, (NAN, 2): 1}


def test_a_negative_count_can_not_be_grouped():
    with pytest.raises(InvariantViolated):
        grouped([((None, 1, None, None), -1)], Aggregate("n", "count"))


def test_the_types_of_aggregates():
    schema = Schema((Field("d", decimal_type(10, 2)), Field("i", INTEGER), Field("s", STRING)))

    def found(function, column):
        return aggregate_type(Aggregate("v", function, Column(column)), schema)

    assert found("sum", "d") == decimal_type(20, 2)
    assert found("avg", "d") == decimal_type(14, 6)
    assert found("sum", "i") == INTEGER
    assert found("avg", "i") == DOUBLE
    assert found("max", "s") == STRING
    assert found("count", "s") == INTEGER


@pytest.mark.parametrize(
    ("aggregate", "code"),
    [
        (Aggregate("v", "sum", Column("s")), "type-mismatch"),
        (Aggregate("v", "sum"), "wrong-arguments"),
        (Aggregate("v", "median", Column("i")), "unknown-function"),
    ],
)
def test_an_aggregate_without_a_meaning_is_refused(aggregate, code):
    with pytest.raises(UsageError) as caught:
        aggregate_type(aggregate, Schema.of(s=STRING, i=INTEGER))
    assert caught.value.code == code
