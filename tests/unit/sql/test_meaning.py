"""A definition means what Spark means by the text it was read from, on the same data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlglot import exp

from unit.sql.corpus import CORPUS, catalog
from unit.sql.random_rows import contents
from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Kind, Schema, Type, Value
from viewkeeper.sql.parser import parse_view
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.syntax import parsed
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName
from viewkeeper.views.printing import view_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCEPTED = sorted((CORPUS / "accepted").glob("*.sql"))
BAGS = {r.name: contents(r.schema, str(r.name)) for r in catalog().relations}

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def mangled(name: RelationName) -> str:
    return "_".join(part for part in (name.source, *name.relation.split("."))).replace(" ", "_")


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """Every relation of the corpus as a temporary view, in a session that ignores case as users do."""
    spark.conf.set("spark.sql.caseSensitive", "false")
    for name, bag in BAGS.items():
        rows = [row for row, count in bag for _ in range(count)]
        spark.createDataFrame(rows, _spark_schema(bag.schema)).createOrReplaceTempView(
            mangled(name)
        )
    yield
    for name in BAGS:
        spark.catalog.dropTempView(mangled(name))
    spark.conf.set("spark.sql.caseSensitive", "true")


def _spark_schema(schema: Schema) -> Any:
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    return StructType([StructField(f.name, _parse_datatype_string(str(f.type))) for f in schema])


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
@pytest.mark.usefixtures("tables")
def test_a_view_means_what_spark_means_by_its_text(spark: SparkSession, path: Path) -> None:
    text = path.read_bytes().decode()
    definition = parse_view(path.stem, text, catalog())
    ours = evaluated(definition, BAGS.__getitem__)
    frame = spark.sql(with_tables_renamed(text, mangled))
    assert rows_of(frame, ours.schema) == ours


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
@pytest.mark.usefixtures("tables")
def test_spark_gives_the_printed_text_the_types_and_rows_of_the_definition(
    spark: SparkSession, path: Path
) -> None:
    definition = parse_view(path.stem, path.read_bytes().decode(), catalog())
    frame = spark.sql(with_tables_renamed(view_sql(definition), mangled))
    found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    assert found == [(field.name, str(field.type)) for field in definition.schema]
    if definition.steps:  # the parser reads what is printed without steps back to the same
        assert rows_of(frame, definition.schema) == evaluated(definition, BAGS.__getitem__)


def rows_of(frame: Any, schema: Schema) -> Bag:
    rows = [map(_plain, row, (f.type for f in schema)) for row in frame.collect()]
    return Bag.of(schema, rows)


def _plain(value: Any, type: Type) -> Value:
    """A value as Spark's collect gives it in the form that bags take."""
    match value:
        case bytearray():
            return bytes(value)
        case dt.datetime() if type.kind is Kind.TIMESTAMP:
            return value.astimezone(dt.UTC)  # collect gives the local time of this process
        case _:
            return value  # type: ignore[no-any-return]


def with_tables_renamed(text: str, name: Callable[[RelationName], str]) -> str:
    """The text with nothing but the names of its relations replaced."""
    sql = SqlText("v", text.removeprefix("\ufeff"))
    replacements: list[tuple[int, int, str]] = []
    for node in parsed(sql).walk():
        if isinstance(node, exp.Table) and node.db:
            parts = [
                part for part in (node.args.get("catalog"), node.args["db"], node.this) if part
            ]
            written = tuple(part.name for part in parts)
            relation = _relation(written)
            alias = "" if node.alias else f" AS {relation.relation.split('.')[-1]}"
            replacements.append((*_span(parts[0], parts[-1]), name(relation) + alias))
        if isinstance(node, exp.Column) and node.args.get("db"):
            # A name qualified by source or schema: the table alone is enough.
            first = node.args.get("catalog") or node.args["db"]
            replacements.append((*_span(first, node.args["table"]), node.table))
    result = sql.text
    for start, end, replacement in sorted(replacements, reverse=True):
        result = result[:start] + replacement + result[end:]
    return result.strip().rstrip("; \r\n")


def _span(first: exp.Expr, last: exp.Expr) -> tuple[int, int]:
    return first.meta["start"], last.meta["end"] + 1


def _relation(written: tuple[str, ...]) -> RelationName:
    folded = ".".join(written).lower()
    return next(name for name in BAGS if str(name).lower() == folded)
