"""SQLite's part of `make bench-sources`: the feed, queries at a cut, and what triggers cost writers.

Run alone: python benchmarks/sources.py --kinds sqlite
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from sources_measuring import ROWS_PER_TRANSACTION, cut_times, feed_times, query_times

from viewkeeper.sources.opening import open_source

ROWS = 100_000
TABLE = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10,2), qty INTEGER)"


def measure() -> dict[str, Any]:
    """Every figure, by name."""
    figures: dict[str, Any] = {"kind": "sqlite", "sqlite": sqlite3.sqlite_version}
    for size in ROWS_PER_TRANSACTION:
        wall, cpu = feed_rate(size)
        figures[f"feed_rows_per_second_{size}_per_transaction"] = wall
        # On a machine with other work to do, this is the figure that says something.
        figures[f"feed_rows_per_cpu_second_{size}_per_transaction"] = cpu
    figures |= read_times()
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
            elapsed, spent = feed_times(source, start, count, size)
        writer.close()
    return round(count / elapsed), round(count / spent)


def read_times() -> dict[str, float]:
    """Milliseconds for a cut and one keyed read, and for reading everything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        writer = _database(path)
        _fill(writer, ROWS, 10_000)
        with open_source("bench", f"sqlite:///{path}", allow_setup=True) as source:
            source.setup(["items"])
            figures = query_times(source, ROWS) | cut_times(source)
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
