"""PostgreSQL: REFRESH MATERIALIZED VIEW, all three tables in one database.

Included: computing and storing. Not included: getting the rows of other databases into this one, and
applying the changes to the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import psycopg
import pyarrow.csv as csv
import pyarrow.parquet as pq

from peers.task import KEYS, RELATIONS, Clock, Measurement, Streamed, Task, replaced
from viewkeeper.testing.postgres import EmbeddedPostgres

SETTINGS = {"shared_buffers": "1GB", "work_mem": "256MB", "max_wal_size": "4GB"}


def run(task: Task) -> Measurement:
    clock = Clock()
    with (
        EmbeddedPostgres(settings=SETTINGS) as server,
        psycopg.connect(server.url(), autocommit=True) as database,
    ):
        number = database.info.server_version // 10_000
        answer = Measurement(f"PostgreSQL {number}")
        for name, columns in RELATIONS.items():
            types = {"name": "text", "rname": "text"}
            written = ", ".join(f"{column} {types.get(column, 'bigint')}" for column in columns)
            database.execute(f"CREATE TABLE {name} ({written}, PRIMARY KEY ({KEYS[name]}))")
        rows = _fill(database, task.base)
        with clock.timing():
            database.execute(f"CREATE MATERIALIZED VIEW view_out AS {task.sql()}")
        answer.load_seconds = clock.seconds
        before = database.execute("SELECT * FROM view_out").fetchall() if task.moves else []
        for stream in task.streams:
            rows = _fill(database, lambda name, stream=stream: task.after(stream, name))  # type: ignore[misc]
            with clock.timing():
                database.execute("REFRESH MATERIALIZED VIEW view_out")
            found = database.execute(task.check.format(view="view_out")).fetchone() or ()
            answer.streams.append(
                Streamed(
                    stream, task.updates(stream), clock.seconds, task.is_right(stream, found),
                    asked_rows=rows, asked_queries=1,
                )
            )  # fmt: skip
        if task.moves:
            after = database.execute("SELECT * FROM view_out").fetchall()
            answer.states = [replaced(before, after)]
    return answer


def _fill(database: psycopg.Connection, path: Callable[[str], Path]) -> int:
    """The tables as they are in files; how many rows that is."""
    rows = 0
    for name in RELATIONS:
        database.execute(f"TRUNCATE {name}")
        table = pq.read_table(path(name))
        rows += table.num_rows
        written = BytesIO()
        csv.write_csv(table, written, csv.WriteOptions(include_header=False))
        with database.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
            copy.write(written.getbuffer())
        database.execute(f"ANALYZE {name}")
    return rows
