"""MariaDB's part of `make bench-sources`: the feed, cuts, queries at a cut.

Run alone: python benchmarks/sources_mariadb.py [--json]
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from typing import Any

import pyarrow as pa

from viewkeeper.sources.interface import KeyedRead, Source, SourceTransaction
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.mariadb import PrivateMariaDB

ROWS = 300_000
ROWS_PER_TRANSACTION = (1, 10, 1_000)
KEY_COUNTS = (1, 1_000, 100_000)
TABLE = (
    "CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT, price DECIMAL(10,2), qty INT)"
    " ENGINE = InnoDB"
)


def measure() -> dict[str, Any]:
    """Every figure, by name."""
    with (
        PrivateMariaDB() as server,
        server.connect(autocommit=True) as connection,
        connection.cursor() as writer,
    ):
        writer.execute("CREATE DATABASE bench")
        writer.execute("USE bench")
        writer.execute(TABLE)
        figures: dict[str, Any] = {"kind": "mariadb", "mariadb": connection.get_server_info()}
        with open_source("bench", server.url("bench")) as source:
            for size in ROWS_PER_TRANSACTION:
                name = f"feed_rows_per_second_{size}_per_transaction"
                figures[name], figures["feed_cpu_us_per_row"] = feed_rate(source, writer, size)
            writer.execute("ANALYZE TABLE items")
            figures |= query_times(source)
            figures |= cut_times(source)
    return figures


def feed_rate(source: Source, writer: Any, size: int) -> tuple[int, float]:
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
    """Milliseconds to open and close a cut, connection included."""
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        with source.cut(["items"]):
            pass
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


def _fill(writer: Any, count: int, size: int) -> None:
    writer.execute(
        "CREATE OR REPLACE PROCEDURE fill(total BIGINT, size BIGINT) BEGIN "
        "FOR step IN 0 .. (total - 1) DIV size DO INSERT INTO items "
        "SELECT n, CONCAT('item ', n), n / 100.0, n % 7 FROM "
        "(SELECT step * size + seq AS n FROM seq_0_to_999 WHERE seq < size) numbers "
        "WHERE n < total; COMMIT; END FOR; END"
    )
    writer.execute("SET autocommit = 0")
    writer.execute(f"CALL fill({count}, {size})")
    writer.execute("SET autocommit = 1")


def main() -> None:
    figures = measure()
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        for name, value in figures.items():
            sys.stdout.write(f"{name:45} {value}\n")


if __name__ == "__main__":
    main()
