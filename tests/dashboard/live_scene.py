"""A PostgreSQL server and a SQLite file, writers at both, and ``viewkeeper run --ui`` over them."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import psycopg

from viewkeeper.testing.postgres import EmbeddedPostgres

ORDERS, CUSTOMERS, REGIONS = 400, 60, 6
PAUSE_SECONDS = 0.15

_SHOP = f"""
CREATE TABLE customers (
  customer_id bigint PRIMARY KEY, name text NOT NULL, region_id bigint NOT NULL, phone text);
CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id bigint NOT NULL, quantity bigint NOT NULL);
INSERT INTO customers SELECT n, 'customer ' || n, 1 + n % {REGIONS}, '555 ' || n FROM generate_series(1, {CUSTOMERS}) n;
INSERT INTO orders SELECT n, 1 + n % {CUSTOMERS}, 1 + n % 5 FROM generate_series(1, {ORDERS}) n;
"""
_VIEWS = {
    "contacts": """\
-- How to reach customers. It may do without their phones, but somebody must say so.
-- consistency: complete
-- dispensable: phone
-- evolve: approve
SELECT c.customer_id, c.name, c.phone
FROM shop.customers c
""",
    "sales": """\
-- What was sold to whom.
-- consistency: complete
-- freshness: 30 s
SELECT o.order_id, c.name, o.quantity
FROM shop.orders o
JOIN shop.customers c ON o.customer_id = c.customer_id
""",
    "addresses": """\
-- Where customers are: a join of two databases.
-- consistency: complete
SELECT c.customer_id, c.name, r.region
FROM shop.customers c
JOIN depot.regions r ON c.region_id = r.region_id
""",
}


class LiveScene:
    """Everything is started on construction; leaving the ``with`` ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres = EmbeddedPostgres()
        self._run: subprocess.Popen[str] | None = None
        self._said: deque[str] = deque(maxlen=9)
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        # The newest order that is certainly committed; orders are written one by one, in order.
        self.newest_order = ORDERS
        try:
            self._fill()
            self.url = self._start()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._writer.is_alive():
            self._writer.join()
        self.stop_run()
        self.postgres.stop()

    def stop_run(self) -> None:
        """As with Ctrl-C."""
        if self._run is not None:
            ended = self._run.poll()
            if ended is not None:
                print(f"the run ended by itself, with {ended}", *self._said)  # noqa: T201
            self._run.send_signal(signal.SIGTERM)
            self._run.wait()
            self._run = None

    def _fill(self) -> None:
        (self.folder / "views").mkdir(parents=True)
        self.postgres.run_script(_SHOP)
        with closing(sqlite3.connect(self.folder / "depot.db")) as depot:
            depot.execute(
                "CREATE TABLE regions (region_id INTEGER PRIMARY KEY, region TEXT NOT NULL)"
            )
            rows = [(n, f"region {n}") for n in range(1, REGIONS + 1)]
            depot.executemany("INSERT INTO regions VALUES (?, ?)", rows)
            depot.commit()
        for name, text in _VIEWS.items():
            (self.folder / "views" / f"{name}.sql").write_text(text)
        (self.folder / "viewkeeper.toml").write_text(
            '[spark]\nmaster = "local[1]"\n'
            f'[sources.shop]\nurl = "{self.postgres.url()}"\n'
            '[sources.depot]\nurl = "sqlite:///depot.db"\n'
        )

    def _start(self) -> str:
        words = ["run", "--ui", "--ui-port", "0", "--allow-setup", "--json", "--project"]
        self._run = subprocess.Popen(
            [sys.executable, "-m", "viewkeeper", *words, str(self.folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
        url = str(self._event("dashboard")["url"])
        self._event("loaded")
        # Only the last events are kept: a full pipe must not hold the run up.
        threading.Thread(target=self._said.extend, args=(self._run.stdout,), daemon=True).start()
        return url

    def _event(self, wanted: str) -> dict[str, Any]:
        assert self._run is not None
        assert self._run.stdout is not None
        for line in self._run.stdout:
            event: dict[str, Any] = json.loads(line)
            if event.get("event") == wanted:
                return event
            assert "error" not in event, event
        raise AssertionError(f"the run ended before it was {wanted}")

    def _write(self) -> None:
        """One order after the other, and now and then a region; a server that is away is waited for."""
        while not self._ended.wait(PAUSE_SECONDS):
            with suppress(psycopg.OperationalError), psycopg.connect(self.postgres.url()) as shop:
                number = self._next_order(shop)
                values = (number, 1 + number % CUSTOMERS, 1 + number % 5)
                shop.execute("INSERT INTO orders VALUES (%s, %s, %s)", values)
                shop.commit()
                self.newest_order = number
            if self.newest_order % 3 == 0:
                with closing(sqlite3.connect(self.folder / "depot.db", timeout=30)) as depot:
                    region = 1 + self.newest_order % REGIONS
                    told = f"region {region}, as of order {self.newest_order}"
                    depot.execute(
                        "UPDATE regions SET region = ? WHERE region_id = ?", (told, region)
                    )
                    depot.commit()

    def _next_order(self, shop: psycopg.Connection[Any]) -> int:
        found = shop.execute("SELECT max(order_id) FROM orders").fetchone()
        assert found is not None
        return int(found[0]) + 1
