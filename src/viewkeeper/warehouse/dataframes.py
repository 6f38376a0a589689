"""The warehouse's relational work on Spark: extents, change feeds, sums.

Everything is SQL text over DataFrames of a session handed in, so this package imports no PySpark
and works with a classic session and with Connect alike. Nothing runs before the caller asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.errors import InvariantViolated
from viewkeeper.views.spark_sql import quoted
from viewkeeper.warehouse.checksums import verified
from viewkeeper.warehouse.columns import COUNT, RESERVED, TXN, owner_of, stored_ddl
from viewkeeper.warehouse.datafiles import DataFile
from viewkeeper.warehouse.reading import ReadPlan, view_folder
from viewkeeper.warehouse.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A log up to this size is sent to every task, so that the base is scanned and never shuffled.
BROADCAST_ROWS_MAX = 100_000
BROADCAST_RATIO_MIN = 4
# Spark's readers then verify the checksum of every page that they decode.
VERIFY_PAGES = "parquet.page.verify-checksum.enabled"


def extent_frame(
    spark: SparkSession, storage: Storage, plan: ReadPlan, *, with_count: bool
) -> DataFrame:
    """The view's rows: as often as they occur, or once with their positive count in ``_count``."""
    names = _columns(plan.schema)
    if plan.is_summed(distinct=with_count):
        counted = _read(spark, storage, plan, plan.base)
    elif _is_short(plan) and (plan.base_distinct or not with_count):
        counted = _patched(spark, storage, plan)
    else:
        counted = _grouped(spark, _read(spark, storage, plan, plan.files), plan.schema)
    if with_count:
        return spark.sql(f"SELECT {names}, {COUNT} FROM {{rows}} WHERE {COUNT} > 0", rows=counted)
    return spark.sql(
        f"SELECT {names} FROM {{rows}} "
        f"LATERAL VIEW explode(array_repeat(0, CAST({COUNT} AS INT))) AS _viewkeeper_repeated "
        f"WHERE {COUNT} > 0",
        rows=counted,
    )


def summed_frame(spark: SparkSession, storage: Storage, plan: ReadPlan, base_txn: int) -> DataFrame:
    """The plan's rows summed, in stored form, all numbered ``base_txn``: a new base."""
    total = _grouped(spark, _read(spark, storage, plan, plan.files), plan.schema)
    return spark.sql(
        f"SELECT {_columns(plan.schema)}, {COUNT}, {base_txn}L AS {TXN} FROM {{rows}}", rows=total
    )


def feed_frame(
    spark: SparkSession, storage: Storage, schema: Schema, plans: Sequence[ReadPlan]
) -> DataFrame:
    """The signed rows of several segments; their order is that of ``_txn``, if the caller sorts."""
    frames = [_read(spark, storage, plan, plan.files) for plan in plans if plan.files]
    if not frames:
        return spark.createDataFrame([], stored_ddl(schema))
    first, *rest = frames
    for frame in rest:
        first = first.unionAll(frame)
    return first


def stored_frame(view: str, frame: DataFrame, schema: Schema, txn: int | None) -> DataFrame:
    """A caller's rows in stored form: columns in order, canonical doubles, no zero counts.

    ``txn`` numbers rows that have no number yet (a whole extent).
    """
    wanted = {field.name: str(field.type) for field in schema} | dict.fromkeys(RESERVED, "bigint")
    if txn is not None:
        del wanted[TXN]
    found = dict(frame.dtypes)
    if found != wanted:
        raise InvariantViolated(
            f"the rows for view {view} have the wrong columns",
            detail=f"expected {wanted}; found {found}",
        )
    columns = [_canonical(field.name, field.type.kind) for field in schema]
    number = TXN if txn is None else f"{txn}L AS {TXN}"
    return frame.where(f"{COUNT} <> 0").selectExpr(*columns, COUNT, number)


def _canonical(name: str, kind: Kind) -> str:
    column = quoted(name)
    if kind is not Kind.DOUBLE:
        return column
    return f"CASE WHEN isnan({column}) THEN double('NaN') ELSE {column} + 0.0D END AS {column}"


def _is_short(plan: ReadPlan) -> bool:
    return (
        plan.log_rows <= BROADCAST_ROWS_MAX
        and plan.base_rows >= BROADCAST_RATIO_MIN * plan.log_rows
    )


def _patched(spark: SparkSession, storage: Storage, plan: ReadPlan) -> DataFrame:
    """Base rows that the log does not touch as they are; the others, few, summed with the log.

    Rows are compared as bags compare them: NULL is NULL, NaN is NaN.
    """
    base = _read(spark, storage, plan, plan.base)
    log = _grouped(spark, _read(spark, storage, plan, plan.log), plan.schema)
    same = " AND ".join(f"_base.{quoted(n)} <=> _log.{quoted(n)}" for n in plan.schema.names)
    columns = _columns(plan.schema)
    untouched = spark.sql(
        f"SELECT /*+ BROADCAST(_log) */ {columns}, {COUNT} FROM {{base}} _base "
        f"LEFT ANTI JOIN {{log}} _log ON {same}",
        base=base,
        log=log,
    )
    touched = spark.sql(
        f"SELECT /*+ BROADCAST(_log) */ {columns}, {COUNT} FROM {{base}} _base "
        f"LEFT SEMI JOIN {{log}} _log ON {same}",
        base=base,
        log=log,
    )
    return untouched.unionAll(_grouped(spark, touched.unionAll(log), plan.schema))


def _grouped(spark: SparkSession, rows: DataFrame, schema: Schema) -> DataFrame:
    """One row per distinct row with the sum of its counts; sums of zero vanish here."""
    columns = _columns(schema)
    return spark.sql(
        f"SELECT {columns}, SUM({COUNT}) AS {COUNT} FROM {{rows}} GROUP BY {columns} "
        f"HAVING SUM({COUNT}) <> 0",
        rows=rows,
    )


def _read(
    spark: SparkSession, storage: Storage, plan: ReadPlan, files: Sequence[DataFile]
) -> DataFrame:
    ddl = stored_ddl(plan.schema)
    if not files:
        return spark.createDataFrame([], ddl)
    folder = view_folder(plan.view)
    for file in files:
        verified.check(
            storage, storage.path(folder, file.path), file.size, owner_of(plan.view) or plan.view
        )
    reader = spark.read.schema(ddl).option(VERIFY_PAGES, "true")
    frame = reader.parquet(*(storage.spark_uri(folder, f.path) for f in files))
    if all(file.min_txn > plan.after and file.max_txn <= plan.upto for file in files):
        return frame
    return frame.where(f"{TXN} > {plan.after} AND {TXN} <= {plan.upto}")


def _columns(schema: Schema) -> str:
    return ", ".join(quoted(name) for name in schema.names)
