"""Random well-typed expressions.

`conditions` can't fail on any row: comparisons, NULL tests, connectives. `expressions` uses all that
the algebra has, and may divide by zero or overflow.
"""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from laws.values import FRACTION, MONEY, WIDE, values
from viewkeeper.algebra import Schema, Type
from viewkeeper.algebra.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
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
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    Kind,
)

Strategy = st.SearchStrategy[Expression]
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def columns(schema: Schema, type: Type) -> list[Expression]:
    return [Column(field.name) for field in schema if field.type == type]


@functools.cache
def atoms(schema: Schema, type: Type) -> Strategy:
    """A column of the type where there is one, or a constant."""
    constants = values(type).map(lambda value: Literal(value, type))
    known = columns(schema, type)
    return (
        st.one_of(st.sampled_from(known), st.sampled_from(known), constants) if known else constants
    )


@functools.cache
def conditions(schema: Schema, depth: int = 2) -> Strategy:
    types = sorted({field.type for field in schema}, key=str)
    plain = st.sampled_from(types).flatmap(functools.partial(_plain_condition, schema))
    if depth == 0:
        return plain
    smaller = conditions(schema, depth - 1)
    return st.one_of(
        plain,
        st.builds(Not, smaller),
        st.builds(And, st.tuples(smaller, smaller)),
        st.builds(Or, st.tuples(smaller, smaller)),
    )


def _plain_condition(schema: Schema, type: Type) -> Strategy:
    side = atoms(schema, type)
    options = st.lists(values(type).map(lambda v: Literal(v, type)), max_size=3).map(tuple)
    return st.one_of(
        st.builds(Comparison, st.sampled_from(COMPARISONS), side, side),
        st.builds(IsNull, side),
        st.builds(InList, side, options),
    )


@functools.cache
def expressions(schema: Schema, type: Type, depth: int) -> Strategy:
    """Any expression of the type, ``depth`` levels deep at most."""
    if depth == 0:
        return atoms(schema, type)
    deeper = functools.partial(expressions, schema, depth=depth - 1)
    same = deeper(type)
    choices = [
        atoms(schema, type),
        st.builds(lambda c, a, b: Case(((c, a),), b), deeper(BOOLEAN), same, same),
        st.builds(lambda c, a: Case(((c, a),), None), deeper(BOOLEAN), same),
        st.builds(lambda name, a, b: Call(name, (a, b)), _CHOOSING, same, same),
        st.builds(lambda a, b: Call("nullif", (a, b)), same, same),
        *_OF_KIND.get(type.kind, _nothing)(schema, depth - 1),
    ]
    # Some constructions give a decimal of another precision: bring it back.
    return st.one_of(choices).map(lambda e: e if type_of(e, schema) == type else Cast(e, type))


_CHOOSING = st.sampled_from(["coalesce", "greatest", "least"])


def _nothing(schema: Schema, depth: int) -> list[Strategy]:
    return []


def _integers(schema: Schema, depth: int) -> list[Strategy]:
    deeper = functools.partial(expressions, schema, depth=depth)
    integer, text = deeper(INTEGER), deeper(STRING)
    day = st.one_of(deeper(DATE), deeper(LOCAL_TIMESTAMP))
    return [
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "%", "div"]), integer, integer),
        st.builds(Negate, integer),
        st.builds(lambda a: Call("abs", (a,)), integer),
        st.builds(lambda a: Call("length", (a,)), text),
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["year", "month", "day"]), day),
        st.builds(lambda a: Cast(a, INTEGER), deeper(MONEY)),
        st.builds(lambda a: Cast(Cast(a, STRING), INTEGER), integer),
    ]


def _doubles(schema: Schema, depth: int) -> list[Strategy]:
    deeper = functools.partial(expressions, schema, depth=depth)
    double = deeper(DOUBLE)
    number = st.one_of(deeper(INTEGER), deeper(MONEY))
    return [
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), double, double),
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), double, number),
        st.builds(lambda a, b: Arithmetic("/", a, b), deeper(INTEGER), deeper(INTEGER)),
        st.builds(Negate, double),
        st.builds(lambda a: Call("abs", (a,)), double),
        st.builds(lambda a: Cast(a, DOUBLE), number),
    ]


def _decimals(schema: Schema, depth: int) -> list[Strategy]:
    deeper = functools.partial(expressions, schema, depth=depth)
    money = deeper(MONEY)
    operand = st.one_of(money, deeper(WIDE), deeper(INTEGER))
    symbol = st.sampled_from(["+", "-", "*", "/", "%"])
    return [
        st.builds(Arithmetic, symbol, money, operand),
        st.builds(Arithmetic, symbol, operand, money),
        st.builds(Negate, money),
        st.builds(lambda a: Call("abs", (a,)), money),
        st.builds(lambda a, b: Call("coalesce", (a, b)), money, operand),
        st.builds(lambda a, b: Call("nullif", (a, b)), money, operand),
        st.builds(lambda a: Cast(a, MONEY), deeper(DOUBLE)),
        st.builds(lambda a: Cast(Cast(a, STRING), MONEY), deeper(INTEGER)),
    ]


def _texts(schema: Schema, depth: int) -> list[Strategy]:
    deeper = functools.partial(expressions, schema, depth=depth)
    text = deeper(STRING)
    place = st.integers(-4, 4).map(lambda n: Literal(n, INTEGER))
    return [
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["lower", "upper", "trim"]), text),
        st.builds(lambda a, b: Call("concat", (a, b)), text, text),
        st.builds(lambda a, p: Call("substring", (a, p)), text, place),
        st.builds(lambda a, p, n: Call("substring", (a, p, n)), text, place, place),
        st.builds(lambda a: Cast(a, STRING), st.one_of(deeper(INTEGER), deeper(DATE))),
    ]


def _booleans(schema: Schema, depth: int) -> list[Strategy]:
    deeper = functools.partial(expressions, schema, depth=depth)
    numbers = st.one_of(*(deeper(type) for type in (INTEGER, DOUBLE, MONEY, WIDE, FRACTION)))
    boolean = deeper(BOOLEAN)
    return [
        conditions(schema, 1),
        st.builds(Comparison, st.sampled_from(COMPARISONS), numbers, numbers),
        st.builds(InList, numbers, st.tuples(numbers, numbers)),
        st.builds(Like, deeper(STRING), _PATTERNS),
        st.builds(IsNull, boolean),
        st.builds(Not, boolean),
        st.builds(And, st.tuples(boolean, boolean, boolean)),
        st.builds(Or, st.tuples(boolean, boolean)),
    ]


def _days(schema: Schema, depth: int) -> list[Strategy]:
    moment = expressions(schema, LOCAL_TIMESTAMP, depth=depth)
    day = expressions(schema, DATE, depth=depth)
    return [
        st.builds(lambda a: Cast(a, DATE), moment),
        st.builds(lambda a: Cast(Cast(a, STRING), DATE), day),
    ]


def _moments(schema: Schema, depth: int) -> list[Strategy]:
    day = expressions(schema, DATE, depth=depth)
    return [st.builds(lambda a: Cast(a, LOCAL_TIMESTAMP), day)]


_PATTERNS = st.lists(
    st.sampled_from(["%", "_", "a", "A", "é", "𝄞", "\\%", "\\_", "\\\\", "'", ".", "\n"]),
    max_size=4,
).map("".join)

_OF_KIND = {
    Kind.INTEGER: _integers,
    Kind.DOUBLE: _doubles,
    Kind.DECIMAL: _decimals,
    Kind.STRING: _texts,
    Kind.BOOLEAN: _booleans,
    Kind.DATE: _days,
    Kind.LOCAL_TIMESTAMP: _moments,
}
