"""`StagedRelation`: rows that are here, on their way to Spark.

Changes and answers arrive in this process, and a Spark job costs a tenth of a second even if it has
nothing to do. So a small staged relation is a `Bag`, and stays one through every operation: a batch of
a few hundred rows is maintained without Spark. A larger one renames, filters, projects, adds, removes
duplicates and joins by equal keys in Arrow, and becomes a DataFrame at the first operation that is
Spark's business: an expression, a group, or a join that is large or of another kind.

Tables of middle size travel to Spark inside the plan; large ones through an uncompressed Parquet file,
which Spark reads three times faster.
"""

# Operations that stay in Arrow give a StagedRelation, the others a SparkRelation: not one `Self`.
# mypy: disable-error-code="override"
from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
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
    Aggregate,
    Arithmetic,
    Column,
    Expression,
    Literal,
    Output,
    conjuncts,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.relation import JoinKeys
from viewkeeper.algebra.types import INTEGER, Field, Kind, Schema
from viewkeeper.arrow import arrow_type
from viewkeeper.coding import decoded, is_coded, line_bytes, plain, taken, together, with_codes_kept
from viewkeeper.errors import invariant
from viewkeeper.spark.arrow import (
    COUNT,
    arrow_schema,
    bag_of,
    signed_rows,
    spark_schema,
    table_of,
)
from viewkeeper.spark.failures import translated
from viewkeeper.spark.matching import can_match, is_simple, mask, matches
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.versions import versions

# Up to this number of rows, and of pairs of rows in a join, plain Python is done before Spark has begun.
IN_PROCESS_ROWS_MAX = 5_000
IN_PROCESS_PAIRS_MAX = 50_000
# Up to this number of lines on a side, and of bytes of pairs, Arrow joins tables before Spark has read them.
IN_ARROW_ROWS_MAX = 1_000_000
IN_ARROW_BYTES_MAX = 512 * 2**20
IN_PLAN_ROWS_MAX = 2_000


@dataclass(frozen=True)
class Staging:
    """Where staged tables go: the session that will read them, and a folder for large ones.

    On a cluster the folder must be one that executors see. Its files may be deleted when the batch
    that staged them is over. With both limits 0 whatever Spark can do is left to it.
    """

    session: SparkSession
    folder: Path
    in_process_rows_max: int = IN_PROCESS_ROWS_MAX
    in_arrow_rows_max: int = IN_ARROW_ROWS_MAX

    def relation(self, table: pa.Table, schema: Schema) -> StagedRelation:
        """The lines of a table with the columns of ``schema``, then the count."""
        return StagedRelation(self, schema, table=table)

    def of_bag(self, bag: Bag) -> StagedRelation:
        return StagedRelation(self, bag.schema, bag=bag)

    def taken(self, relation: SparkRelation) -> StagedRelation:
        """A relation brought into this process: what Spark has still to compute is computed now.

        It needs no files any more, and meets relations of this staging's session.
        """
        if isinstance(relation, StagedRelation):
            return relation.moved(self)
        with translated():
            table = relation.consolidated().frame.toArrow()
        return self.relation(table, relation.schema)

    def computed(self, relation: SparkRelation) -> pa.Table:
        """A relation's lines as a table, some columns perhaps coded; computed by Spark, through files.

        A batch may change millions of rows: they must not all pass through the JVM's memory.
        """
        if isinstance(relation, StagedRelation):
            return relation.coded_table
        types = arrow_schema(relation.schema)
        path = self.folder / f"{uuid.uuid4().hex}.lines"
        positional = [f"c{i}" for i in range(len(types))]
        with translated():
            relation.frame.toDF(*positional).write.option("compression", "none").parquet(str(path))
        parts = sorted(path.glob("*.parquet"))
        if not parts:
            return types.empty_table()
        lines = pa.concat_tables([pq.read_table(part) for part in parts])
        return lines.rename_columns(types.names).cast(types)

    def frame(self, table: pa.Table, schema: Schema) -> DataFrame:
        if table.num_rows <= IN_PLAN_ROWS_MAX:
            return self.session.createDataFrame(table, schema=spark_schema(schema))
        path = self.folder / f"{uuid.uuid4().hex}.parquet"
        positional = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
        pq.write_table(positional, path, compression="none", use_dictionary=False)
        read = self.session.read.parquet(str(path))
        return read.toDF(*schema.names, COUNT)


@dataclass(frozen=True)
class _Pairs:
    """The lines of a join, none of their columns made: most are dropped by what follows.

    Columns of the two sides may be coded.
    """

    left: pa.Table
    right: pa.Table
    mine: pa.Array
    theirs: pa.Array

    def column(self, position: int) -> pa.ChunkedArray:
        """A column of the join: those of the left side, of the right side, then the count."""
        of_side = self._of_side(position)
        if of_side is not None:
            column, lines = of_side
            return plain(column.take(lines))
        counts = (
            self.left.column(COUNT).take(self.mine),
            self.right.column(COUNT).take(self.theirs),
        )
        return pc.multiply_checked(*counts)

    def coded_column(self, position: int) -> pa.ChunkedArray:
        """The same, coded where its values repeat."""
        of_side = self._of_side(position)
        return self.column(position) if of_side is None else taken(*of_side)

    def _of_side(self, position: int) -> tuple[pa.ChunkedArray, pa.Array] | None:
        """The side's column, and which lines of it; None for the count, which both sides make."""
        width = self.left.num_columns - 1
        if position < width:
            return self.left.column(position), self.mine
        if position < width + self.right.num_columns - 1:
            return self.right.column(position - width), self.theirs
        return None


class StagedRelation(SparkRelation):
    """A signed bag of rows in this process that is a `SparkRelation` as soon as somebody needs one."""

    __slots__ = ("_bag", "_coded", "_frame", "_pairs", "_staging", "_table")

    def __init__(
        self,
        staging: Staging,
        schema: Schema,
        *,
        table: pa.Table | None = None,
        bag: Bag | None = None,
        pairs: _Pairs | None = None,
    ) -> None:
        """From a bag, a table, or the pairs of a join; the latter two have the columns of ``schema``
        and the count, by position, in canonical form. A table's columns may be coded."""
        self.schema = schema
        self._pairs = pairs
        # A table is in one of two forms; where a plain one is asked for, it becomes that.
        self._table = self._coded = None
        if table is not None:
            types = with_codes_kept(arrow_schema(schema), table)
            named = pa.Table.from_arrays(table.columns, schema=types)
            if any(map(is_coded, types)):
                self._coded = named
            else:
                self._table = named
        self._bag = bag
        self._staging = staging
        self._frame: DataFrame | None = None

    @property
    def staging(self) -> Staging:
        return self._staging

    @property
    def table(self) -> pa.Table:
        """The lines in Arrow: the relation's columns, then the count."""
        types = arrow_schema(self.schema)
        if self._coded is not None:
            self._table, self._coded = decoded(self._coded, types), None
        elif self._table is None and self._pairs is not None:
            columns = [self._pairs.column(position) for position in range(len(types))]
            self._table, self._pairs = pa.Table.from_arrays(columns, schema=types), None
        elif self._table is None:
            self._table = table_of(self.schema, self.to_bag())
        return self._table

    @property
    def coded_table(self) -> pa.Table:
        """The same; columns whose values repeat may be coded."""
        return self.table if self._coded is None else self._coded

    def _coded_column(self, position: int) -> pa.ChunkedArray:
        pairs = self._pairs
        return (self.coded_table.column if pairs is None else pairs.coded_column)(position)

    def to_bag(self) -> Bag:
        if self._bag is None:
            self._bag = bag_of(self.table, self.schema)
        return self._bag

    def like(self, bag: Bag) -> SparkRelation:
        return self._staging.of_bag(bag)

    def moved(self, staging: Staging) -> StagedRelation:
        """The same rows, on their way to another session or through another folder."""
        table = self.table if self._bag is None else self._table
        return StagedRelation(staging, self.schema, table=table, bag=self._bag)

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

    # -- as a bag, in Arrow, or on Spark ------------------------------------------------------------

    @property
    def _is_small(self) -> bool:
        return self.lines <= self._staging.in_process_rows_max

    @property
    def lines(self) -> int:
        """How many entries it has as it is here; those of one row may still have to be summed."""
        if self._bag is not None:
            return len(self._bag)
        return self._rows

    @property
    def _rows(self) -> int:
        return int(self.coded_table.num_rows) if self._pairs is None else len(self._pairs.mine)

    def __add__(self, other: SparkRelation) -> SparkRelation:
        if not isinstance(other, StagedRelation) or other.schema != self.schema:
            return super().__add__(other)
        if self._is_small and other._is_small:
            return self.like(self.to_bag() + other.to_bag())
        return self._like(together([self.coded_table, other.coded_table]), self.schema)

    def __neg__(self) -> SparkRelation:
        if self._is_small:
            return self.like(-self.to_bag())
        table = self.coded_table
        negated = pc.negate(table.column(COUNT))
        return self._like(table.set_column(len(self.schema), COUNT, negated), self.schema)

    def join(
        self, other: SparkRelation, on: JoinKeys = (), where: Expression = TRUE
    ) -> SparkRelation:
        if isinstance(other, StagedRelation) and self._is_small and other._is_small:
            left, right = self.to_bag(), other.to_bag()
            if left.pairs_with(right, on) <= IN_PROCESS_PAIRS_MAX:
                return self.like(left.join(right, on, where))
        if isinstance(other, StagedRelation):
            joined = self._joined_here(other, on, where)
            if joined is not None:
                return joined
        return super().join(other, on, where)

    def _joined_here(
        self, other: StagedRelation, on: JoinKeys, where: Expression
    ) -> StagedRelation | None:
        """The join in Arrow; None where it would be too large or is not of that kind."""
        schema = self.schema.joined(other.schema)
        limit = self._staging.in_arrow_rows_max
        if max(self.lines, other.lines) > limit or not can_match(self.schema, other.schema, on):
            return None
        if where != TRUE and not is_simple(where, schema):
            return None
        left, right = self.coded_table, other.coded_table
        found = matches(
            [plain(left.column(self.schema.position(name))) for name, _ in on],
            [plain(right.column(other.schema.position(name))) for _, name in on],
        )
        if found.pairs * (line_bytes(left) + line_bytes(right)) > IN_ARROW_BYTES_MAX:
            return None
        mine, theirs = found.lines()
        pairs = _Pairs(left, right, pa.array(mine), pa.array(theirs))
        if where != TRUE:
            is_kept = mask(where, lambda name: pairs.column(schema.position(name)))
            keep = pc.fill_null(is_kept, False).to_numpy(zero_copy_only=False)
            pairs = _Pairs(left, right, pa.array(mine[keep]), pa.array(theirs[keep]))
        return StagedRelation(self._staging, schema, pairs=pairs)

    def renamed(self, names: Iterable[str]) -> SparkRelation:
        if self._is_small:
            return self.like(self.to_bag().renamed(names))
        return self._like(self.coded_table, self.schema.renamed(names))

    def select(self, outputs: tuple[Output, ...]) -> SparkRelation:
        if self._is_small:
            return self.like(self.to_bag().select(outputs))
        if not all(_is_plain(output.expression) for output in outputs):
            return super().select(outputs)
        fields = tuple(Field(o.name, type_of(o.expression, self.schema)) for o in outputs)
        columns = [self._column(output.expression) for output in outputs]
        columns.append(self._coded_column(len(self.schema)))
        names = [*(field.name for field in fields), COUNT]
        return self._like(pa.Table.from_arrays(columns, names=names), Schema(fields))

    def _column(self, expression: Expression) -> pa.ChunkedArray | pa.Array:
        match expression:
            case Column(name):
                return self._coded_column(self.schema.position(name))
            case Literal(value, type):
                return pa.repeat(pa.scalar(value, arrow_type(type)), self._rows)
            case Arithmetic("+", left, right):
                return pc.add_checked(self._column(left), self._column(right))
        raise TypeError(expression)  # `_is_plain` admits no others

    def where(self, predicate: Expression) -> SparkRelation:
        if predicate == TRUE:
            return self
        if self._is_small:
            return self.like(self.to_bag().where(predicate))
        table = self.table
        rest = []
        for part in conjuncts(predicate):
            if is_simple(part, self.schema):
                table = table.filter(mask(part, self._columns_of(table)))
            else:
                rest.append(part)
        for part in rest:
            table = self._filtered(table, part)
        return self._like(table, self.schema)

    def _columns_of(self, table: pa.Table) -> Callable[[str], pa.ChunkedArray]:
        return lambda name: table.column(self.schema.position(name))

    def _filtered(self, table: pa.Table, predicate: Expression) -> pa.Table:
        """By the reference's own evaluator: exact, and quick enough for the rows of a batch."""
        keep = holds(predicate, self.schema)
        mask = [keep(row) for row, _ in signed_rows(table, self.schema)]
        return table.filter(pa.array(mask, pa.bool_()))

    def copied(self, column: str) -> SparkRelation:
        if self._is_small:
            return self.like(self.to_bag().copied(column))
        return super().copied(column)

    def versions(self, lo: str, hi: str) -> SparkRelation:
        if self._is_small:
            return self.like(self.to_bag().versions(lo, hi))
        if self.lines > self._staging.in_arrow_rows_max:
            return self
        return self._like(versions(self.table, lo, hi), self.schema)

    def consolidated(self) -> SparkRelation:
        # Arrow tells NaN from NaN when it groups, and can't group by nothing; a bag can do both.
        by_rows = (
            any(field.type.kind is Kind.DOUBLE for field in self.schema) or not self.schema.names
        )
        if self._is_small or by_rows:
            return self.like(self.to_bag())
        keys = list(self.schema.names)
        summed = self.table.group_by(keys).aggregate([(COUNT, "sum")])
        table = summed.select([*keys, f"{COUNT}_sum"])
        return self._like(table.filter(pc.not_equal(table.column(len(keys)), 0)), self.schema)

    def support(self) -> SparkRelation:
        consolidated = self._consolidated_here()
        if consolidated._is_small:
            return self.like(consolidated.to_bag().support())
        return self._like(_once(consolidated.table), self.schema)

    def unsigned(self) -> SparkRelation:
        # Lines are not worth adding up for this.
        return self.support() if self._is_small else self._like(_once(self.table), self.schema)

    def positive(self) -> SparkRelation:
        return self.like(self.to_bag().positive()) if self._is_small else super().positive()

    def grouped(self, keys: tuple[Output, ...], aggregates: tuple[Aggregate, ...]) -> SparkRelation:
        if self._is_small:
            return self.like(self.to_bag().grouped(keys, aggregates))
        return super().grouped(keys, aggregates)

    def is_empty(self) -> bool:
        return self._consolidated_here().lines == 0

    def _consolidated_here(self) -> StagedRelation:
        consolidated = self.consolidated()
        invariant(isinstance(consolidated, StagedRelation), "what is here is summed up here")
        return consolidated  # type: ignore[return-value]

    def _like(self, table: pa.Table, schema: Schema) -> StagedRelation:
        return StagedRelation(self._staging, schema, table=table)


def _once(table: pa.Table) -> pa.Table:
    """The lines, each with a count of 1."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
    return table.set_column(table.num_columns - 1, COUNT, ones)


def _is_plain(expression: Expression) -> bool:
    """Whether Arrow computes it exactly as Spark would: columns, constants, integer sums."""
    match expression:
        case Column() | Literal():
            return True
        case Arithmetic("+", Column(), Literal(_, type)):
            return type == INTEGER
        case _:
            return False
