"""Spark: the view computed anew from Parquet files into Parquet files, in a session that is warm.

Included: reading, computing, writing. Not included: getting the sources' rows into the files, starting
Spark, and a first run to warm it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from peers.task import RELATIONS, Clock, Measurement, Streamed, Task, replaced


def run(task: Task) -> Measurement:
    answer = Measurement(f"Spark {pyspark.__version__}")
    clock = Clock()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    out = str(task.scratch / "view")

    def refresh(path: Callable[[str], Path]) -> None:
        for name in RELATIONS:
            spark.read.parquet(str(path(name))).createOrReplaceTempView(name)
        spark.sql(task.sql()).write.mode("overwrite").parquet(out)

    with clock.timing():
        refresh(task.base)
    answer.load_seconds = clock.seconds
    before = [tuple(row) for row in spark.read.parquet(out).collect()] if task.moves else []
    for _ in range(2):
        refresh(task.base)
    for stream in task.streams:
        with clock.timing():
            refresh(lambda name, stream=stream: task.after(stream, name))  # type: ignore[misc]
        seconds = clock.seconds
        found = spark.sql(task.check.format(view=f"parquet.`{out}`")).collect()[0]
        rows = sum(spark.read.parquet(str(task.after(stream, n))).count() for n in RELATIONS)
        answer.streams.append(
            Streamed(
                stream, task.updates(stream), seconds, task.is_right(stream, tuple(found)),
                asked_rows=rows, asked_queries=len(RELATIONS),
            )
        )  # fmt: skip
    if task.moves:
        after = [tuple(row) for row in spark.read.parquet(out).collect()]
        answer.states = [replaced(before, after)]
    spark.stop()
    return answer
