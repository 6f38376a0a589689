"""Writers whose every transaction is known: the histories that the judge believes (`witnessing.books`).

Each source has one thread that commits. The tables are read again after every commit, also after one
whose outcome is not known because the server was killed.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pymysql

from chaos.scenery import BULKY, SCHEMAS, SOURCES
from chaos.traffic import Abort, Traffic
from chaos.world import World
from live.sources.rig import Writer
from viewkeeper.algebra import Bag, Schema
from viewkeeper.consistency import SourceHistories
from viewkeeper.views import RelationName
from witnessing.books import Books

CONFLICTS = (psycopg.errors.IntegrityError, pymysql.err.IntegrityError, sqlite3.IntegrityError)
LOST = (
    psycopg.OperationalError, psycopg.InterfaceError, pymysql.err.OperationalError,
    pymysql.err.InterfaceError, pymysql.err.InternalError, ConnectionError,
)  # fmt: skip
# A writer that waits for its server longer than this waits for ever.
PAUSE_SECONDS_MAX = 120.0
# On average between two transactions of a source.
PAUSE_SECONDS = {"shop": 0.12, "crm": 0.3, "geo": 0.6}


class Witness:
    """Writes while it is told to, and remembers since the last `begin_history`."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.traffic = Traffic(seed)
        self._pauses = {source: random.Random(f"{seed} pause {source}") for source in SOURCES}
        self.books = Books(SCHEMAS, self._read)
        self.locks = self.books.locks
        self._writers: dict[str, Writer] = {}
        self._go = threading.Event()
        self._ending = threading.Event()
        self._committed = threading.Condition()
        self.transactions = 0
        self.stall_seconds_max = 0.0
        self.errors: list[str] = []
        # What the views over tables that are too large should be, after each of their transactions.
        self.bulk_states: dict[str, list[frozenset[tuple[int, ...]]]] = {}
        self._threads = [
            threading.Thread(target=self._write, args=(source,), name=f"writer-{source}")
            for source in SOURCES
        ]
        for source in SOURCES:
            self._writers[source] = world.writer(source)
        self.begin_history()
        for thread in self._threads:
            thread.start()

    # -- when ---------------------------------------------------------------------------------------

    def resume(self) -> None:
        self._go.set()

    def pause(self) -> None:
        """Returns when nobody is writing any more; raises when somebody does not come back."""
        self._go.clear()
        for source, lock in self.locks.items():
            assert lock.acquire(timeout=PAUSE_SECONDS_MAX), (
                f"the writer at {source} does not come back"
            )
            lock.release()

    def await_commits(self, number: int, seconds_max: float) -> None:
        """Until so many more transactions are committed, somewhere; or that time is over."""
        target = self.transactions + number
        with self._committed:
            self._committed.wait_for(lambda: self.transactions >= target, seconds_max)

    def close(self) -> None:
        self._ending.set()
        self._go.set()
        for thread in self._threads:
            thread.join()
        for writer in self._writers.values():
            with contextlib.suppress(Exception):
                writer.close()

    # -- what ---------------------------------------------------------------------------------------

    def begin_history(self) -> None:
        """What is there now is the beginning. To be called while nobody writes."""
        self.books.begin(self._writers)
        self.bulk_states = {view: [self._bulk(view)] for view in BULKY}

    @property
    def now(self) -> dict[RelationName, Bag]:
        return self.books.now

    def histories(self, relations: tuple[RelationName, ...]) -> SourceHistories:
        return self.books.histories(relations)

    def record(self, source: str, writer: Writer) -> None:
        """Something was committed, or perhaps was: see what. Holding the source's lock."""
        self.books.record(source, writer)
        with self._committed:
            self.transactions += 1
            self._committed.notify_all()

    def record_bulk(self, view: str) -> None:
        self.bulk_states[view].append(self._bulk(view))
        with self._committed:
            self.transactions += 1
            self._committed.notify_all()

    @contextlib.contextmanager
    def owner(self, source: str) -> Iterator[Writer]:
        """A client for something special (DDL, a restore), while the source's writer waits.

        What it commits is recorded as one transaction, if it changed rows.
        """
        with self.locks[source]:
            with self.world.client(source) as client:
                yield client
            with self.world.client(source) as client:
                self.record(source, client)

    def reopen(self, source: str) -> None:
        """A new connection for the writer; holding the lock."""
        with contextlib.suppress(Exception):
            self._writers[source].close()
        self._writers[source] = self.world.writer(source)

    def _read(self, writer: Writer, name: RelationName, schema: Schema) -> list[tuple[Any, ...]]:
        """A relation under the names that its table and columns have now."""
        table, columns = self.traffic.names[name]
        return [tuple(row) for row in writer.fetch(f"SELECT {', '.join(columns)} FROM {table}")]

    def _bulk(self, view: str) -> frozenset[tuple[int, ...]]:
        source, _ = BULKY[view]
        with self.world.client(source) as client:
            rows = client.fetch("SELECT grp, COUNT(*), SUM(val) FROM bulk GROUP BY grp")
        return frozenset(tuple(int(value) for value in row) for row in rows)

    # -- the writers' threads -----------------------------------------------------------------------

    def _write(self, source: str) -> None:
        while not self._ending.is_set():
            self._go.wait()
            with self.locks[source]:
                if self._go.is_set() and not self._ending.is_set():
                    self._one(source)
            self._ending.wait(self._pauses[source].expovariate(1 / PAUSE_SECONDS[source]))

    def _one(self, source: str) -> None:
        started = time.monotonic()
        try:
            self._transaction(source, self.traffic.work(source))
        except LOST as error:
            if source not in self.world.outages:
                self.errors.append(f"a writer at {source} met {type(error).__name__}: {error}")
            self._reconnected(source)
        except Exception as error:
            self.errors.append(f"a writer at {source} met {type(error).__name__}: {error}")
            self._reconnected(source)
        if source not in self.world.outages:
            self.stall_seconds_max = max(self.stall_seconds_max, time.monotonic() - started)

    def _transaction(self, source: str, work: Callable[[Writer], None]) -> None:
        writer = self._writers[source]
        writer.begin()
        try:
            work(writer)
        except (Abort, *CONFLICTS):
            writer.abort()
            return
        writer.commit()
        self.record(source, writer)

    def _reconnected(self, source: str) -> None:
        """Until the source can be written to again; what the last commit did is found out there."""
        while not self._ending.is_set():
            try:
                self.reopen(source)
                self.record(source, self._writers[source])
                return
            except (*LOST, psycopg.Error, pymysql.MySQLError):
                self._ending.wait(0.2)
