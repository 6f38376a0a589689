"""`SparkRelation`: the algebra on Spark, a lazy DataFrame with a signed count per row.

Nothing runs until `is_empty` or `to_bag` asks; each of them is one action. ⊕ does not even make a
plan: a relation is a list of *parts*, DataFrames whose rows together are the relation, and they are
united once, when some other operation needs one frame. So a sum of a hundred changes is one flat
UNION and not a tower of them.

The same row may appear in several lines with counts that cancel. `consolidated` alone brings them
together and drops zeros. Until then Spark also evaluates expressions on rows whose count is zero;
where such a row breaks an expression (a division by zero, say), Spark fails and `Bag` would not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
    Column,
    Comparison,
    Expression,
    Output,
    conjunction,
)
from viewkeeper.algebra.grouping import aggregate_fields
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.relation import JoinKeys, Relation
from viewkeeper.algebra.types import DOUBLE, Field, Schema
from viewkeeper.errors import UsageError, invariant
from viewkeeper.spark.arrow import COUNT, arrow_schema, bag_of, spark_schema, table_of
from viewkeeper.spark.expressions import predicate_sql, value_sql
from viewkeeper.spark.failures import translated
from viewkeeper.spark.grouping import group_frame
from viewkeeper.views.spark_sql import quoted

_COUNT = quoted(COUNT)
_OTHER_COUNT = f"{COUNT} of the other side"


class SparkRelation(Relation):
    """A signed bag of rows on Spark. Two of them can meet only on the same session."""

    __slots__ = ("_compact", "_parts", "_single", "schema")

    def __init__(
        self, parts: tuple[DataFrame, ...], schema: Schema, *, single: bool, compact: bool
    ) -> None:
        """Use `from_bag`, `from_arrow` or `from_frame`.

        ``single``: the session keeps small relations in one partition (see `spark.session`).
        ``compact``: every row appears in one line, with a count that is not zero.
        """
        self.schema = schema
        self._parts = parts
        self._single = single
        self._compact = compact

    # -- in and out -------------------------------------------------------------------------------

    @classmethod
    def from_bag(cls, session: SparkSession, bag: Bag) -> SparkRelation:
        """The rows of ``bag``. They travel inside the plan: meant for up to some 10,000 of them."""
        return cls.from_arrow(session, table_of(bag.schema, bag), bag.schema, compact=True)

    @classmethod
    def from_arrow(
        cls, session: SparkSession, table: pa.Table, schema: Schema, *, compact: bool = False
    ) -> SparkRelation:
        """The lines of a table with the columns of ``schema``, then the count, in canonical form."""
        _refuse_reserved(schema)
        invariant(
            table.schema.types == arrow_schema(schema).types,
            "a table does not fit the schema of its relation",
            detail=f"{table.schema.types} for {schema}",
        )
        frame = session.createDataFrame(table, schema=spark_schema(schema))
        single = _keeps_one_partition(session)
        return cls(
            (frame.coalesce(1) if single else frame,), schema, single=single, compact=compact
        )

    @classmethod
    def from_frame(cls, frame: DataFrame, schema: Schema) -> SparkRelation:
        """A frame with the columns of ``schema``, then the count. Doubles are brought to one zero."""
        _refuse_reserved(schema)
        expected, found = spark_schema(schema), frame.schema
        invariant(
            [(f.name, f.dataType) for f in expected] == [(f.name, f.dataType) for f in found],
            "a frame does not fit the schema of its relation",
            detail=f"expected {expected.simpleString()}, found {found.simpleString()}",
        )
        if any(field.type == DOUBLE for field in schema):
            frame = frame.selectExpr(*map(_canonical_sql, schema), _COUNT)
        single = _keeps_one_partition(frame.sparkSession)
        return cls((frame.coalesce(1) if single else frame,), schema, single=single, compact=False)

    @property
    def frame(self) -> DataFrame:
        """All lines in one frame: the relation's columns, then the count (`spark.arrow.COUNT`)."""
        if len(self._parts) > 1:
            united = reduce(DataFrame.unionAll, self._parts)
            self._parts = (united.coalesce(1) if self._single else united,)
        return self._parts[0]

    def is_empty(self) -> bool:
        with translated():
            return not self.consolidated().frame.select(_COUNT).take(1)

    def like(self, bag: Bag) -> SparkRelation:
        return SparkRelation.from_bag(self.frame.sparkSession, bag)

    def to_bag(self) -> Bag:
        with translated():
            table = self.consolidated().frame.toArrow()
        return bag_of(table, self.schema)

    # -- the algebra ------------------------------------------------------------------------------

    def __add__(self, other: SparkRelation) -> SparkRelation:
        invariant(
            self.schema == other.schema,
            "only relations with the same schema can be added",
            detail=f"{self.schema} and {other.schema}",
        )
        parts = self._parts + other._parts
        return SparkRelation(parts, self.schema, single=self._single, compact=False)

    def __neg__(self) -> SparkRelation:
        frame = self.frame.selectExpr(*self._columns, f"-{_COUNT} AS {_COUNT}")
        return self._with(frame, self.schema, compact=self._compact)

    def join(
        self, other: SparkRelation, on: JoinKeys = (), where: Expression = TRUE
    ) -> SparkRelation:
        schema = self.schema.joined(other.schema)
        equal = tuple(Comparison("=", Column(left), Column(right)) for left, right in on)
        right = other.frame.toDF(*other.schema.names, _OTHER_COUNT)
        condition = conjunction(equal if where == TRUE else (*equal, where))
        if condition == TRUE:
            pairs = self.frame.crossJoin(right)
        else:
            pairs = self.frame.join(right, F.expr(predicate_sql(condition, schema)), "inner")
        columns = self._columns + other._columns
        frame = pairs.selectExpr(*columns, f"{_COUNT} * {quoted(_OTHER_COUNT)} AS {_COUNT}")
        if self._single and not on:
            # A product loses what Spark knows about its one partition.
            frame = frame.coalesce(1)
        return self._with(frame, schema, compact=self._compact and other._compact)

    def where(self, predicate: Expression) -> SparkRelation:
        frame = self.frame.where(predicate_sql(predicate, self.schema))
        return self._with(frame, self.schema, compact=self._compact)

    def select(self, outputs: tuple[Output, ...]) -> SparkRelation:
        fields = tuple(Field(o.name, type_of(o.expression, self.schema)) for o in outputs)
        schema = Schema(fields)
        _refuse_reserved(schema)
        columns = (
            f"{value_sql(output.expression, self.schema)} AS {quoted(output.name)}"
            for output in outputs
        )
        return self._with(self.frame.selectExpr(*columns, _COUNT), schema, compact=False)

    def renamed(self, names: Iterable[str]) -> SparkRelation:
        schema = self.schema.renamed(names)
        _refuse_reserved(schema)
        parts = tuple(part.toDF(*schema.names, COUNT) for part in self._parts)
        return SparkRelation(parts, schema, single=self._single, compact=self._compact)

    def copied(self, column: str) -> SparkRelation:
        copies = f"{_COUNT} * coalesce({quoted(column)}, 0L) AS {_COUNT}"
        return self._with(self.frame.selectExpr(*self._columns, copies), self.schema, compact=False)

    def consolidated(self) -> SparkRelation:
        if self._compact:
            return self
        summed = self.frame.groupBy(*self._columns).agg(F.expr(f"sum({_COUNT}) AS {_COUNT}"))
        # Also drops the NULL that a sum over no columns gives when there are no rows.
        return self._with(summed.where(f"{_COUNT} <> 0"), self.schema, compact=True)

    def support(self) -> SparkRelation:
        frame = self.consolidated().frame.selectExpr(*self._columns, f"1L AS {_COUNT}")
        return self._with(frame, self.schema, compact=True)

    def positive(self) -> SparkRelation:
        frame = self.consolidated().frame.where(f"{_COUNT} > 0")
        return self._with(frame, self.schema, compact=True)

    def grouped(self, keys: tuple[Output, ...], aggregates: tuple[Aggregate, ...]) -> SparkRelation:
        key_fields = tuple(Field(k.name, type_of(k.expression, self.schema)) for k in keys)
        schema = Schema(key_fields + aggregate_fields(aggregates, self.schema))
        _refuse_reserved(schema)
        frame = group_frame(self.consolidated().frame, self.schema, keys, aggregates)
        return self._with(frame, schema, compact=True)

    # -- inside -----------------------------------------------------------------------------------

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(map(quoted, self.schema.names))

    def _with(self, frame: DataFrame, schema: Schema, *, compact: bool) -> SparkRelation:
        return SparkRelation((frame,), schema, single=self._single, compact=compact)


def _keeps_one_partition(session: SparkSession) -> bool:
    return session.conf.get("spark.sql.shuffle.partitions") == "1"


def _canonical_sql(field: Field) -> str:
    name = quoted(field.name)
    return f"{name} + 0.0D AS {name}" if field.type == DOUBLE else name


def _refuse_reserved(schema: Schema) -> None:
    if COUNT in schema:
        raise UsageError(
            "reserved-column",
            f"a column can't be named {COUNT}",
            detail="Viewkeeper keeps the signed count of each row under that name",
            hint="give it another name with AS",
        )
