"""Writers whose every transaction is known: the histories that the judge believes.

Each source has one thread that commits, so the order of commits is known. What a transaction did is not
taken from its statements: the tables are read again after every commit, also after one whose outcome
nobody told because the server was killed.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pymysql

from chaos.scenery import BULKY, SCHEMAS, SOURCES
from chaos.traffic import Abort, Traffic
from chaos.world import World
from live.sources.rig import Writer
from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories
from viewkeeper.timeline import Transaction
from viewkeeper.views import RelationName

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
        self.locks = {source: threading.RLock() for source in SOURCES}
        self._writers: dict[str, Writer] = {}
        self._go = threading.Event()
        self._ending = threading.Event()
        self._committed = threading.Condition()
        self.transactions = 0
        self.stall_seconds_max = 0.0
        self.errors: list[str] = []
        self._now: dict[RelationName, Bag] = {}
        self.initial: dict[RelationName, Bag] = {}
        self.scripts: dict[str, list[Transaction]] = {}
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
        for source in SOURCES:
            self._now |= self._contents(source, self._writers[source])
        self.initial = dict(self._now)
        self.scripts = {source: [] for source in SOURCES}
        self.bulk_states = {view: [self._bulk(view)] for view in BULKY}

    @property
    def now(self) -> dict[RelationName, Bag]:
        return dict(self._now)

    def histories(self, relations: tuple[RelationName, ...]) -> SourceHistories:
        """The transactions as far as they concern some relations, numbered anew."""
        sources = {name.source for name in relations}
        scripts: dict[str, list[Transaction]] = {source: [] for source in sources}
        for source in sources:
            for transaction in self.scripts[source]:
                changes = tuple(c for c in transaction.changes if c[0] in relations)
                if changes:
                    number = len(scripts[source]) + 1
                    scripts[source].append(Transaction(source, number, changes))
        return SourceHistories({name: self.initial[name] for name in relations}, scripts)

    def record(self, source: str, writer: Writer) -> None:
        """Something was committed, or perhaps was: see what. Holding the source's lock."""
        after = self._contents(source, writer)
        changes = tuple(
            (name, bag - self._now[name]) for name, bag in after.items() if bag != self._now[name]
        )
        self._now |= after
        if changes:
            script = self.scripts[source]
            script.append(Transaction(source, len(script) + 1, changes))
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

    def _contents(self, source: str, writer: Writer) -> dict[RelationName, Bag]:
        found = {}
        for name, schema in SCHEMAS.items():
            if name.source == source:
                table, columns = self.traffic.names[name]
                rows = writer.fetch(f"SELECT {', '.join(columns)} FROM {table}")
                found[name] = Bag.of(schema, [tuple(row) for row in rows])
        return found

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
