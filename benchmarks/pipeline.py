"""What the live pipeline reaches: a three-way join over three databases, capture included.

Orders in one PostgreSQL, customers in another, regions in SQLite. Measures the first load, how fast a
backlog of single-row transactions is worked off, freshness at a fixed rate, what is asked of the sources,
and memory. Figures of one run on one machine; compare them only with each other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psycopg

from viewkeeper.engine.integrator import singly
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.project.keeper import Keeper
from viewkeeper.testing.postgres import EmbeddedPostgres

VIEW = """
SELECT o.o_id, o.qty, c.name, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""


class Rig:
    """Three databases of the given sizes, and a project over them."""

    def __init__(self, stack: contextlib.ExitStack, orders: int) -> None:
        self.orders, self.customers, self.regions = orders, orders // 10, 1_000
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="viewkeeper-")))
        settings = {"shared_buffers": "256MB", "max_wal_size": "4GB"}
        self.shop = stack.enter_context(EmbeddedPostgres(settings=settings))
        self.crm = stack.enter_context(EmbeddedPostgres(settings=settings))
        self.next_order = orders
        self._fill()
        (self.folder / "views").mkdir()
        (self.folder / "views" / "sales.sql").write_text(VIEW)
        (self.folder / "viewkeeper.toml").write_text(
            f'[sources.shop]\nurl = "{self.shop.url()}"\n'
            f'[sources.crm]\nurl = "{self.crm.url()}"\n'
            f'[sources.geo]\nurl = "sqlite:///{self.folder / "geo.db"}"\n'
        )

    def _fill(self) -> None:
        with psycopg.connect(self.shop.url()) as db:
            db.execute("CREATE TABLE orders (o_id bigint PRIMARY KEY, cust_id bigint, qty bigint)")
            db.execute(
                "INSERT INTO orders SELECT n, n %% %s, n %% 9 FROM generate_series(0, %s) n",
                (self.customers, self.orders - 1),
            )
            db.execute("CREATE INDEX ON orders (cust_id)")
        with psycopg.connect(self.crm.url()) as db:
            db.execute(
                "CREATE TABLE customers (cust_id bigint PRIMARY KEY, name text, region_id bigint)"
            )
            db.execute(
                "INSERT INTO customers SELECT n, 'customer ' || n, n %% %s FROM generate_series(0, %s) n",
                (self.regions, self.customers - 1),
            )
            db.execute("CREATE INDEX ON customers (region_id)")
        lite = sqlite3.connect(self.folder / "geo.db")
        lite.execute("PRAGMA journal_mode = WAL")
        lite.execute("CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)")
        rows = [(n, f"region {n}") for n in range(self.regions)]
        lite.executemany("INSERT INTO regions VALUES (?, ?)", rows)
        lite.commit()
        lite.close()

    def write(self, transactions: int, rate: float | None = None, seed: int = 1) -> None:
        """Single-row transactions: mostly orders in and out, some customers, few regions."""
        rng = random.Random(seed)
        with (
            psycopg.connect(self.shop.url(), autocommit=True) as shop,
            psycopg.connect(self.crm.url(), autocommit=True) as crm,
        ):
            lite = sqlite3.connect(self.folder / "geo.db", timeout=60, isolation_level=None)
            for db in (shop, crm):
                db.execute("SET synchronous_commit = off")
            started = time.monotonic()
            for number in range(transactions):
                if rate is not None:
                    time.sleep(max(0.0, started + number / rate - time.monotonic()))
                self._one(rng, shop, crm, lite)
            lite.close()

    def _one(self, rng: random.Random, shop: Any, crm: Any, lite: Any) -> None:
        kind = rng.random()
        if kind < 0.80:
            self.next_order += 1
            values = (self.next_order, rng.randrange(self.customers), rng.randrange(9))
            shop.execute("INSERT INTO orders VALUES (%s, %s, %s)", values)
        elif kind < 0.90:
            shop.execute("DELETE FROM orders WHERE o_id = %s", (rng.randrange(self.orders),))
        elif kind < 0.999:
            values = (rng.randrange(self.regions), rng.randrange(self.customers))
            crm.execute("UPDATE customers SET region_id = %s WHERE cust_id = %s", values)
        else:
            values = (f"region {rng.random()}", rng.randrange(self.regions))
            lite.execute("UPDATE regions SET rname = ? WHERE region_id = ?", values)


def catch_up(pipeline: Pipeline) -> dict[str, Any]:
    """Set a pipeline going that is behind, and wait until it no longer is: capture included."""
    targets = pipeline.committed_now()
    started = time.perf_counter()
    pipeline.load()
    phases: dict[str, float] = {}
    transactions = queries = rows = batches = 0
    seconds = 0.0
    done, cycle = False, None
    while not done or cycle is not None:
        # What was applied is reported by then: one more look takes in the last of it.
        done = done or pipeline.has_applied(targets)
        cycle = pipeline.cycle(0 if done else 0.05)
        if cycle is not None:
            batches += 1
            transactions += cycle.transactions
            queries += sum(a.queries for a in cycle.asked.values())
            rows += sum(a.rows for a in cycle.asked.values())
            seconds = time.perf_counter() - started
            for phase, spent in cycle.seconds.items():
                phases[phase] = phases.get(phase, 0.0) + spent
    return {
        "transactions": transactions,
        "seconds": round(seconds, 3),
        "transactions_per_second": round(transactions / seconds, 1) if seconds else None,
        "batches": batches,
        "queries_per_transaction": round(queries / max(transactions, 1), 5),
        "rows_fetched_per_transaction": round(rows / max(transactions, 1), 2),
        "phases": {phase: round(total, 3) for phase, total in phases.items()},
    }


def freshness(
    rig: Rig, pipeline: Pipeline, transactions: int, rate: float | None
) -> dict[str, Any]:
    """Seconds from a transaction's commit at its source to the epoch that shows it.

    Without a rate one writer commits as fast as it can.
    """
    writer = threading.Thread(target=rig.write, args=(transactions, rate, 99))
    started = time.perf_counter()
    writer.start()
    ages: list[float] = []
    phases: dict[str, list[float]] = {}
    while writer.is_alive() or any(not group.is_settled for group in pipeline.groups):
        cycle = pipeline.cycle(0.05)
        if cycle is not None:
            shown = cycle.entry.committed_at
            ages += [(shown - a.origin.committed_at).total_seconds() for a in singly(cycle.batch)]
            for phase, spent in cycle.seconds.items():
                phases.setdefault(phase, []).append(spent)
    writer.join()
    ages.sort()
    return {
        "rate": rate or round(transactions / (time.perf_counter() - started)),
        "transactions": len(ages),
        "p50_seconds": round(statistics.median(ages), 3),
        "p99_seconds": round(ages[int(len(ages) * 0.99) - 1], 3),
        "batches": len(phases["commit"]),
        "phases_p50": {name: round(statistics.median(s), 3) for name, s in phases.items()},
    }


def memory_megabytes() -> dict[str, float]:
    """Resident memory of this process and of the JVM below it."""
    lines = subprocess.run(
        ["ps", "-o", "pid=,ppid=,rss=,comm=", "-A"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = {"driver": 0.0, "jvm": 0.0}
    for line in lines:
        pid, parent, rss, command = line.split(None, 3)
        if int(pid) == os.getpid():
            found["driver"] = int(rss) / 1024
        elif command.strip() == "java" and int(parent) == os.getpid():
            found["jvm"] += int(rss) / 1024
    return {name: round(value, 1) for name, value in found.items()}


def measured(orders: int, backlog: int, rate_seconds: float) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        rig = Rig(stack, orders)
        keeper = stack.enter_context(Keeper.open(rig.folder, allow_setup=True))
        started = time.perf_counter()
        with keeper.pipeline() as pipeline:
            pipeline.load()
            loaded = time.perf_counter() - started
        rig.write(200)
        with keeper.pipeline() as pipeline:
            catch_up(pipeline)  # warm
        result: dict[str, Any] = {
            "orders": orders,
            "load_seconds": round(loaded, 2),
            "load_rows_per_second": round((rig.orders + rig.customers + rig.regions) / loaded),
        }
        for name in ("backlog_cold", "backlog", "backlog_again"):
            writers = [
                threading.Thread(target=rig.write, args=(backlog // 2, None, seed))
                for seed in (hash(name) % 1000, 7)
            ]
            _serial(writers)
            with keeper.pipeline() as pipeline:
                result[name] = catch_up(pipeline)
        with keeper.pipeline() as pipeline:
            pipeline.load()
            result["freshness"] = freshness(rig, pipeline, int(100 * rate_seconds), 100)
            result["freshness_full"] = freshness(rig, pipeline, backlog // 2, None)
        result["memory_megabytes"] = memory_megabytes()
        return result


def _serial(threads: list[threading.Thread]) -> None:
    """One after the other: order numbers are handed out by one counter."""
    for thread in threads:
        thread.start()
        thread.join()


def table(results: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    print(
        f"{'orders':>10} {'load s':>8} {'txn/s':>9} {'rows/txn':>9} {'p50 s':>7} {'p99 s':>7} "
        f"{'full/s':>7} {'p50 s':>7} {'p99 s':>7} {'MB':>7}",
        file=out,
    )
    for r in results:
        memory = sum(r["memory_megabytes"].values())
        print(
            f"{r['orders']:>10,} {r['load_seconds']:>8.1f} "
            f"{r['backlog']['transactions_per_second']:>9,.0f} "
            f"{r['backlog']['rows_fetched_per_transaction']:>9.2f} "
            f"{r['freshness']['p50_seconds']:>7.2f} {r['freshness']['p99_seconds']:>7.2f} "
            f"{r['freshness_full']['rate']:>7,} {r['freshness_full']['p50_seconds']:>7.2f} "
            f"{r['freshness_full']['p99_seconds']:>7.2f} {memory:>7,.0f}",
            file=out,
        )
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--backlog", type=int, default=50_000)
    parser.add_argument("--rate-seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for orders in options.orders:
        results.append(measured(orders, options.backlog, options.rate_seconds))
        print(json.dumps(results[-1], indent=2), file=sys.stderr)
    print(table(results))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
