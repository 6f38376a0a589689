"""Random expressions and random queries: bags against Spark, and against SQLite where they agree.

One Spark job evaluates all scalar expressions, another all queries.

SQLite shares integers, text and doubles with us. What it sees otherwise is kept out of the queries
it gets: division and remainder (its ``/`` of integers is an integer, and division by zero is NULL),
integers that overflow (it goes on in doubles), NaN (it stores NULL), infinities, case mapping outside
ASCII, LIKE with a backslash, substring at positions below one, greatest and least (NULL if one is).
Its LIKE is told to mind the case. Doubles are small multiples of a quarter, so that sums are exact.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest
import sqlglot
from hypothesis import strategies as st

from laws.expressions import expressions
from laws.queries import QUERY_SCHEMA, TABLES, queries, sql_of, table_rows
from laws.values import FRACTION, TYPES, WIDE, drawn, values
from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.expressions import (
    Arithmetic,
    Call,
    Cast,
    Column,
    Literal,
    Output,
    columns_of,
)
from viewkeeper.algebra.types import (
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_MAX,
    INTEGER_MIN,
    STRING,
    decimal_type,
)
from viewkeeper.errors import UsageError
from viewkeeper.views.spark_sql import expression_sql

ALL_TYPES = Schema(
    (
        Field("case", INTEGER),
        *(Field(f"c.{number}", type) for number, type in enumerate((*TYPES, INTEGER, FRACTION))),
    )
)
EXPRESSIONS_PER_TYPE = 24

spark_test = pytest.mark.spark
one_worker = pytest.mark.xdist_group("spark")


def random_rows(number: int) -> Bag:
    cells = st.tuples(*(values(field.type) for field in ALL_TYPES.fields[1:]))
    return Bag.of(ALL_TYPES, ((n, *row) for n, row in enumerate(drawn(cells, number))))


def random_outputs(data: Bag) -> tuple[Output, ...]:
    """Expressions of every type that are defined on all the rows; the others fail, and rightly."""
    found = []
    for type in TYPES:
        for expression in drawn(expressions(ALL_TYPES, type, 3), EXPRESSIONS_PER_TYPE):
            output = Output(f"x{len(found)}", expression)
            if columns_of(expression) and _is_defined(data, output):
                found.append(output)
    return tuple(found)


def _is_defined(data: Bag, output: Output) -> bool:
    try:
        data.select((output,))
    except UsageError:
        return False
    return True


@spark_test
@one_worker
def test_spark_computes_random_expressions_with_the_type_and_value_that_bags_give(spark):
    from viewkeeper.spark.arrow import spark_schema
    from viewkeeper.spark.relation import SparkRelation

    data = random_rows(40)
    outputs = (Output("case", Column("case")), *random_outputs(data))
    assert len(outputs) > 100, "too few expressions are defined on all rows"
    expected = data.select(outputs)
    computed = SparkRelation.from_bag(spark, data).select(outputs)

    found_types = [field.dataType for field in computed.frame.schema]
    assert found_types == [field.dataType for field in spark_schema(expected.schema)]
    theirs = {row[0]: row for row, _ in computed.to_bag()}
    for row, _ in expected:
        for output, mine, other in zip(outputs, row, theirs[row[0]], strict=True):
            assert mine == other or mine is other, f"{_text(output)} of {_row(data, row[0])}"


def _text(output: Output) -> str:
    return expression_sql(output.expression, str)


def _row(data: Bag, case: int) -> dict:
    return next(dict(zip(data.schema.names, row, strict=True)) for row, _ in data if row[0] == case)


def _with(end: str) -> Call:
    return Call("concat", (Cast(Column("i"), STRING), Literal(end, STRING)))


FAILING = {
    "sum too large": (Arithmetic("+", Column("i"), Literal(1, INTEGER)), INTEGER_MAX),
    "product too large": (Arithmetic("*", Column("i"), Column("i")), INTEGER_MAX),
    "no opposite": (Call("abs", (Column("i"),)), INTEGER_MIN),
    "quotient too large": (Arithmetic("div", Column("i"), Literal(-1, INTEGER)), INTEGER_MIN),
    "integer division by zero": (Arithmetic("div", Literal(1, INTEGER), Column("i")), 0),
    "division by zero": (Arithmetic("/", Literal(1, INTEGER), Column("i")), 0),
    "remainder of zero": (Arithmetic("%", Literal(1, INTEGER), Column("i")), 0),
    "double divided by zero": (Arithmetic("/", Literal(1.0, DOUBLE), Column("i")), 0),
    "decimal too small": (Cast(Column("i"), decimal_type(3, 1)), 100),
    "decimal product too large": (
        Arithmetic("*", Cast(Column("i"), decimal_type(38, 0)), Cast(Column("i"), WIDE)),
        10**18,
    ),
    "integer too small for a decimal": (
        Cast(Arithmetic("*", Cast(Column("i"), decimal_type(20, 0)), Column("i")), INTEGER),
        10**10,
    ),
    "text is no integer": (Cast(Call("concat", (Cast(Column("i"), STRING),) * 2), INTEGER), -5),
    "text is no number": (Cast(_with("x"), decimal_type(9, 2)), 1),
    "number in a text too large": (Cast(_with("e400"), decimal_type(9, 2)), 1),
    "double too large for a decimal": (
        Cast(Cast(Column("i"), DOUBLE), decimal_type(38, 2)),
        10**15,
    ),
    "text is no date": (Cast(_with("-13-01"), DATE), 2020),
    "year that dates do not have": (Cast(_with("-01-01"), DATE), 12020),
    "position past 32 bits": (
        Call("substring", (Literal("abc", STRING), Column("i"))),
        2**31,
    ),
}


@spark_test
@one_worker
@pytest.mark.parametrize("failure", FAILING)
def test_where_a_bag_refuses_a_value_spark_does_with_the_same_code(spark, failure):
    from viewkeeper.spark.relation import SparkRelation

    expression, value = FAILING[failure]
    data = Bag.of(Schema.of(i=INTEGER), [(value,)])
    outputs = (Output("x", expression),)
    with pytest.raises(UsageError) as mine:
        data.select(outputs)
    relation = SparkRelation.from_bag(spark, data).select(outputs)
    with pytest.raises(UsageError) as theirs:
        relation.to_bag()
    assert theirs.value.code == mine.value.code


# -- queries ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known_queries():
    return drawn(queries(), 60)


@pytest.fixture(scope="module")
def tables() -> dict[str, Bag]:
    return {name: Bag.of(schema, drawn(table_rows(schema), 12)) for name, schema in TABLES.items()}


def test_bags_answer_random_queries_as_sqlite_does(known_queries, tables):
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA case_sensitive_like = ON")
    for name, bag in tables.items():
        columns = ", ".join(f'"{column}" {_AFFINITY[t]}' for column, t in _columns(bag.schema))
        database.execute(f'CREATE TABLE "{name}" ({columns})')
        marks = ", ".join("?" * len(bag.schema))
        rows = [row for row, count in bag for _ in range(count)]
        database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
    answers = 0
    for query in known_queries:
        text = sql_of(query)
        found = Counter(map(tuple, database.execute(_sqlite(text)).fetchall()))
        mine = query.on(tables)
        assert Bag.signed(QUERY_SCHEMA, found.items()) == mine, text
        answers += len(mine)
    assert answers > 100, "the queries find next to nothing"


@spark_test
@one_worker
def test_spark_answers_random_queries_as_bags_do(spark, known_queries, tables):
    from viewkeeper.spark.relation import SparkRelation

    loaded = {name: SparkRelation.from_bag(spark, bag) for name, bag in tables.items()}
    some = known_queries[::3]

    def numbered(number, relation):
        tag = Output("query", Literal(number, INTEGER))
        return relation.select((tag, *(Output(n, Column(n)) for n in QUERY_SCHEMA.names)))

    answers = [numbered(n, query.on(loaded)) for n, query in enumerate(some)]
    together = sum(answers[1:], answers[0]).to_bag()
    for number, query in enumerate(some):
        found = Bag(QUERY_SCHEMA, ((row[1:], c) for row, c in together if row[0] == number))
        assert found == query.on(tables), sql_of(query)


_AFFINITY = {INTEGER: "INTEGER", DOUBLE: "REAL", STRING: "TEXT"}


def _columns(schema: Schema):
    return [(field.name, field.type) for field in schema]


def _sqlite(text: str) -> str:
    (statement,) = sqlglot.transpile(text, read="spark", write="sqlite")
    return statement


def test_every_expression_of_the_queries_has_the_type_it_should(known_queries, tables):
    for query in known_queries:
        assert query.on(tables).schema == QUERY_SCHEMA
