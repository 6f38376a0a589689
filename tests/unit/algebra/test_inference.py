"""The types of expressions, by Spark's rules; `tests/laws` compares them with Spark itself."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Like,
    Literal,
    Not,
)
from viewkeeper.algebra.inference import arithmetic_type, common_type, type_of
from viewkeeper.algebra.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    decimal_type,
)
from viewkeeper.errors import UsageError

D = decimal_type
SCHEMA = Schema(
    (
        Field("i", INTEGER),
        Field("x", DOUBLE),
        Field("d", D(10, 2)),
        Field("s", STRING),
        Field("b", BOOLEAN),
        Field("t", TIMESTAMP),
    )
)
INT, X, DEC, S, B, T = (Column(name) for name in "ixdsbt")


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("+", D(11, 2)), ("-", D(11, 2)), ("*", D(16, 4)), ("/", D(18, 13)), ("%", D(5, 2))],
)
def test_decimal_arithmetic_makes_room_for_its_result(operator, expected):
    assert arithmetic_type(operator, D(5, 2), D(10, 2)) == expected


def test_digits_before_the_point_win_when_there_are_too_many():
    assert arithmetic_type("*", D(38, 10), D(38, 10)) == D(38, 6)
    assert arithmetic_type("+", D(38, 10), D(38, 2)) == D(38, 6)
    assert common_type(D(38, 30), INTEGER) == D(38, 18)
    assert common_type(D(38, 36), D(38, 2)) == D(38, 2)


def test_integers_divide_to_a_double_and_mix_to_the_wider_type():
    assert type_of(Arithmetic("/", INT, INT), SCHEMA) == DOUBLE
    assert type_of(Arithmetic("+", INT, X), SCHEMA) == DOUBLE
    assert type_of(Arithmetic("+", INT, DEC), SCHEMA) == D(23, 2)
    assert type_of(Arithmetic("+", Literal(15, INTEGER), DEC), SCHEMA) == D(11, 2)
    assert common_type(INTEGER, D(10, 2)) == D(22, 2)


def test_branches_and_choices_have_the_type_common_to_all():
    assert type_of(Case(((B, INT),), DEC), SCHEMA) == D(22, 2)
    assert type_of(Call("coalesce", (INT, X)), SCHEMA) == DOUBLE
    assert type_of(Call("nullif", (INT, X)), SCHEMA) == INTEGER


@pytest.mark.parametrize(
    "expression",
    [
        Comparison("=", INT, S),
        Comparison("<", S, T),
        Arithmetic("+", INT, S),
        Arithmetic("div", X, INT),
        Arithmetic("div", DEC, INT),
        And((B, INT)),
        Not(S),
        Like(INT, "%"),
        Case(((INT, INT),), None),
        Case(((B, INT),), S),
    ],
)
def test_what_has_no_type_is_refused(expression):
    with pytest.raises(UsageError) as caught:
        type_of(expression, SCHEMA)
    assert caught.value.code == "type-mismatch"


def test_casts_that_databases_disagree_about_are_refused_with_those_they_agree_about():
    with pytest.raises(UsageError) as caught:
        type_of(Cast(S, TIMESTAMP), SCHEMA)
    assert caught.value.code == "unsupported-cast"
    assert "bigint" in caught.value.detail


def test_an_unknown_function_is_refused():
    with pytest.raises(UsageError, match="no function soundex"):
        type_of(Call("soundex", (S,)), SCHEMA)
