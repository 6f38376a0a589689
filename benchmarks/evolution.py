"""What a schema change costs a live view: seconds and rows moved, beside a full reload of the same view.

Three databases as in `pipeline.py`, writers ticking all the while. After each change the view is audited.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
from pipeline import Rig

from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.project.keeper import Keeper
from viewkeeper.run_events import RunEvent, ViewEvolved

VIEW = """
-- dispensable: note
-- extent: any
SELECT o.o_id, o.qty, o.price, o.note, c.cust_id, c.name, r.region_id, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""
KNOWLEDGE = """
[[knowledge.replacements]]
relation = "geo.regions"
by = "crm.areas"
containment = "equal"
attributes = { region_id = "area_id", rname = "label" }
"""
STEPS = (
    ("rename a column", "crm", "ALTER TABLE customers RENAME COLUMN name TO full_name"),
    ("rename a table", "crm", "ALTER TABLE customers RENAME TO clients"),
    ("add a column", "shop", "ALTER TABLE orders ADD COLUMN colour text"),
    ("widen a type", "shop", "ALTER TABLE orders ALTER COLUMN price TYPE numeric(10, 2)"),
    ("drop a dispensable column", "shop", "ALTER TABLE orders DROP COLUMN note"),
    ("drop a table that is replaced", "geo", "DROP TABLE regions"),
)


def prepared(stack: contextlib.ExitStack, orders: int) -> Rig:
    rig = Rig(stack, orders)
    with psycopg.connect(rig.shop.url()) as db:
        db.execute("ALTER TABLE orders ADD COLUMN note text DEFAULT 'as usual'")
        db.execute("ALTER TABLE orders ADD COLUMN price numeric(6, 2) DEFAULT 1.50")
    with psycopg.connect(rig.crm.url()) as db:
        db.execute("CREATE TABLE areas (area_id bigint PRIMARY KEY, label text)")
        db.execute(
            "INSERT INTO areas SELECT n, 'region ' || n FROM generate_series(0, %s) n",
            (rig.regions - 1,),
        )
    (rig.folder / "views" / "sales.sql").write_text(VIEW)
    file = rig.folder / "viewkeeper.toml"
    file.write_text(file.read_text() + KNOWLEDGE)
    return rig


class Writers:
    """New orders, steadily, under whatever shape the table has."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._stop = rig, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._rig.shop.url(), autocommit=True) as db:
            number = self._rig.orders
            while not self._stop.wait(0.02):
                number += 1
                values = (number, number % self._rig.customers, number % 9)
                db.execute("INSERT INTO orders (o_id, cust_id, qty) VALUES (%s, %s, %s)", values)


def run(rig: Rig, source: str, statement: str) -> None:
    if source == "geo":
        lite = sqlite3.connect(rig.folder / "geo.db", timeout=60)
        lite.execute(statement)
        lite.commit()
        lite.close()
        return
    with psycopg.connect(getattr(rig, source).url(), autocommit=True) as db:
        db.execute(statement)


def measured(orders: int) -> list[dict[str, Any]]:
    results = []
    events: list[RunEvent] = []
    with contextlib.ExitStack() as stack:
        rig = prepared(stack, orders)
        keeper = stack.enter_context(Keeper.open(rig.folder, allow_setup=True))
        pipeline = stack.enter_context(keeper.pipeline(events.append))
        started = time.perf_counter()
        pipeline.load()
        reload_seconds = time.perf_counter() - started
        reload_rows = rig.orders + rig.customers + rig.regions
        stack.enter_context(Writers(rig))
        for what, source, statement in STEPS:
            events.clear()
            began = time.perf_counter()
            run(rig, source, statement)
            targets = pipeline.committed_now()
            while not pipeline.has_applied(targets) or not events:
                pipeline.cycle(0.05)
            seconds = time.perf_counter() - began
            moved = sum(e.rows_read or 0 for e in events if isinstance(e, ViewEvolved))
            audit = audit_view(pipeline, keeper.warehouse(), "sales")
            results.append(
                {
                    "change": what,
                    "seconds": round(seconds, 2),
                    "rows_moved": moved,
                    "reload_seconds": round(reload_seconds, 2),
                    "reload_rows": reload_rows,
                    "audit": "equal" if audit.is_equal else "different",
                }
            )
            print(json.dumps(results[-1]), file=sys.stderr)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = measured(options.orders)
    print(f"{'change':<32} {'s':>7} {'rows moved':>11} {'reload s':>9} {'reload rows':>12}  audit")
    for r in results:
        print(
            f"{r['change']:<32} {r['seconds']:>7.2f} {r['rows_moved']:>11,} "
            f"{r['reload_seconds']:>9.2f} {r['reload_rows']:>12,}  {r['audit']}"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
