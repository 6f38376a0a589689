"""Spark Declarative Pipelines: a materialized view, brought up to date by runs of its pipeline.

Open-source Spark computes such a view anew in every run. Included: a run in a session that is warm, from
Parquet files into Spark's own table. Not included: getting the sources' rows into the files, and starting
the session, which a user of the command line pays for every run.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyspark

from peers.task import RELATIONS, Clock, Measurement, Streamed, Task, replaced


def run(task: Task) -> Measurement:
    from pyspark.sql import SparkSession

    answer = Measurement(f"Spark {pyspark.__version__} pipelines")
    clock = Clock()
    os.chdir(task.scratch)
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.warehouse.dir", str(task.scratch / "tables"))
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    inputs = task.scratch / "inputs"
    with clock.timing():
        _run_pipeline(spark, task, inputs, task.base)
    answer.load_seconds = clock.seconds
    before = [tuple(row) for row in spark.table("view_out").collect()] if task.moves else []
    for stream in task.streams:
        with clock.timing():
            _run_pipeline(spark, task, inputs, lambda name, stream=stream: task.after(stream, name))
        seconds = clock.seconds
        found = spark.sql(task.check.format(view="view_out")).collect()[0]
        rows = sum(spark.read.parquet(str(task.after(stream, n))).count() for n in RELATIONS)
        answer.streams.append(
            Streamed(
                stream, task.updates(stream), seconds, task.is_right(stream, tuple(found)),
                asked_rows=rows, asked_queries=len(RELATIONS),
            )
        )  # fmt: skip
    if task.moves:
        after = [tuple(row) for row in spark.table("view_out").collect()]
        answer.states = [replaced(before, after)]
    spark.stop()
    return answer


def _run_pipeline(spark: Any, task: Task, inputs: Path, path: Any) -> None:
    """Put the inputs in their place, and run the pipeline over them once."""
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context
    from pyspark.pipelines.spark_connect_graph_element_registry import (
        SparkConnectGraphElementRegistry,
    )
    from pyspark.pipelines.spark_connect_pipeline import (
        create_dataflow_graph,
        handle_pipeline_events,
        start_run,
    )

    inputs.mkdir(exist_ok=True)
    for name in RELATIONS:
        shutil.copyfile(path(name), inputs / f"{name}.parquet")
    names = {name: f"parquet.`{inputs / name}.parquet`" for name in RELATIONS}
    graph = create_dataflow_graph(spark, default_catalog=None, default_database=None, sql_conf={})
    registry = SparkConnectGraphElementRegistry(spark, graph)
    with graph_element_registration_context(registry):
        registry.register_sql(
            f"CREATE MATERIALIZED VIEW view_out AS {task.sql(**names)}", Path("view_out.sql")
        )
    events = start_run(
        spark, graph, full_refresh=[], full_refresh_all=False, refresh=[], dry=False,
        storage=f"file://{task.scratch}/storage",
    )  # fmt: skip
    handle_pipeline_events(events)
