"""Viewkeeper: orders and customers in two PostgreSQL servers, regions in SQLite, the view in Delta tables.

Included: capture from the databases' logs, questions back to them, computing, durable commits. Not
included: starting Spark and the databases, and the writing of a stream, which is over before its backlog
is worked off. The databases run on the same processors meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.csv as csv
import pyarrow.parquet as pq

import viewkeeper
from peers.task import KEYS, RELATIONS, Measurement, Streamed, Task
from viewkeeper.engine.integrator import singly
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.project.keeper import Keeper
from viewkeeper.testing.postgres import EmbeddedPostgres

SERVER_SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
PLACES = {"orders": "shop", "customers": "crm", "regions": "geo"}
TYPES = {"name": "text", "rname": "text"}
# One transaction for each line of the table that was filled before.
REPLAY = """
DO $$ DECLARE line record; BEGIN
  FOR line IN SELECT statement FROM to_do ORDER BY number LOOP
    EXECUTE line.statement; COMMIT;
  END LOOP;
END $$"""


def run(task: Task) -> Measurement:
    answer = Measurement(f"Viewkeeper {viewkeeper.__version__}")
    with contextlib.ExitStack() as stack:
        databases = Databases(stack, task)
        folder = databases.project(task)
        keeper = stack.enter_context(Keeper.open(folder, allow_setup=True))
        _ = keeper.spark  # started now
        with keeper.pipeline() as pipeline:
            started = time.perf_counter()
            pipeline.load()
            answer.load_seconds = time.perf_counter() - started
        loaded = keeper.warehouse().latest().last_txn
        for stream in task.streams:
            databases.write(task.changes(stream))
            with keeper.pipeline() as pipeline:
                streamed = caught_up(pipeline, stream, task.updates(stream))
            if not task.moves:
                streamed.right = task.is_right(stream, _checked(keeper, task))
            answer.streams.append(streamed)
        if task.rate:
            with keeper.pipeline() as pipeline:
                pipeline.load()
                answer.freshness = _freshness(databases, pipeline, task)
        if task.moves:
            answer.states = _states(keeper, loaded)
    return answer


class Databases:
    """The three sources, filled with the base."""

    def __init__(self, stack: contextlib.ExitStack, task: Task) -> None:
        servers = [stack.enter_context(EmbeddedPostgres(settings=SERVER_SETTINGS)) for _ in "12"]
        self._urls = dict(zip(("shop", "crm"), (server.url() for server in servers), strict=True))
        self._geo = task.scratch / "geo.db"
        for relation, indexed in (("orders", "cust_id"), ("customers", "region_id")):
            with psycopg.connect(self._urls[PLACES[relation]]) as database:
                columns = RELATIONS[relation]
                written = ", ".join(f"{column} {TYPES.get(column, 'bigint')}" for column in columns)
                key = KEYS[relation]
                database.execute(f"CREATE TABLE {relation} ({written}, PRIMARY KEY ({key}))")
                with database.cursor().copy(f"COPY {relation} FROM STDIN (FORMAT csv)") as copy:
                    for batch in pq.ParquetFile(task.base(relation)).iter_batches(500_000):
                        copy.write(_as_csv(batch))
                database.execute(f"CREATE INDEX ON {relation} ({indexed})")
            with psycopg.connect(self._urls[PLACES[relation]], autocommit=True) as database:
                database.execute(f"VACUUM ANALYZE {relation}")
        # An application that stays connected and keeps its log: while nobody reads along, transactions
        # whose log starts over would come as one.
        geo = sqlite3.connect(self._geo, isolation_level=None)
        self._application = stack.enter_context(contextlib.closing(geo))
        geo.execute("PRAGMA journal_mode = WAL")
        geo.execute("PRAGMA wal_autocheckpoint = 0")
        geo.execute("CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)")
        rows = (tuple(row.values()) for row in pq.read_table(task.base("regions")).to_pylist())
        geo.execute("BEGIN")
        geo.executemany("INSERT INTO regions VALUES (?, ?)", rows)
        geo.execute("COMMIT")

    def project(self, task: Task) -> Path:
        """A project's folder over the sources, with the one view."""
        folder = task.scratch / "project"
        (folder / "views").mkdir(parents=True)
        names = {relation: f"{place}.{relation}" for relation, place in PLACES.items()}
        (folder / "views" / "view_out.sql").write_text(task.sql(**names))
        sections = [f'[sources.{name}]\nurl = "{url}"\n' for name, url in self._urls.items()]
        sections.append(f'[sources.geo]\nurl = "sqlite:///{self._geo}"\n')
        (folder / "viewkeeper.toml").write_text("".join(sections))
        return folder

    def write(self, changes: Iterable[dict[str, Any]]) -> None:
        """A whole stream, each change a transaction of its own."""
        ordered = list(changes)
        for relation in ("orders", "customers"):
            mine = [_statement(change) for change in ordered if change["relation"] == relation]
            with psycopg.connect(self._urls[PLACES[relation]], autocommit=True) as database:
                database.execute("SET synchronous_commit = off")
                database.execute("CREATE TEMP TABLE to_do (number bigint, statement text)")
                with database.cursor().copy("COPY to_do FROM STDIN") as copy:
                    for row in enumerate(mine):
                        copy.write_row(row)
                database.execute(REPLAY)
        for change in ordered:
            if change["relation"] == "regions":
                self._application.execute(_statement(change))

    @contextlib.contextmanager
    def writing(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """Gives what carries out one change."""
        with contextlib.ExitStack() as stack:
            links: dict[str, Any] = {
                name: stack.enter_context(psycopg.connect(url, autocommit=True))
                for name, url in self._urls.items()
            }
            geo = sqlite3.connect(
                self._geo, timeout=60, isolation_level=None, check_same_thread=False
            )
            links["geo"] = stack.enter_context(contextlib.closing(geo))
            yield lambda change: links[PLACES[change["relation"]]].execute(_statement(change))


def caught_up(pipeline: Pipeline, stream: str, updates: int) -> Streamed:
    """Set a pipeline going that is behind, and wait until it no longer is: capture included."""
    targets = pipeline.committed_now()
    started = time.perf_counter()
    pipeline.load()
    found = Streamed(stream, updates, 0.0, asked_rows=0, asked_queries=0)
    cycles = []
    while not pipeline.has_applied(targets):
        cycles.append(pipeline.cycle(0.05))
    found.seconds = time.perf_counter() - started
    while (last := pipeline.cycle(0.0)) is not None:
        cycles.append(last)
    phases: dict[str, float] = {}
    transactions = batches = 0
    for cycle in cycles:
        if cycle is None:
            continue
        batches += 1
        transactions += cycle.transactions
        found.asked_queries += sum(asked.queries for asked in cycle.asked.values())  # type: ignore[operator]
        found.asked_rows += sum(asked.rows for asked in cycle.asked.values())  # type: ignore[operator]
        for phase, seconds in cycle.seconds.items():
            phases[phase] = round(phases.get(phase, 0.0) + seconds, 3)
    found.extra = {"transactions": transactions, "batches": batches, "phases": phases}
    return found


def _freshness(databases: Databases, pipeline: Pipeline, task: Task) -> dict[str, Any]:
    """Seconds from a transaction's commit at its source to the epoch that shows it."""
    wanted = int(task.rate * task.rate_seconds)
    changes = list(itertools.islice(task.changes("rate"), wanted))

    def write() -> None:
        with databases.writing() as carry_out:
            started = time.monotonic()
            for number, change in enumerate(changes):
                time.sleep(max(0.0, started + number / task.rate - time.monotonic()))
                carry_out(change)

    writer = threading.Thread(target=write)
    writer.start()
    ages: list[float] = []
    # All are seen when as many have come; where a source brings several as one, when it is quiet.
    while writer.is_alive() or not pipeline.has_applied(pipeline.committed_now()):
        ages += _ages(pipeline.cycle(0.05))
    while (cycle := pipeline.cycle(0.05)) is not None:
        ages += _ages(cycle)
    writer.join()
    ages.sort()
    return {
        "rate": task.rate,
        "transactions": len(ages),
        "p50_seconds": statistics.median(ages),
        "p99_seconds": ages[int(len(ages) * 0.99) - 1],
    }


def _ages(cycle: Any) -> list[float]:
    if cycle is None:
        return []
    shown = cycle.entry.committed_at
    return [
        (shown - arrival.origin.committed_at).total_seconds() for arrival in singly(cycle.batch)
    ]


def _states(keeper: Keeper, loaded: int) -> list[list[list[Any]]]:
    """The signed rows of each transaction after the load, in order."""
    changes = keeper.warehouse().changes_arrow("view_out", loaded)
    states: dict[int, list[list[Any]]] = {}
    for row in changes.to_pylist():
        values = [row["o_id"], row["qty"], row["name"], row["rname"]]
        states.setdefault(row["_txn"], []).append([row["_count"], values])
    return [states[number] for number in sorted(states)]


def _checked(keeper: Keeper, task: Task) -> tuple[int, ...]:
    """What `task.CHECKS` asks for, of our own reading of the view, a part at a time: what the check takes
    is not what the system needs. All of it is sums, which signed rows add up to as the view's own do."""
    import duckdb

    signed = task.check.replace("SUM(", "SUM(_count * ").replace("COUNT(*)", "SUM(_count)")
    found: list[tuple[int, ...]] = []
    with duckdb.connect() as database:
        for rows in keeper.warehouse().snapshot().stored_parts("view_out"):
            database.register("view_rows", rows)
            found += database.execute(signed.format(view="view_rows")).fetchall()
    return tuple(sum(figures) for figures in zip(*found, strict=True))


def _statement(change: dict[str, Any]) -> str:
    relation, before, after = change["relation"], change["before"], change["after"]
    key = KEYS[relation]
    if before is None:
        values = ", ".join(_literal(value) for value in after.values())
        return f"INSERT INTO {relation} VALUES ({values})"
    if after is None:
        return f"DELETE FROM {relation} WHERE {key} = {before[key]}"
    changed = (f"{name} = {_literal(value)}" for name, value in after.items() if name != key)
    return f"UPDATE {relation} SET {', '.join(changed)} WHERE {key} = {before[key]}"


def _literal(value: Any) -> str:
    """Numbers and plain names: all that the workload has."""
    return f"'{value}'" if isinstance(value, str) else str(value)


def _as_csv(batch: Any) -> bytes:
    from io import BytesIO

    written = BytesIO()
    csv.write_csv(batch, written, csv.WriteOptions(include_header=False))
    return written.getvalue()
