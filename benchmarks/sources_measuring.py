"""What every kind of source is measured by: a feed that is behind, keyed reads, cuts.

All of it on one relation, ``items (id, name, price, qty)``, that the kind has filled.
"""

from __future__ import annotations

import random
import statistics
import time

import pyarrow as pa

from viewkeeper.sources.interface import KeyedRead, Position, Source, SourceTransaction

ROWS_PER_TRANSACTION = (1, 10, 1_000)
KEY_COUNTS = (1, 1_000, 100_000)


def feed_times(source: Source, start: Position, count: int, size: int) -> tuple[float, float]:
    """Seconds, by the clock and of CPU, in which a feed catches up with so many rows.

    They were written after ``start``, ``size`` of them in each transaction.
    """
    rows = transactions = 0
    with source.feed(["items"], start) as feed:
        begin, cpu = time.perf_counter(), time.process_time()
        while rows < count:
            for item in feed.poll(5.0):
                if isinstance(item, SourceTransaction):
                    transactions += 1
                    rows += sum(len(c.inserted) + len(c.deleted) for c in item.changes)
        elapsed, spent = time.perf_counter() - begin, time.process_time() - cpu
        feed.confirm(feed.position)
    if transactions != -(-count // size):
        raise SystemExit(f"the feed gave {transactions} transactions, {count // size} were written")
    return elapsed, spent


def query_times(source: Source, rows: int) -> dict[str, float]:
    """Milliseconds for a cut and one keyed read, and rows per second when all are read."""
    figures: dict[str, float] = {}
    for count in KEY_COUNTS:
        ids = random.Random(1).sample(range(rows), count)
        keys = pa.table({"id": pa.array(ids, pa.int64())})
        question = KeyedRead("items", ("id", "name", "qty"), ("id",), keys)
        figures[f"query_ms_{count}_keys"] = _best(source, question, count)
    whole = KeyedRead("items", ("id", "name", "price", "qty"))
    figures["read_rows_per_second"] = round(rows / _best(source, whole, rows) * 1e3)
    return figures


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


def cut_times(source: Source) -> dict[str, float]:
    """Milliseconds to open and close a cut, connection included where it has one of its own."""
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        source.cut(["items"]).close()
        times.append((time.perf_counter() - begin) * 1e3)
    return {"cut_ms_median": round(statistics.median(times), 2)}
