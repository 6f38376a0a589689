"""Writers whose every transaction is known, one per source."""

from __future__ import annotations

import contextlib
import random
import threading
from contextlib import closing

from live.sources.rig import Writer
from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.consistency import SourceHistories
from viewkeeper.views import RelationName
from witnessing.books import Books
from witnessing.judging import copy_name, copy_text

ORDERS = RelationName("shop", "orders")
CUSTOMERS = RelationName("crm", "customers")
REGIONS = RelationName("geo", "regions")
SCHEMAS = {
    ORDERS: Schema.of(o_id=INTEGER, cust_id=INTEGER, qty=INTEGER),
    CUSTOMERS: Schema.of(cust_id=INTEGER, name=STRING, region_id=INTEGER),
    REGIONS: Schema.of(region_id=INTEGER, rname=STRING),
}
CREATE = {
    ORDERS: "CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty BIGINT)",
    CUSTOMERS: "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50), region_id BIGINT)",
    REGIONS: "CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)",
}
VIEW = """
SELECT o.o_id, o.qty, c.name, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""
CUSTOMERS_MAX, REGIONS_MAX = 12, 3


class WitnessedWriters:
    """Three threads; each is the only writer of its source, so the order of its commits is known."""

    def __init__(self, shop, seed: int) -> None:
        self._shop = shop
        self._stop = threading.Event()
        self._rngs = {name: random.Random(f"{seed} {name}") for name in SCHEMAS}
        self._turns = dict.fromkeys(SCHEMAS, 0)
        self.books = Books(SCHEMAS)
        self.errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._writers: list[Writer] = []

    def fill(self) -> None:
        for name, statement in CREATE.items():
            self._shop.run(name.source, statement)
        rows = ", ".join(f"({n}, {n % CUSTOMERS_MAX}, {n % 5})" for n in range(40))
        self._shop.run("shop", f"INSERT INTO orders VALUES {rows}")
        rows = ", ".join(f"({n}, 'c{n}', {n % REGIONS_MAX})" for n in range(CUSTOMERS_MAX))
        self._shop.run("crm", f"INSERT INTO customers VALUES {rows}")
        rows = ", ".join(f"({n}, 'r{n}')" for n in range(REGIONS_MAX))
        self._shop.run("geo", f"INSERT INTO regions VALUES {rows}")
        with contextlib.ExitStack() as stack:
            self.books.begin(
                {
                    source: stack.enter_context(closing(database.writer()))
                    for source, database in self._shop.databases.items()
                }
            )

    def write_views(self) -> None:
        """The view, and copies of what it reads for the judge."""
        self._shop.write_view("sales", VIEW)
        for name, schema in SCHEMAS.items():
            self._shop.write_view(copy_name(name), copy_text(name, schema.names))

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._write, args=(name,), daemon=True) for name in SCHEMAS
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def close(self) -> None:
        """After the last look at the sources: SQLite forgets where one transaction ended and the
        next began when its last connection goes and nobody has read its log."""
        for writer in self._writers:
            writer.close()

    @property
    def histories(self) -> SourceHistories:
        return self.books.histories()

    def commit_alone(self, name: RelationName) -> None:
        """One transaction, by a connection that is closed at once."""
        writer = self._shop.databases[name.source].writer()
        try:
            self._commit(name, writer)
        finally:
            writer.close()

    def _write(self, name: RelationName) -> None:
        try:
            writer = self._shop.databases[name.source].writer()
            self._writers.append(writer)
            while not self._stop.is_set():
                self._commit(name, writer)
                pause = self._rngs[name].expovariate(1 / _PAUSE_SECONDS[name])
                self._stop.wait(pause)
        except BaseException as error:
            self.errors.append(error)

    def _commit(self, name: RelationName, writer: Writer) -> None:
        self._turns[name] += 1
        writer.begin()
        for sql, *parameters in _statements(name, self._rngs[name], self._turns[name]):
            writer.run(sql, *parameters)
        self.books.commit(name.source, writer)


# Dimensions change less often than facts, and every change of one touches many rows of the view.
_PAUSE_SECONDS = {ORDERS: 0.15, CUSTOMERS: 0.4, REGIONS: 1.0}


def _statements(name: RelationName, rng: random.Random, turn: int) -> list[tuple]:
    if name == ORDERS:
        insert = "INSERT INTO orders VALUES (?, ?, ?)"
        fresh = (insert, 1000 + turn, rng.randrange(CUSTOMERS_MAX), turn)
        if rng.random() < 0.6:
            return [fresh]
        return [fresh, ("DELETE FROM orders WHERE o_id = ?", rng.randrange(40))]
    if name == CUSTOMERS:
        update = "UPDATE customers SET region_id = ?, name = ? WHERE cust_id = ?"
        return [(update, rng.randrange(REGIONS_MAX), f"c {turn}", rng.randrange(CUSTOMERS_MAX))]
    return [
        (
            "UPDATE regions SET rname = ? WHERE region_id = ?",
            f"r {turn}",
            rng.randrange(REGIONS_MAX),
        )
    ]
