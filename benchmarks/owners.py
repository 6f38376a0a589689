"""How long the owners of the sources wait for their own DDL because of us.

    python benchmarks/owners.py [--rows 1000000] [--seconds 30] [--rate 100] [--json FILE]

Orders in PostgreSQL, customers in MariaDB, regions in SQLite, and one view over all of them. Writers commit at a fixed
rate. Meanwhile an owner of each database alters the table that the view reads, again and again, and each statement
is timed: first while nothing of ours is there, then beside a run that keeps the view, then while the view is loaded.
Only the difference to the first is ours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from viewkeeper.testing.mariadb import PrivateMariaDB
from viewkeeper.testing.postgres import EmbeddedPostgres

VIEW = """
SELECT o.o_id, o.qty, c.name, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""
TABLES = {"shop": "orders", "crm": "customers", "geo": "regions"}
# Each takes the strongest lock that its database has, and changes no row that the view has.
STATEMENTS = ("ALTER TABLE {table} ADD COLUMN extra INT", "ALTER TABLE {table} DROP COLUMN extra")
# Often enough for a figure, and seldom enough for a load to go through between two of them.
PAUSE_SECONDS = 2.0
WAIT_SECONDS_MAX = 600.0

Execute = Callable[[str], Any]


class Rig:
    """Three databases with rows in them, and a project over them."""

    def __init__(self, stack: contextlib.ExitStack, rows: int) -> None:
        self.rows, self.customers, self.regions = rows, max(rows // 10, 1), 1_000
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="viewkeeper-")))
        self._shop = stack.enter_context(EmbeddedPostgres(settings={"max_wal_size": "4GB"}))
        self._crm = stack.enter_context(PrivateMariaDB())
        with self._crm.connect(autocommit=True) as link, link.cursor() as cursor:
            cursor.execute("CREATE DATABASE crm")
        for name in TABLES:
            with self.connected(name) as execute:
                self._fill(name, execute)
        (self.folder / "views").mkdir()
        (self.folder / "views" / "sales.sql").write_text(VIEW)
        urls = {
            "shop": self._shop.url(),
            "crm": self._crm.url("crm"),
            "geo": f"sqlite:///{self.folder / 'geo.db'}",
        }
        sections = (f'[sources.{name}]\nurl = "{url}"\n' for name, url in urls.items())
        (self.folder / "viewkeeper.toml").write_text("".join(sections))

    @contextlib.contextmanager
    def connected(self, name: str) -> Iterator[Execute]:
        if name == "shop":
            with psycopg.connect(self._shop.url(), autocommit=True) as shop:
                yield shop.execute
        elif name == "crm":
            link = self._crm.connect(autocommit=True, database="crm")
            with link, link.cursor() as cursor:
                yield cursor.execute
        else:
            path = self.folder / "geo.db"
            lite = sqlite3.connect(path, timeout=WAIT_SECONDS_MAX, isolation_level=None)
            with contextlib.closing(lite):
                yield lite.execute

    def _fill(self, name: str, execute: Execute) -> None:
        if name == "shop":
            execute("CREATE TABLE orders (o_id bigint PRIMARY KEY, cust_id bigint, qty bigint)")
            series = f"generate_series(1, {self.rows}) n"
            execute(f"INSERT INTO orders SELECT n, n % {self.customers}, n % 9 FROM {series}")
        elif name == "crm":
            columns = "cust_id BIGINT PRIMARY KEY, name VARCHAR(40), region_id BIGINT"
            execute(f"CREATE TABLE customers ({columns})")
            values = f"seq, CONCAT('customer ', seq), seq % {self.regions}"
            execute(f"INSERT INTO customers SELECT {values} FROM seq_0_to_{self.customers - 1}")
        else:
            execute("PRAGMA journal_mode = WAL")
            execute("CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)")
            rows = ", ".join(f"({n}, 'region {n}')" for n in range(self.regions))
            execute(f"INSERT INTO regions VALUES {rows}")

    def change(self, name: str, rng: random.Random) -> str:
        """A statement that changes one row of the view's table."""
        if name == "shop":
            which = rng.randrange(1, self.rows + 1)
            return f"UPDATE orders SET qty = {rng.randrange(9)} WHERE o_id = {which}"
        if name == "crm":
            which = rng.randrange(self.customers)
            return f"UPDATE customers SET name = 'n{rng.random()}' WHERE cust_id = {which}"
        return f"UPDATE regions SET rname = 'r{rng.random()}' WHERE region_id = {self.regions - 1}"


class Traffic:
    """Writers at a rate, and owners who time what they do, until it is left."""

    def __init__(self, rig: Rig, rate: float) -> None:
        self._rig, self._rate = rig, rate
        self._over = threading.Event()
        self.waits: dict[str, list[float]] = {name: [] for name in TABLES}
        self.failed: list[str] = []
        kinds: tuple[Callable[[str], None], ...] = (self._write, self._alter)
        self._threads = [threading.Thread(target=k, args=(n,)) for k in kinds for n in TABLES]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _write(self, name: str) -> None:
        rng = random.Random(name)
        # Few regions: each has a thousandth of all orders.
        rate = self._rate if name != "geo" else self._rate / 100
        with self._rig.connected(name) as execute:
            while not self._over.wait(1 / rate):
                self._try(name, execute, self._rig.change(name, rng))

    def _alter(self, name: str) -> None:
        with self._rig.connected(name) as execute:
            number = 0
            while not self._over.wait(PAUSE_SECONDS) or number % 2:
                statement = STATEMENTS[number % 2].format(table=TABLES[name])
                number += 1
                began = time.perf_counter()
                self._try(name, execute, statement)
                self.waits[name].append(time.perf_counter() - began)

    def _try(self, name: str, execute: Execute, statement: str) -> None:
        try:
            execute(statement)
        except Exception as error:  # counted: nothing of an owner's may fail because of us
            self.failed.append(f"{name}: {statement}: {error}")

    def told(self) -> dict[str, Any]:
        figures = {name: _figures(waits) for name, waits in self.waits.items()}
        return {"waits": figures, "failed": len(self.failed), "first_failed": self.failed[:3]}


def _figures(waits: list[float]) -> dict[str, float]:
    ordered = sorted(waits)
    places = {"p50": 0.5, "p99": 0.99}
    found = {name: ordered[int(len(ordered) * place)] for name, place in places.items()}
    found |= {"worst": ordered[-1]}
    return {"statements": len(ordered)} | {name: round(s, 4) for name, s in found.items()}


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run of the project; its events are lines of JSON."""
    command = [sys.executable, "-m", "viewkeeper", "run", "--allow-setup", "--json", *words]
    log = (folder / "errors.txt").open("w")
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield process
    finally:
        process.terminate()
        for _ in process.stdout or ():  # it may have more to say than a pipe holds
            pass
        process.wait()
        log.close()


def _await(process: subprocess.Popen[str], *events: str) -> bool:
    """Whether an event of these names comes before the run ends."""
    assert process.stdout is not None
    return any(json.loads(line).get("event") in events for line in process.stdout)


def measured(rows: int, seconds: float, rate: float) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": rows, "rate": rate}
    with contextlib.ExitStack() as stack:
        rig = Rig(stack, rows)
        with Traffic(rig, rate) as alone:
            time.sleep(seconds)
        found["nothing of ours"] = alone.told()
        with Traffic(rig, rate) as loading, running(rig.folder, "--until-caught-up") as run:
            found["load_seconds"] = _timed(lambda: _await(run, "loaded", "caught_up"))
        found["while it is loaded"] = loading.told()
        with running(rig.folder) as run:
            _await(run, "ready", "loaded", "batch")
            drain = threading.Thread(target=lambda: _await(run, "never"))
            drain.start()
            with Traffic(rig, rate) as beside:
                time.sleep(seconds)
            run.terminate()
            drain.join()
        found["beside a run"] = beside.told()
    return found


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return round(time.perf_counter() - began, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measured(options.rows, options.seconds, options.rate)
    print(json.dumps(found, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
