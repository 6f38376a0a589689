"""Writers that keep three databases busy, each with a client of its own per source."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Self

from live.sources.rig import Writer
from viewkeeper.views import RelationName
from witnessing.judging import copy_name, copy_text

ORDERS, CUSTOMERS, REGIONS = 120, 30, 6
CONFLICTS = {"IntegrityError", "UniqueViolation", "SerializationFailure", "DeadlockDetected"}

TABLES = {
    "shop": (
        "CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty BIGINT)",
        "CREATE TABLE notes (o_id BIGINT, note VARCHAR(50))",
    ),
    "crm": (
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50), region_id BIGINT)",
    ),
    "geo": ("CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)",),
}

COLUMNS = {
    RelationName("shop", "orders"): ("o_id", "cust_id", "qty"),
    RelationName("shop", "notes"): ("o_id", "note"),
    RelationName("crm", "customers"): ("cust_id", "name", "region_id"),
    RelationName("geo", "regions"): ("region_id", "rname"),
}


def write_copies(shop, *relations: str) -> None:
    """Views that are copies of relations, by which the judge finds the cut of each state."""
    for name, columns in COLUMNS.items():
        if name.relation in relations:
            shop.write_view(copy_name(name), copy_text(name, columns))


def fill(shop) -> None:
    """The tables, and rows to start with."""
    for source, statements in TABLES.items():
        shop.run(source, *statements)
    rows = [f"({n}, {n % (CUSTOMERS + 3)}, {n % 7})" for n in range(ORDERS)]
    shop.run("shop", f"INSERT INTO orders VALUES {', '.join(rows)}")
    rows = [f"({n}, 'note {n % 5}')" for n in range(0, ORDERS, 3)]
    shop.run("shop", f"INSERT INTO notes VALUES {', '.join(rows)}")
    rows = [f"({n}, 'customer {n}', {n % REGIONS})" for n in range(CUSTOMERS)]
    shop.run("crm", f"INSERT INTO customers VALUES {', '.join(rows)}")
    rows = [f"({n}, 'region {n}')" for n in range(REGIONS)]
    shop.run("geo", f"INSERT INTO regions VALUES {', '.join(rows)}")


class InBackground:
    """Writes in a thread of its own while its ``with`` lasts; ``written`` counts."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self.written = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        """Write until ``_stop`` is set."""
        raise NotImplementedError


class Traffic:
    """Threads of writers; `join` waits for their end and raises what any of them met."""

    def __init__(
        self, shop, writers: int, transactions: int, first: int = 0, pause_seconds: float = 0.0
    ) -> None:
        """``first``: the number of the first writer; writers of one number make the same keys."""
        self._pause_seconds = pause_seconds
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(shop, number, transactions), daemon=True)
            for number in range(first, first + writers)
        ]

    def start(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    @property
    def is_over(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self, shop, number: int, transactions: int) -> None:
        try:
            rng = random.Random(number)
            clients = {source: d.writer() for source, d in shop.databases.items()}
            for turn in range(transactions):
                action = rng.choices((_order, _customer, _region), (6, 3, 1))[0]
                action(shop, clients, rng, number * 100_000 + turn)
                time.sleep(rng.random() * 2 * self._pause_seconds)
            for client in clients.values():
                client.close()
        except BaseException as error:
            self._errors.append(error)


def _in_transaction(
    shop, source: str, client: Writer, rng: random.Random, work: Callable[[], None]
) -> None:
    client.begin(relaxed=rng.random() < 0.3)
    try:
        work()
    except Exception as error:
        if type(error).__name__ not in CONFLICTS:
            raise
        client.abort()  # two writers meant the same row; real ones do
        return
    if rng.random() < 0.1:
        client.abort()
    else:
        shop.commit(source, client)


def _order(shop, clients: dict[str, Writer], rng: random.Random, fresh: int) -> None:
    """New orders with notes, deletions, moves to another customer, new keys; several rows at once."""
    client = clients["shop"]

    def work() -> None:
        for step in range(rng.choice((1, 1, 1, 3))):
            kind = rng.random()
            old = rng.randrange(ORDERS)
            if kind < 0.45:
                o_id = 1_000_000 + fresh * 10 + step
                customer, qty = rng.randrange(CUSTOMERS + 3), rng.randrange(7)
                client.run("INSERT INTO orders VALUES (?, ?, ?)", o_id, customer, qty)
                client.run("INSERT INTO notes VALUES (?, ?)", o_id, f"note {rng.randrange(5)}")
            elif kind < 0.6:
                client.run("DELETE FROM orders WHERE o_id = ?", old)
                client.run("DELETE FROM notes WHERE o_id = ?", old)
            elif kind < 0.8:
                customer = rng.randrange(CUSTOMERS + 3)
                client.run("UPDATE orders SET cust_id = ? WHERE o_id = ?", customer, old)
            else:
                client.run(
                    "UPDATE orders SET qty = qty + 1 WHERE cust_id = ?", rng.randrange(CUSTOMERS)
                )

    _in_transaction(shop, "shop", client, rng, work)


def _customer(shop, clients: dict[str, Writer], rng: random.Random, fresh: int) -> None:
    client = clients["crm"]
    customer = rng.randrange(CUSTOMERS)

    def work() -> None:
        if rng.random() < 0.8:
            region = rng.choice((*range(REGIONS + 1), None))
            client.run("UPDATE customers SET region_id = ? WHERE cust_id = ?", region, customer)
        else:
            client.run("DELETE FROM customers WHERE cust_id = ?", CUSTOMERS + customer % 3)
            client.run(
                "INSERT INTO customers VALUES (?, ?, ?)",
                CUSTOMERS + customer % 3,
                f"late {fresh}",
                rng.randrange(REGIONS),
            )

    _in_transaction(shop, "crm", client, rng, work)


def _region(shop, clients: dict[str, Writer], rng: random.Random, fresh: int) -> None:
    client = clients["geo"]
    region = rng.randrange(REGIONS)

    def work() -> None:
        client.run("UPDATE regions SET rname = ? WHERE region_id = ?", f"region {fresh}", region)

    _in_transaction(shop, "geo", client, rng, work)
