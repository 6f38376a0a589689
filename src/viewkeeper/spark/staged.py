"""`StagedRelation`: rows that are here, in Arrow, on their way to Spark.

Changes and answers arrive in this process. Which keys to ask for next follows from them without a
join, and a Spark job for that would cost more than the work itself. So a staged relation renames,
filters, projects, adds and removes duplicates in Arrow, and becomes a DataFrame at the first operation
that is Spark's business: a join, an expression, a group.

Small tables travel to Spark inside the plan; large ones through an uncompressed Parquet file, which
Spark reads three times faster.
"""

# Operations that stay in Arrow give a StagedRelation, the others a SparkRelation: not one `Self`.
# mypy: disable-error-code="override"
from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.evaluation import holds
from viewkeeper.algebra.expressions import (
    TRUE,
    Arithmetic,
    Column,
    Expression,
    IsNull,
    Literal,
    Not,
    Output,
    conjuncts,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import INTEGER, Field, Kind, Schema
from viewkeeper.arrow import arrow_type
from viewkeeper.spark.arrow import (
    COUNT,
    arrow_schema,
    bag_of,
    signed_rows,
    spark_schema,
    table_of,
)
from viewkeeper.spark.relation import SparkRelation

IN_PLAN_ROWS_MAX = 2_000


@dataclass(frozen=True)
class Staging:
    """Where staged tables go: the session that will read them, and a folder for large ones.

    On a cluster the folder must be one that executors see. Its files may be deleted when the batch
    that staged them is over.
    """

    session: SparkSession
    folder: Path

    def relation(self, table: pa.Table, schema: Schema) -> StagedRelation:
        """The lines of a table with the columns of ``schema``, then the count."""
        return StagedRelation(self, table, schema)

    def of_bag(self, bag: Bag) -> StagedRelation:
        return StagedRelation(self, table_of(bag.schema, bag), bag.schema)

    def frame(self, table: pa.Table, schema: Schema) -> DataFrame:
        if table.num_rows <= IN_PLAN_ROWS_MAX:
            return self.session.createDataFrame(table, schema=spark_schema(schema))
        path = self.folder / f"{uuid.uuid4().hex}.parquet"
        positional = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
        pq.write_table(positional, path, compression="none", use_dictionary=False)
        read = self.session.read.parquet(str(path))
        return read.toDF(*schema.names, COUNT)


class StagedRelation(SparkRelation):
    """A signed bag of rows in Arrow that is a `SparkRelation` as soon as somebody needs one."""

    __slots__ = ("_frame", "_staging", "table")

    def __init__(self, staging: Staging, table: pa.Table, schema: Schema) -> None:
        """``table`` has the columns of ``schema`` and the count, by position, in canonical form."""
        self.schema = schema
        self.table = pa.Table.from_arrays(table.columns, schema=arrow_schema(schema))
        self._staging = staging
        self._frame: DataFrame | None = None

    # -- as Spark ---------------------------------------------------------------------------------

    @property
    def frame(self) -> DataFrame:
        if self._frame is None:
            frame = self._staging.frame(self.table, self.schema)
            self._frame = frame.coalesce(1) if self._single else frame
        return self._frame

    @property
    def _parts(self) -> tuple[DataFrame, ...]:
        return (self.frame,)

    @property
    def _single(self) -> bool:
        return self._staging.session.conf.get("spark.sql.shuffle.partitions") == "1"

    @property
    def _compact(self) -> bool:
        return False

    # -- in Arrow ---------------------------------------------------------------------------------

    def __add__(self, other: SparkRelation) -> SparkRelation:
        if isinstance(other, StagedRelation) and other.schema == self.schema:
            return self._like(pa.concat_tables([self.table, other.table]), self.schema)
        return super().__add__(other)

    def __neg__(self) -> SparkRelation:
        negated = pc.negate(self.table.column(COUNT))
        position = self.table.num_columns - 1
        return self._like(self.table.set_column(position, COUNT, negated), self.schema)

    def renamed(self, names: Iterable[str]) -> SparkRelation:
        return self._like(self.table, self.schema.renamed(names))

    def select(self, outputs: tuple[Output, ...]) -> SparkRelation:
        if not all(_is_plain(output.expression) for output in outputs):
            return super().select(outputs)
        fields = tuple(Field(o.name, type_of(o.expression, self.schema)) for o in outputs)
        columns = [self._column(output.expression) for output in outputs]
        columns.append(self.table.column(COUNT))
        schema = Schema(fields)
        return self._like(pa.Table.from_arrays(columns, schema=arrow_schema(schema)), schema)

    def _column(self, expression: Expression) -> pa.ChunkedArray | pa.Array:
        match expression:
            case Column(name):
                return self.table.column(self.schema.position(name))
            case Literal(value, type):
                return pa.repeat(pa.scalar(value, arrow_type(type)), self.table.num_rows)
            case Arithmetic("+", left, right):
                return pc.add_checked(self._column(left), self._column(right))
        raise TypeError(expression)  # `_is_plain` admits no others

    def where(self, predicate: Expression) -> SparkRelation:
        if predicate == TRUE:
            return self
        table = self.table
        rest = []
        for part in conjuncts(predicate):
            match part:
                case Not(IsNull(Column(name))):
                    table = table.filter(pc.is_valid(table.column(self.schema.position(name))))
                case _:
                    rest.append(part)
        for part in rest:
            table = self._filtered(table, part)
        return self._like(table, self.schema)

    def _filtered(self, table: pa.Table, predicate: Expression) -> pa.Table:
        """By the reference's own evaluator: exact, and quick enough for the rows of a batch."""
        keep = holds(predicate, self.schema)
        mask = [keep(row) for row, _ in signed_rows(table, self.schema)]
        return table.filter(pa.array(mask, pa.bool_()))

    def consolidated(self) -> SparkRelation:
        if any(field.type.kind is Kind.DOUBLE for field in self.schema) or not len(self.schema):
            return super().consolidated()
        keys = list(self.schema.names)
        summed = self.table.group_by(keys).aggregate([(COUNT, "sum")])
        table = summed.select([*keys, f"{COUNT}_sum"])
        return self._like(table.filter(pc.not_equal(table.column(len(keys)), 0)), self.schema)

    def support(self) -> SparkRelation:
        consolidated = self.consolidated()
        if not isinstance(consolidated, StagedRelation):
            return super().support()
        table = consolidated.table
        ones = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        return self._like(table.set_column(table.num_columns - 1, COUNT, ones), self.schema)

    def is_empty(self) -> bool:
        consolidated = self.consolidated()
        if not isinstance(consolidated, StagedRelation):
            return super().is_empty()
        return bool(consolidated.table.num_rows == 0)

    def like(self, bag: Bag) -> SparkRelation:
        return self._staging.of_bag(bag)

    def to_bag(self) -> Bag:
        return bag_of(self.table, self.schema)

    def _like(self, table: pa.Table, schema: Schema) -> StagedRelation:
        return StagedRelation(self._staging, table, schema)


def _is_plain(expression: Expression) -> bool:
    """Whether Arrow computes it exactly as Spark would: columns, constants, integer sums."""
    match expression:
        case Column() | Literal():
            return True
        case Arithmetic("+", Column(), Literal(_, type)):
            return type == INTEGER
        case _:
            return False
