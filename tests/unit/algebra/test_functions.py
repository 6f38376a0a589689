"""The scalar functions on plain values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from viewkeeper.algebra import Schema
from viewkeeper.algebra.casts import cast_value, rounded
from viewkeeper.algebra.evaluation import compiled
from viewkeeper.algebra.expressions import Call, Literal
from viewkeeper.algebra.functions import FUNCTIONS
from viewkeeper.algebra.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    decimal_type,
)
from viewkeeper.errors import UsageError


def call(name, *literals):
    return compiled(Call(name, literals), Schema(()))(())


def text(value):
    return Literal(value, STRING)


def number(value):
    return Literal(value, INTEGER)


@pytest.mark.parametrize(
    ("position", "length", "expected"),
    [
        (1, 2, "ab"),
        (0, 2, "ab"),
        (-2, 5, "ef"),
        (-9, 5, "ab"),
        (-9, 2, ""),
        (5, None, "ef"),
        (9, 1, ""),
        (2, -1, ""),
        (2, 0, ""),
    ],
)
def test_substring_counts_from_one_and_from_the_end(position, length, expected):
    rest = () if length is None else (number(length),)
    assert call("substring", text("abcdef"), number(position), *rest) == expected


def test_substring_takes_no_position_past_32_bits():
    with pytest.raises(UsageError):
        call("substring", text("abc"), number(2**31))


def test_texts_are_measured_in_characters_and_trimmed_of_blanks_only():
    assert call("length", text("a𝄞é")) == 3
    assert call("trim", text("  a\t ")) == "a\t"
    assert call("upper", text("straße")) == "STRASSE"
    assert call("concat", text("a"), text(None)) is None


def test_greatest_and_least_pass_over_null_and_put_nan_last():
    assert call("greatest", number(None), number(2), number(1)) == 2
    assert call("least", Literal(math.nan, DOUBLE), Literal(math.inf, DOUBLE)) == math.inf
    assert call("least", number(None), number(None)) is None


def test_parts_of_a_date():
    day = Literal(dt.date(2024, 2, 29), DATE)
    assert [call(part, day) for part in ("year", "month", "day")] == [2024, 2, 29]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("length", (number(1),)),
        ("substring", (text("a"),)),
        ("substring", (text("a"), number(1), number(1), number(1))),
        ("concat", (number(1),)),
        ("abs", (text("a"),)),
        ("nullif", (number(1),)),
        ("coalesce", ()),
        ("greatest", (number(1),)),
        ("year", (text("2024-01-01"),)),
    ],
)
def test_wrong_arguments_are_refused(name, arguments):
    with pytest.raises(UsageError) as caught:
        call(name, *arguments)
    assert caught.value.code == "wrong-arguments"


@pytest.mark.parametrize("good", [" 5", "+5", "\t5\n", "\x1f5\x7f", "005"])
def test_an_integer_may_have_a_sign_and_blanks_around_it(good):
    assert cast_value(good, STRING, INTEGER) == 5


@pytest.mark.parametrize("bad", ["", "5.0", "1_000", "٥", "\u00a05", "5L", "- 5", "0x5"])
def test_other_texts_are_no_integers(bad):
    with pytest.raises(UsageError) as caught:
        cast_value(bad, STRING, INTEGER)
    assert caught.value.code == "bad-cast"


def test_casts_between_days_and_moments_and_texts():
    day = dt.date(999, 1, 2)
    assert cast_value(day, DATE, STRING) == "0999-01-02"
    assert cast_value(day, DATE, LOCAL_TIMESTAMP) == dt.datetime(999, 1, 2)
    assert cast_value(dt.datetime(999, 1, 2, 23), LOCAL_TIMESTAMP, DATE) == day


def test_a_decimal_becomes_an_integer_by_cutting_off():
    assert cast_value(Decimal("-1.9"), decimal_type(2, 1), INTEGER) == -1


def test_rounding_is_half_away_from_zero_and_refuses_what_does_not_fit():
    assert rounded(Decimal("0.125"), decimal_type(3, 2)) == Decimal("0.13")
    assert rounded(Decimal("-0.125"), decimal_type(3, 2)) == Decimal("-0.13")
    with pytest.raises(UsageError) as caught:
        rounded(Decimal("9.995"), decimal_type(3, 2))
    assert caught.value.code == "decimal-overflow"


def test_functions_are_known_by_their_lower_case_names():
    assert all(name == function.name == name.lower() for name, function in FUNCTIONS.items())
