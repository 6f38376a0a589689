"""Rows that executors read by themselves, each task a part, so that they do not pass through the driver.

Knows nothing of sources: what a part is, the caller that hands over the reading function knows. That function
travels to the executors, so it must not hold on to anything of the driver's.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.algebra.types import Schema
from viewkeeper.spark.arrow import arrow_schema, spark_schema
from viewkeeper.spark.relation import SparkRelation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.spark.staged import Staging

ReadPart = Callable[[int], Iterator[pa.RecordBatch]]


def has_executors(session: SparkSession) -> bool:
    """Whether work is done in other processes than the driver's."""
    return not str(session.sparkContext.master).startswith("local")


def tasks_at_once(session: SparkSession) -> int:
    """How many tasks the cluster runs at a time, as far as it knows."""
    return int(session.sparkContext.defaultParallelism)


def read_in_parts(staging: Staging, schema: Schema, parts: int, read: ReadPart) -> SparkRelation:
    """All parts as one relation, read once and now: afterwards no source is asked again.

    ``read`` gives the rows of a part with the columns of ``schema``. Raises whatever Spark does, with
    the text of what ``read`` raised in it.
    """
    types = arrow_schema(schema)
    path = str(staging.folder / f"{uuid.uuid4().hex}.parts")

    def counted(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in read(number):
                    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
                    yield pa.RecordBatch.from_arrays([*rows.columns, ones], schema=types)

    session = staging.session
    structure = spark_schema(schema)
    found = session.range(0, parts, 1, parts).mapInArrow(counted, structure)
    found.write.option("compression", "none").parquet(path)
    return SparkRelation.from_frame(session.read.schema(structure).parquet(path), schema)


def lines_of(relation: SparkRelation) -> int:
    """How many lines a relation in files has; Spark asks the files' ends for it."""
    return relation.frame.count()
