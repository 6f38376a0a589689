"""The people of the shop: one writer per source, who knows nothing of the others.

They order, cancel, move, rename and re-price, often on the same few keys, so that changes of different
sources meet in the same rows of a view. Every transaction that changed something is counted.
"""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing

import psycopg

from viewkeeper.demo.scenery import FILE_SOURCE, ROWS, Scene

TRANSACTIONS_PER_SECOND = 7.0  # each

# One transaction: statements with their parameters, in the paramstyle `%s` or `?` of its source.
Statement = tuple[str, tuple[object, ...]]


class Writers:
    """Started once, stopped once. An error of a writer is raised by `stop`."""

    def __init__(self, scene: Scene, seed: int = 1) -> None:
        self._stop = threading.Event()
        self._errors: list[Exception] = []
        self._counts = dict.fromkeys(scene.urls, 0)
        self._threads = [
            threading.Thread(
                target=self._run, args=(scene, source, random.Random(seed + n)), daemon=True
            )
            for n, source in enumerate(scene.urls)
        ]

    @property
    def committed(self) -> Mapping[str, int]:
        """Transactions by source, so far."""
        return dict(self._counts)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let everybody finish the transaction at hand. Harmless when repeated or never started."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self, scene: Scene, source: str, rng: random.Random) -> None:
        try:
            if source == FILE_SOURCE:
                self._write_file(scene, rng)
            else:
                self._write_server(scene.urls[source], source, rng)
        except Exception as error:  # told by `stop`: a thread has nobody to tell
            self._errors.append(error)

    def _write_server(self, url: str, source: str, rng: random.Random) -> None:
        business = {"shop": _Orders(rng).next, "crm": _Customers(rng).next}[source]
        with psycopg.connect(url) as connection:
            self._tick(source, rng, lambda: _executed(connection, business()))

    def _write_file(self, scene: Scene, rng: random.Random) -> None:
        depot = _Depot(rng)
        with closing(sqlite3.connect(scene.file, timeout=30)) as connection:
            # While the run is dead nobody watches: its transactions can be told apart afterwards only
            # if the WAL has not started over, however long a busy machine takes to start Spark.
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            self._tick(FILE_SOURCE, rng, lambda: _executed(connection, depot.next()))

    def _tick(self, source: str, rng: random.Random, write: Callable[[], bool]) -> None:
        while not self._stop.wait(rng.expovariate(TRANSACTIONS_PER_SECOND)):
            if write():
                self._counts[source] += 1


def _executed(
    connection: psycopg.Connection | sqlite3.Connection, statements: list[Statement]
) -> bool:
    """One transaction; whether it changed anything."""
    rows = sum(connection.execute(sql, values).rowcount for sql, values in statements)
    connection.commit()
    return rows > 0


class _Orders:
    """Orders come, change and go; a basket is several rows in one transaction."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._last = ROWS["orders"]

    def next(self) -> list[Statement]:
        rng = self._rng
        match rng.random():
            case chance if chance < 0.55:
                customer = _popular(rng, ROWS["customers"])
                return [self._order(customer) for _ in range(rng.randint(1, 3))]
            case chance if chance < 0.85:
                order = rng.randint(max(1, self._last - 50), self._last)
                sql = "UPDATE orders SET quantity = quantity %% 9 + 1 WHERE order_id = %s"
                return [(sql, (order,))]
            case _:
                return [("DELETE FROM orders WHERE order_id = %s", (rng.randint(1, self._last),))]

    def _order(self, customer: int) -> Statement:
        self._last += 1
        values = (
            self._last,
            customer,
            _popular(self._rng, ROWS["products"]),
            self._rng.randint(1, 5),
        )
        return ("INSERT INTO orders VALUES (%s, %s, %s, %s)", values)


class _Customers:
    """Customers move and change their names; one is brought by another now and then."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = 0

    def next(self) -> list[Statement]:
        rng, customer = self._rng, _popular(self._rng, ROWS["customers"])
        if rng.random() < 0.5:
            sql = "UPDATE customers SET region_id = region_id %% %s + 1 WHERE customer_id = %s"
            return [(sql, (ROWS["regions"], customer))]
        if rng.random() < 0.5:
            self._names += 1
            sql = "UPDATE customers SET name = %s WHERE customer_id = %s"
            return [(sql, (f"customer {customer} ({self._names})", customer))]
        sql = (
            "UPDATE customers SET referred_by = coalesce(referred_by, 0) %% 100 + 1 "
            "WHERE customer_id = %s"
        )
        return [(sql, (customer,))]


class _Depot:
    """Prices go up and down; a region gets a new name now and then."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = 0

    def next(self) -> list[Statement]:
        if self._rng.random() < 0.9:
            sql = "UPDATE products SET price = price % 200 + 1 WHERE product_id = ?"
            return [(sql, (self._rng.randint(20, ROWS["products"]),))]
        self._names += 1
        region = self._rng.randint(1, ROWS["regions"])
        sql = "UPDATE regions SET region = ? WHERE region_id = ?"
        return [(sql, (f"region {region} ({self._names})", region))]


def _popular(rng: random.Random, upto: int) -> int:
    """A key, most often one of the first few: that is where changes of two sources meet."""
    return rng.randint(1, 10) if rng.random() < 0.3 else rng.randint(1, upto)
