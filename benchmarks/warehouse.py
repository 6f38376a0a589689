"""What the warehouse costs: commits of k changed rows in a view of N rows, reads, bytes per row.

    python benchmarks/warehouse.py [--rows 10000,1000000] [--changes 1,1000] [--no-spark] [--json FILE]

A commit is one epoch of one view: data file, table version, ledger row, all made durable. Times are
the best and the median of several, in milliseconds. Reads are of the whole view at the newest state.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table as Grid

from viewkeeper.algebra.types import INTEGER, STRING, Schema, decimal_type
from viewkeeper.warehouse import (
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Retention,
    Warehouse,
    Writer,
    consolidate,
    vacuum,
)

SCHEMA = Schema.of(o_id=INTEGER, quantity=INTEGER, price=decimal_type(12, 2), customer=STRING)
REPEATS = {1: 15, 1_000: 10}
REPEATS_LARGE = 4


def rows(first: int, count: int) -> pa.Table:
    """Rows of an order view; row n is a function of n, so that it can be taken out again."""
    ids = np.arange(first, first + count, dtype=np.int64)
    return pa.table(
        {
            "o_id": ids,
            "quantity": ids * 7919 % 50,
            "price": pc.cast(
                pa.array((ids * 104729 % 100_000).astype(np.int32)), pa.decimal128(12, 2)
            ),
            "customer": pc.binary_join_element_wise(
                pa.array(["customer"] * count, pa.string()),
                pc.cast(pa.array(ids % 10_007), pa.string()),
                "-",
            ),
        }
    )


def counted(table: pa.Table, count: int) -> pa.Table:
    return table.append_column("_count", pa.array(np.full(table.num_rows, count, np.int64)))


class View:
    """A view of N rows, and changes to it: half of them go in, half of them go out."""

    def __init__(self, writer: Writer, size: int) -> None:
        self._writer = writer
        self._oldest, self._newest, self._txn = 0, size, 0
        extent = Extent(counted(rows(0, size), 1))
        writer.commit(EpochCommit(1, 0, {"v": extent}, definitions={"v": Definition(SCHEMA)}))

    def change(self, count: int) -> EpochCommit:
        self._txn += 1
        out = min(count // 2, self._newest - self._oldest)
        parts = [
            counted(rows(self._newest, count - out), 1),
            counted(rows(self._oldest, out), -1),
        ]
        self._oldest, self._newest = self._oldest + out, self._newest + count - out
        table = pa.concat_tables(parts)
        numbered = table.append_column("_txn", pa.array(np.full(table.num_rows, self._txn)))
        return EpochCommit(self._txn, self._txn, {"v": Changes(numbered)}, {"s": self._txn})


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def measured(times: list[float]) -> dict[str, float]:
    return {"best_ms": round(min(times), 1), "median_ms": round(statistics.median(times), 1)}


def reads(warehouse: Warehouse, spark: Any) -> dict[str, Any]:
    """Reading all rows without Spark, and with it (rows made and thrown away)."""
    found = {"arrow": measured([timed(lambda: warehouse.read_arrow("v")) for _ in range(3)])}
    if spark is not None:

        def by_spark() -> None:
            warehouse.read("v").write.format("noop").mode("overwrite").save()

        by_spark()  # Spark compiles its plan once
        found["spark"] = measured([timed(by_spark) for _ in range(3)])
    return found


def bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def bench(folder: Path, size: int, changes: list[int], spark: Any) -> dict[str, Any]:
    """All figures for a view of ``size`` rows."""
    warehouse = Warehouse.create(folder, spark=spark)
    with warehouse.writer() as writer:
        view = View(writer, size)
        loaded = bytes_of(folder / "views")
        commits = {}
        for count in changes:
            writer.commit(view.change(count))  # warm
            epochs = [view.change(count) for _ in range(REPEATS.get(count, REPEATS_LARGE))]
            commits[str(count)] = measured(
                [timed(lambda epoch=epoch: writer.commit(epoch)) for epoch in epochs]
            )
        log_rows = writer.latest.views["v"].log_rows
        before = reads(warehouse, spark)
        fold = timed(lambda: consolidate(writer, fold_all=True))
        after = reads(warehouse, spark)
        vacuum(writer, Retention(0, 0, 0))
        view_rows = writer.latest.views["v"].base_rows
    return {
        "rows": size,
        "commit": commits,
        "log_rows": log_rows,
        "read_before": before,
        "fold_ms": round(fold, 1),
        "read_after": after,
        "bytes_per_row_loaded": round(loaded / size, 1),
        "bytes_per_row_folded": round(bytes_of(folder / "views") / view_rows, 1),
    }


def show(results: list[dict[str, Any]], changes: list[int]) -> None:
    grid = Grid("rows in the view", *(f"commit {count:,} (ms)" for count in changes),
                "log rows", "read (ms)", "fold (ms)", "read folded (ms)", "bytes/row")  # fmt: skip
    for result in results:
        grid.add_row(
            f"{result['rows']:,}",
            *(_pair(result["commit"][str(count)]) for count in changes),
            f"{result['log_rows']:,}",
            _reads(result["read_before"]),
            f"{result['fold_ms']:,.0f}",
            _reads(result["read_after"]),
            f"{result['bytes_per_row_loaded']} / {result['bytes_per_row_folded']}",
        )
    Console(width=170).print(grid)


def _pair(times: dict[str, float]) -> str:
    return f"{times['best_ms']:,.0f} / {times['median_ms']:,.0f}"


def _reads(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {times['best_ms']:,.0f}" for name, times in found.items())


def numbers(text: str) -> list[int]:
    return [int(part.replace("_", "")) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description="What the warehouse costs.")
    parser.add_argument("--rows", type=numbers, default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--changes", type=numbers, default=[1, 1_000, 100_000])
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = parser.parse_args()
    results = []
    with ExitStack() as stack:
        spark = None
        if not chosen.no_spark:
            from viewkeeper.spark.session import SparkSettings, start_spark

            settings = SparkSettings(driver_memory="4g", quick_start=False)
            spark = stack.enter_context(start_spark(settings)).bulk
        for size in chosen.rows:
            folder = Path(tempfile.mkdtemp(prefix="viewkeeper-bench-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            results.append(bench(folder / "w", size, chosen.changes, spark))
            sys.stderr.write(f"{size:,} rows done\n")
    show(results, chosen.changes)
    if chosen.json is not None:
        machine = {"cpus": os.cpu_count(), "load_after": round(os.getloadavg()[0], 1)}
        document = {"machine": machine, "results": results}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
