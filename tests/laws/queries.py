"""Random queries over three small tables, as values: run on any body, or printed as SQL.

Only what SQLite means by the same words as we do; `test_differential` lists what that leaves out.
Every query gives the columns of `QUERY_SCHEMA`, so that many of them fit one Spark job.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from laws.expressions import COMPARISONS, columns
from viewkeeper.algebra import Field, Row, Schema, Type
from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
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
    Output,
)
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING
from viewkeeper.views.spark_sql import aggregate_sql, expression_sql, quoted

QUERY_SCHEMA = Schema.of(i=INTEGER, x=DOUBLE, s=STRING)
TABLES = {
    name: Schema(
        (
            Field(f"{name}.i", INTEGER),
            Field(f"{name}.j", INTEGER),
            Field(f"{name}.x", DOUBLE),
            Field(f"{name}.s", STRING),
        )
    )
    for name in ("a", "b", "c")
}

_VALUES: dict[Type, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-2, 3),
    DOUBLE: st.integers(-6, 6).map(lambda number: number / 4),
    STRING: st.sampled_from(["", "a", "b", "ab", "B", " a ", "a%", "a'b"]),
}


def table_rows(schema: Schema) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.one_of(st.none(), _VALUES[field.type]) for field in schema))


@dataclass(frozen=True)
class Query:
    """One or more SELECTs, all of their rows: joins from left to right, then perhaps groups."""

    selects: tuple[Select, ...]

    def on(self, tables: Mapping[str, Any]) -> Any:
        first, *others = (select.on(tables) for select in self.selects)
        return sum(others, first)


@dataclass(frozen=True)
class Select:
    tables: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]  # one pair per table after the first
    condition: Expression
    groups: tuple[Expression, Aggregate, Aggregate] | None
    outputs: tuple[Output, ...]

    def on(self, tables: Mapping[str, Any]) -> Any:
        relation = tables[self.tables[0]]
        for name, pair in zip(self.tables[1:], self.keys, strict=True):
            relation = relation.join(tables[name], (pair,))
        relation = relation.where(self.condition)
        if self.groups is not None:
            key, *aggregates = self.groups
            relation = relation.grouped((Output("key", key),), tuple(aggregates))
        return relation.select(self.outputs)


def sql_of(query: Query) -> str:
    """The query as Spark SQL."""
    return " UNION ALL ".join(map(_select_sql, query.selects))


def _select_sql(select: Select) -> str:
    sources = quoted(select.tables[0])
    for name, (left, right) in zip(select.tables[1:], select.keys, strict=True):
        sources += f" JOIN {quoted(name)} ON {quoted(left)} = {quoted(right)}"
    rows = f"FROM {sources} WHERE {expression_sql(select.condition, quoted)}"
    if select.groups is not None:
        key, *aggregates = select.groups
        key_sql = expression_sql(key, quoted)
        values = ", ".join(f"{aggregate_sql(a, quoted)} AS {quoted(a.name)}" for a in aggregates)
        rows = f"FROM (SELECT {key_sql} AS `key`, {values} {rows} GROUP BY {key_sql})"
    return f"SELECT {_outputs_sql(select.outputs)} {rows}"


def _outputs_sql(outputs: tuple[Output, ...]) -> str:
    return ", ".join(f"{expression_sql(o.expression, quoted)} AS {quoted(o.name)}" for o in outputs)


# -- drawing them ----------------------------------------------------------------------------------


@st.composite
def queries(draw: st.DrawFn) -> Query:
    return Query(tuple(draw(_selects()) for _ in range(draw(st.integers(1, 2)))))


@st.composite
def _selects(draw: st.DrawFn) -> Select:
    names = draw(st.sampled_from([("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")]))
    schema = TABLES[names[0]]
    keys = []
    for name in names[1:]:
        column = draw(st.sampled_from(["i", "j", "x", "s"]))
        keys.append(
            (f"{draw(st.sampled_from(names[: names.index(name)]))}.{column}", f"{name}.{column}")
        )
        schema = schema.joined(TABLES[name])
    condition = draw(st.one_of(st.just(TRUE), _condition(schema, 2)))
    if draw(st.booleans()):
        groups = (draw(_value(schema, STRING, 1)), *_aggregates(draw, schema))
        outputs = tuple(
            Output(name, Column(column)) for name, column in (("i", "n"), ("x", "v"), ("s", "key"))
        )
        return Select(names, tuple(keys), condition, groups, outputs)
    outputs = tuple(Output(f.name, draw(_value(schema, f.type, 2))) for f in QUERY_SCHEMA)
    return Select(names, tuple(keys), condition, None, outputs)


def _aggregates(draw: st.DrawFn, schema: Schema) -> tuple[Aggregate, Aggregate]:
    integer, double = draw(_value(schema, INTEGER, 1)), draw(_value(schema, DOUBLE, 1))
    whole = draw(
        st.sampled_from(
            [
                Aggregate("n", "count"),
                Aggregate("n", "count", integer),
                Aggregate("n", "count", integer, distinct=True),
                Aggregate("n", "sum", integer),
                Aggregate("n", "max", integer),
            ]
        )
    )
    broken = draw(
        st.sampled_from(
            [
                Aggregate("v", "sum", double),
                Aggregate("v", "avg", integer),
                Aggregate("v", "min", double),
                Aggregate("v", "sum", double, distinct=True),
            ]
        )
    )
    return whole, broken


@functools.cache
def _value(schema: Schema, type: Type, depth: int) -> st.SearchStrategy[Expression]:
    constant = _VALUES[type].map(lambda value: Literal(value, type))
    column = st.sampled_from(columns(schema, type))
    if depth == 0:
        return st.one_of(column, column, constant)
    same = _value(schema, type, depth - 1)
    when = _condition(schema, depth - 1)
    return st.one_of(
        column,
        st.builds(lambda c, a, b: Case(((c, a),), b), when, same, same),
        st.builds(lambda a, b: Call("coalesce", (a, b)), same, same),
        st.builds(lambda a, b: Call("nullif", (a, b)), same, same),
        *_SPECIFIC[type](schema, depth - 1),
    )


def _integers(schema: Schema, depth: int) -> list[st.SearchStrategy[Expression]]:
    same, text = _value(schema, INTEGER, depth), _value(schema, STRING, depth)
    return [
        st.builds(Arithmetic, st.sampled_from("+-*"), same, same),
        st.builds(Negate, same),
        st.builds(lambda a: Call("abs", (a,)), same),
        st.builds(lambda a: Call("length", (a,)), text),
    ]


def _doubles(schema: Schema, depth: int) -> list[st.SearchStrategy[Expression]]:
    same, whole = _value(schema, DOUBLE, depth), _value(schema, INTEGER, depth)
    return [
        st.builds(Arithmetic, st.sampled_from("+-*"), same, st.one_of(same, whole)),
        st.builds(lambda a: Cast(a, DOUBLE), whole),
    ]


def _texts(schema: Schema, depth: int) -> list[st.SearchStrategy[Expression]]:
    same = _value(schema, STRING, depth)
    place = st.integers(1, 3).map(lambda number: Literal(number, INTEGER))
    return [
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["lower", "upper", "trim"]), same),
        st.builds(lambda a, p, n: Call("substring", (a, p, n)), same, place, place),
        st.builds(lambda a: Cast(a, STRING), _value(schema, INTEGER, depth)),
    ]


_SPECIFIC = {INTEGER: _integers, DOUBLE: _doubles, STRING: _texts}


@functools.cache
def _condition(schema: Schema, depth: int) -> st.SearchStrategy[Expression]:
    sides = [_value(schema, type, 0) for type in (INTEGER, DOUBLE, STRING)]
    plain = st.one_of(
        *(st.builds(Comparison, st.sampled_from(COMPARISONS), side, side) for side in sides),
        st.builds(Comparison, st.sampled_from(COMPARISONS), sides[0], sides[1]),
        st.builds(IsNull, st.one_of(sides)),
        st.builds(InList, sides[0], st.tuples(sides[0], sides[0])),
        st.builds(Like, sides[2], st.sampled_from(["%", "a%", "_", "%b%", "%'%", ""])),
    )
    if depth == 0:
        return plain
    smaller = _condition(schema, depth - 1)
    return st.one_of(
        plain,
        st.builds(Not, smaller),
        st.builds(And, st.tuples(smaller, smaller)),
        st.builds(Or, st.tuples(smaller, smaller)),
    )
