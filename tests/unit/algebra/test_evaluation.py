"""What expressions mean: three-valued logic, ordering of NaN, exact arithmetic, laziness."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from viewkeeper.algebra import Schema
from viewkeeper.algebra.evaluation import compiled, holds
from viewkeeper.algebra.expressions import (
    FALSE,
    TRUE,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
)
from viewkeeper.algebra.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTEGER_MIN,
    NAN,
    STRING,
    decimal_type,
)
from viewkeeper.errors import UsageError

NOTHING = Schema(())
UNKNOWN = Literal(None, BOOLEAN)


def value(expression):
    return compiled(expression, NOTHING)(())


def integer(number):
    return Literal(number, INTEGER)


def double(number):
    return Literal(number, DOUBLE)


def dec(text, precision=38, scale=2):
    return Literal(Decimal(text), decimal_type(precision, scale))


FAILS = Comparison("=", Arithmetic("div", integer(1), integer(0)), integer(1))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (And((TRUE, UNKNOWN)), None),
        (And((UNKNOWN, FALSE)), False),
        (Or((FALSE, UNKNOWN)), None),
        (Or((UNKNOWN, TRUE)), True),
        (Not(UNKNOWN), None),
        (And(()), True),
        (Or(()), False),
        (IsNull(UNKNOWN), True),
        (Comparison("=", integer(None), integer(1)), None),
        (Comparison("<=>", integer(None), integer(None)), True),
        (Comparison("<=>", integer(None), integer(1)), False),
        (InList(integer(1), (integer(None), integer(1))), True),
        (InList(integer(1), (integer(None), integer(2))), None),
        (InList(integer(1), ()), False),
    ],
)
def test_unknown_is_neither_true_nor_false(expression, expected):
    assert value(expression) is expected


def test_only_what_is_true_holds():
    assert holds(TRUE, NOTHING)(())
    assert not holds(UNKNOWN, NOTHING)(())


def test_nan_equals_itself_and_is_greater_than_infinity():
    assert value(Comparison("=", double(math.nan), double(math.nan))) is True
    assert value(Comparison(">", double(math.nan), double(math.inf))) is True
    assert value(Comparison("<", double(math.nan), double(math.nan))) is False


def test_a_connective_stops_where_it_is_decided():
    assert value(And((FALSE, FAILS))) is False
    assert value(Or((TRUE, FAILS))) is True
    with pytest.raises(UsageError):
        value(And((UNKNOWN, FAILS)))


def test_case_and_coalesce_evaluate_only_what_they_give():
    bad = Arithmetic("div", integer(1), integer(0))
    assert value(Case(((TRUE, integer(1)),), bad)) == 1
    assert value(Call("coalesce", (integer(1), bad))) == 1


def test_integers_and_decimals_compare_exactly_and_doubles_in_doubles():
    large = 2**53
    assert value(Comparison("=", integer(large + 1), double(float(large)))) is True
    assert value(Comparison("=", integer(large + 1), dec(str(large)))) is False


def test_division_of_integers_gives_a_double_and_div_cuts_towards_zero():
    assert value(Arithmetic("/", integer(7), integer(2))) == 3.5
    assert value(Arithmetic("div", integer(-7), integer(2))) == -3
    assert value(Arithmetic("%", integer(-7), integer(2))) == -1
    assert value(Arithmetic("%", double(-7.5), double(2.0))) == -1.5
    assert value(Arithmetic("%", double(math.inf), double(2.0))) is NAN


@pytest.mark.parametrize("operator", ["/", "%", "div"])
def test_division_by_zero_is_refused_unless_the_dividend_is_null(operator):
    with pytest.raises(UsageError) as caught:
        value(Arithmetic(operator, integer(1), integer(0)))
    assert caught.value.code == "division-by-zero"
    assert value(Arithmetic(operator, integer(None), integer(0))) is None


def test_decimals_keep_all_38_digits():
    digits = "123456789012345678901234567890123456.78"
    assert value(Negate(dec(digits))) == Decimal("-" + digits)
    assert value(Call("abs", (dec("-" + digits),))) == Decimal(digits)
    assert value(Arithmetic("-", dec(digits), dec("0.01"))) == Decimal(digits[:-1] + "7")


def test_a_decimal_quotient_is_rounded_half_away_from_zero():
    third = Arithmetic("/", dec("2", 3, 0), dec("3", 3, 0))
    assert value(third) == Decimal("0.666667")
    assert value(Cast(dec("-0.5", 3, 1), decimal_type(3, 0))) == Decimal(-1)


def test_an_integer_constant_beside_a_decimal_counts_its_own_digits_only():
    assert value(Arithmetic("/", dec("1", 5, 2), integer(3))) == Decimal("0.333333")


@pytest.mark.parametrize(
    "expression",
    [
        Arithmetic("+", integer(2**63 - 1), integer(1)),
        Negate(integer(INTEGER_MIN)),
        Call("abs", (integer(INTEGER_MIN),)),
        Arithmetic("div", integer(INTEGER_MIN), integer(-1)),
        Cast(dec("9223372036854775808"), INTEGER),
    ],
)
def test_an_integer_that_does_not_fit_is_refused(expression):
    with pytest.raises(UsageError) as caught:
        value(expression)
    assert caught.value.code == "integer-overflow"


def test_abs_of_a_double_as_large_as_the_smallest_integer_is_fine():
    assert value(Call("abs", (double(float(INTEGER_MIN)),))) == 2.0**63


def test_negative_zero_does_not_come_out():
    assert math.copysign(1, value(Arithmetic("*", double(0.0), double(-1.0)))) == 1
    assert math.copysign(1, value(Negate(double(0.0)))) == 1


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a%", "abc", True),
        ("_", "𝄞", True),
        ("a\\%", "a%", True),
        ("a\\%", "ab", False),
        ("%", "a\nb", True),
        ("A", "a", False),
        (".", "a", False),
        ("%", None, None),
    ],
)
def test_like_knows_percent_underscore_and_backslash(pattern, text, expected):
    assert value(Like(Literal(text, STRING), pattern)) is expected


def test_a_stray_backslash_in_a_pattern_is_refused():
    with pytest.raises(UsageError) as caught:
        value(Like(Literal("a", STRING), "\\a"))
    assert caught.value.code == "bad-pattern"


def test_nullif_has_the_type_of_its_first_argument_and_knows_nan():
    assert value(Call("nullif", (double(math.nan), double(math.nan)))) is None
    assert value(Call("nullif", (integer(1), dec("1.00")))) is None
    assert value(Call("nullif", (integer(1), dec("1.50")))) == 1


def test_a_column_is_read_by_name():
    schema = Schema.of(a=INTEGER, b=INTEGER)
    assert compiled(Arithmetic("-", Column("b"), Column("a")), schema)((1, 5)) == 4
