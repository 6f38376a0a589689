"""CAST on plain values; `laws/test_casts_on_spark.py` holds the same against Spark."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.casts import cast_value, require_castable
from viewkeeper.algebra.types import (
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    canonical,
    decimal_type,
)
from viewkeeper.errors import UsageError

MONEY = decimal_type(18, 2)


def refused(value, source, target) -> str:
    with pytest.raises(UsageError) as caught:
        cast_value(value, source, target)
    return caught.value.code


@pytest.mark.parametrize(
    ("double", "expected"),
    [(1.005, "1.01"), (-1.005, "-1.01"), (0.004, "0.00"), (-0.0, "0.00"), (5e-324, "0.00")],
)
def test_a_double_becomes_the_decimal_of_its_shortest_digits(double, expected):
    found = cast_value(double, DOUBLE, MONEY)
    assert found == Decimal(expected)
    assert str(found) == expected


@pytest.mark.parametrize("double", [math.nan, math.inf, -math.inf])
def test_a_double_that_is_no_number_becomes_null_as_a_decimal(double):
    assert cast_value(double, DOUBLE, MONEY) is None


def test_a_double_whose_last_digits_are_not_its_own_is_an_overflow():
    assert cast_value(999_999_999_999_999.0, DOUBLE, decimal_type(38, 0)) == 999_999_999_999_999
    assert refused(1e15, DOUBLE, decimal_type(38, 0)) == "decimal-overflow"
    assert refused(-1e300, DOUBLE, decimal_type(38, 0)) == "decimal-overflow"
    # It may round up to that.
    assert refused(999_999_999_999_999.9, DOUBLE, decimal_type(38, 0)) == "decimal-overflow"
    assert refused(1000.0, DOUBLE, decimal_type(5, 2)) == "decimal-overflow"


def test_more_digits_after_the_point_than_javas_agree_on_are_refused_when_a_view_is_defined():
    require_castable(DOUBLE, decimal_type(38, 22))
    with pytest.raises(UsageError) as caught:
        require_castable(DOUBLE, decimal_type(38, 23))
    assert caught.value.code == "unsupported-cast"
    assert "22" in caught.value.hint
    with pytest.raises(UsageError):
        require_castable(STRING, TIMESTAMP)


@given(st.decimals(-(10**12), 10**12, places=2))
def test_money_in_doubles_comes_back_as_it_was(amount):
    assert cast_value(float(amount), DOUBLE, MONEY) == amount


@given(st.floats(-(10**15) + 1, 10**15 - 1), st.integers(0, 22))
def test_a_cast_double_is_the_canonical_decimal_next_to_it(double, scale):
    target = decimal_type(38, scale)
    found = cast_value(double, DOUBLE, target)
    assert canonical(found, target) == found
    assert abs(found - Decimal(repr(double))) <= Decimal(1).scaleb(-scale) / 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.005", "1.01"),
        (" \t-2.5\n", "-2.50"),
        ("+.5", "0.50"),
        ("5.", "5.00"),
        ("1e3", "1000.00"),
        ("1.5E-1", "0.15"),
        ("1e-400", "0.00"),
        ("1e-2147483647", "0.00"),
        ("0e2147483647", "0.00"),
        ("-0", "0.00"),
        ("0." + "0" * 50 + "1", "0.00"),
    ],
)
def test_text_that_is_a_number_becomes_a_decimal(text, expected):
    assert str(cast_value(text, STRING, MONEY)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "-", ".", "abc", "1_0", "1e", "0x10", "NaN", "Infinity", "1,5", "1 2", "1e99999999999"],
)
def test_text_that_is_no_number_is_refused(text):
    assert refused(text, STRING, MONEY) == "bad-cast"


@pytest.mark.parametrize("text", ["1e400", "1e38", "12345678901234567", "1e2147483647"])
def test_a_number_in_a_text_that_has_no_room_is_an_overflow(text):
    assert refused(text, STRING, MONEY) == "decimal-overflow"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020", dt.date(2020, 1, 1)),
        ("2020-3", dt.date(2020, 3, 1)),
        (" 2020-03-4\n", dt.date(2020, 3, 4)),
        ("2020-03-04T10:00", dt.date(2020, 3, 4)),
        ("2020-03-04 anything", dt.date(2020, 3, 4)),
        ("+2020-01-01", dt.date(2020, 1, 1)),
        ("0002020-01-01", dt.date(2020, 1, 1)),
    ],
)
def test_text_that_is_a_day_becomes_a_date(text, expected):
    assert cast_value(text, STRING, DATE) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2020-13-01",
        "2020-02-30",
        "20200102",
        "2020-1-",
        "2020-01-02x",
        "2020T",
        "020-01-01",
        "0000-01-01",
        "-2020-01-01",
        "12020-01-01",
        "2020/01/02",
        "2020-001-01",
    ],
)
def test_text_that_is_no_day_of_ours_is_refused(text):
    assert refused(text, STRING, DATE) == "bad-cast"
