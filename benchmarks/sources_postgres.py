"""PostgreSQL's part of `make bench-sources`: the feed, cuts, queries at a cut.

Run alone: python benchmarks/sources_postgres.py [--json]
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from typing import Any

import psycopg
import pyarrow as pa

from viewkeeper.sources.interface import KeyedRead, Source, SourceTransaction
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.postgres import EmbeddedPostgres

ROWS = 300_000
ROWS_PER_TRANSACTION = (1, 10, 1_000)
KEY_COUNTS = (1, 1_000, 100_000)
TABLE = "CREATE TABLE items (id bigint PRIMARY KEY, name text, price numeric(10,2), qty integer)"


def measure() -> dict[str, Any]:
    """Every figure, by name."""
    with EmbeddedPostgres() as server, psycopg.connect(server.url(), autocommit=True) as writer:
        writer.execute(TABLE)
        version = writer.info.parameter_status("server_version")
        figures: dict[str, Any] = {"kind": "postgres", "postgres": version}
        with open_source("bench", server.url(), allow_setup=True) as source:
            source.setup(["items"])
            for size in ROWS_PER_TRANSACTION:
                name = f"feed_rows_per_second_{size}_per_transaction"
                figures[name], figures["feed_cpu_us_per_row"] = feed_rate(source, writer, size)
            writer.execute("VACUUM ANALYZE items")
            figures |= query_times(source)
            figures |= cut_times(source)
    return figures


def feed_rate(source: Source, writer: psycopg.Connection[Any], size: int) -> tuple[int, float]:
    """Rows per second of a feed that is behind by all of them, and our own CPU time per row."""
    count = ROWS if size > 1 else ROWS // 10
    writer.execute("TRUNCATE items")
    start = source.start_position()
    _fill(writer, count, size)
    rows = transactions = 0
    with source.feed(["items"], start) as feed:
        begin, cpu = time.perf_counter(), time.process_time()
        while rows < count:
            for item in feed.poll(5.0):
                if isinstance(item, SourceTransaction):
                    transactions += 1
                    rows += sum(len(c.inserted) + len(c.deleted) for c in item.changes)
        elapsed = time.perf_counter() - begin
        cpu_us = (time.process_time() - cpu) / count * 1e6
        feed.confirm(feed.position)
    if transactions != -(-count // size):
        raise SystemExit(f"the feed gave {transactions} transactions, {count // size} were written")
    return round(rows / elapsed), round(cpu_us, 2)


def query_times(source: Source) -> dict[str, float]:
    """Milliseconds for a cut and one keyed read, and for reading everything."""
    figures: dict[str, float] = {}
    for count in KEY_COUNTS:
        ids = random.Random(1).sample(range(ROWS), count)
        keys = pa.table({"id": pa.array(ids, pa.int64())})
        question = KeyedRead("items", ("id", "name", "qty"), ("id",), keys)
        figures[f"query_ms_{count}_keys"] = _best(source, question, count)
    whole = KeyedRead("items", ("id", "name", "price", "qty"))
    figures["read_rows_per_second"] = round(ROWS / _best(source, whole, ROWS) * 1e3)
    return figures


def cut_times(source: Source) -> dict[str, float]:
    """Milliseconds to open and close a cut."""
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        source.cut(["items"]).close()
        times.append((time.perf_counter() - begin) * 1e3)
    return {"cut_ms_median": round(statistics.median(times), 2)}


def _best(source: Source, question: KeyedRead, expected: int) -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        with source.cut(["items"]) as cut:
            found = sum(batch.num_rows for batch in cut.read(question))
        times.append((time.perf_counter() - begin) * 1e3)
        if found != expected:
            raise SystemExit(f"{found} rows found, {expected} expected")
    return round(min(times), 2)


def _fill(writer: psycopg.Connection[Any], count: int, size: int) -> None:
    writer.execute(
        "CREATE OR REPLACE PROCEDURE fill(total bigint, size bigint) LANGUAGE plpgsql AS $$ "
        "BEGIN FOR low IN 0 .. total - 1 BY size LOOP INSERT INTO items "
        "SELECT n, 'item ' || n, n / 100.0, n % 7 FROM generate_series(low, "
        "least(low + size, total) - 1) n; COMMIT; END LOOP; END $$"
    )
    writer.execute("SET synchronous_commit = off")
    writer.execute(f"CALL fill({count}, {size})")
    writer.execute("SET synchronous_commit = on")
    writer.execute("SELECT pg_logical_emit_message(true, 'bench', '')")


def main() -> None:
    figures = measure()
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        for name, value in figures.items():
            sys.stdout.write(f"{name:45} {value}\n")


if __name__ == "__main__":
    main()
