"""SQLite's part of `make bench-sources`: the feed, queries at a cut, and what triggers cost writers.

Run alone: python benchmarks/sources_sqlite.py [--json]
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from viewkeeper.sources.interface import KeyedRead, SourceTransaction
from viewkeeper.sources.opening import open_source

ROWS = 100_000
ROWS_PER_TRANSACTION = (1, 10, 1_000)
KEY_COUNTS = (1, 1_000, 100_000)
TABLE = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10,2), qty INTEGER)"


def measure() -> dict[str, Any]:
    """Every figure, by name."""
    figures: dict[str, Any] = {"kind": "sqlite", "sqlite": sqlite3.sqlite_version}
    for size in ROWS_PER_TRANSACTION:
        wall, cpu = feed_rate(size)
        figures[f"feed_rows_per_second_{size}_per_transaction"] = wall
        # On a machine with other work to do, this is the figure that says something.
        figures[f"feed_rows_per_cpu_second_{size}_per_transaction"] = cpu
    figures |= query_times()
    figures |= writer_costs()
    return figures


def feed_rate(size: int) -> tuple[int, int]:
    """Rows per second of a feed that is behind by all of them, by the clock and by CPU time."""
    count = ROWS if size > 1 else ROWS // 5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        writer = _database(path)
        # The WAL keeps what tells transactions apart, as it does for a feed that keeps up.
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        with open_source("bench", f"sqlite:///{path}", allow_setup=True) as source:
            source.setup(["items"])
            start = source.start_position()
            _fill(writer, count, size)
            begin, cpu, rows, transactions = time.perf_counter(), time.process_time(), 0, 0
            with source.feed(["items"], start) as feed:
                while rows < count:
                    for item in feed.poll(5.0):
                        if isinstance(item, SourceTransaction):
                            transactions += 1
                            rows += sum(len(c.inserted) + len(c.deleted) for c in item.changes)
            elapsed, spent = time.perf_counter() - begin, time.process_time() - cpu
        writer.close()
    if transactions != -(-count // size):
        raise SystemExit(f"the feed gave {transactions} transactions, {count // size} were written")
    return round(rows / elapsed), round(rows / spent)


def query_times() -> dict[str, float]:
    """Milliseconds for a cut and one keyed read, and for reading everything."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        writer = _database(path)
        _fill(writer, ROWS, 10_000)
        with open_source("bench", f"sqlite:///{path}", allow_setup=True) as source:
            source.setup(["items"])
            for count in KEY_COUNTS:
                ids = random.Random(1).sample(range(ROWS), count)
                keys = pa.table({"id": pa.array(ids, pa.int64())})
                question = KeyedRead("items", ("id", "name", "qty"), ("id",), keys)
                figures[f"query_ms_{count}_keys"] = _best(source, question, count)
            whole = KeyedRead("items", ("id", "name", "price", "qty"))
            figures["read_rows_per_second"] = round(ROWS / _best(source, whole, ROWS) * 1e3)
        writer.close()
    return figures


def writer_costs() -> dict[str, float]:
    """Microseconds per row for the source's own writer, without and with our triggers."""
    figures = {}
    for label in ("without", "with"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            writer = _database(path)
            if label == "with":
                with open_source("bench", f"sqlite:///{path}", allow_setup=True) as source:
                    source.setup(["items"])
            count = ROWS // 5
            begin = time.perf_counter()
            _fill(writer, count, 1_000)
            inserted = time.perf_counter()
            writer.execute("BEGIN")
            for number in range(count):
                writer.execute("UPDATE items SET qty = qty + 1 WHERE id = ?", (number,))
            writer.execute("COMMIT")
            updated = time.perf_counter()
            figures[f"insert_us_{label}_triggers"] = round((inserted - begin) / count * 1e6, 1)
            figures[f"update_us_{label}_triggers"] = round((updated - inserted) / count * 1e6, 1)
            writer.close()
    return figures


def _best(source: Any, question: KeyedRead, expected: int) -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        with source.cut(["items"]) as cut:
            found = sum(batch.num_rows for batch in cut.read(question))
        times.append((time.perf_counter() - begin) * 1e3)
        if found != expected:
            raise SystemExit(f"{found} rows found, {expected} expected")
    return round(min(times), 2)


def _database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(TABLE)
    return connection


def _fill(connection: sqlite3.Connection, count: int, size: int) -> None:
    for first in range(0, count, size):
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?)",
            ((n, f"item {n}", n / 100, n % 7) for n in range(first, min(first + size, count))),
        )
        connection.execute("COMMIT")


def main() -> None:
    figures = measure()
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        return
    for name, value in figures.items():
        sys.stdout.write(f"{name:<45} {value:>12,}\n" if name not in ("kind", "sqlite") else "")


if __name__ == "__main__":
    main()
