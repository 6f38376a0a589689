"""DuckDB: the view computed anew from Parquet files into a table of a database file.

Included: reading, computing, writing. Not included: getting the sources' rows into the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb

from peers.task import RELATIONS, Clock, Measurement, Streamed, Task, replaced


def run(task: Task) -> Measurement:
    answer = Measurement(f"DuckDB {duckdb.__version__}")
    clock = Clock()
    with duckdb.connect(str(task.scratch / "views.duckdb")) as database:
        database.execute("SET threads = 2")

        def refresh(path: Callable[[str], Path]) -> None:
            inputs = {name: f"read_parquet('{path(name)}')" for name in RELATIONS}
            with clock.timing():
                database.execute(f"CREATE OR REPLACE TABLE view_out AS {task.sql(**inputs)}")

        refresh(task.base)
        answer.load_seconds = clock.seconds
        before = database.execute("FROM view_out").fetchall() if task.moves else []
        for stream in task.streams:
            refresh(lambda name, stream=stream: task.after(stream, name))  # type: ignore[misc]
            found = database.execute(task.check.format(view="view_out")).fetchall()[0]
            counts = (f"SELECT COUNT(*) FROM '{task.after(stream, name)}'" for name in RELATIONS)
            rows = sum(database.execute(count).fetchall()[0][0] for count in counts)
            answer.streams.append(
                Streamed(
                    stream, task.updates(stream), clock.seconds, task.is_right(stream, found),
                    asked_rows=rows, asked_queries=len(RELATIONS),
                )
            )  # fmt: skip
        if task.moves:
            answer.states = [replaced(before, database.execute("FROM view_out").fetchall())]
    return answer
