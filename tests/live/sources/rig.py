"""What the behaviour suite asks of a kind of source: a server, fresh databases, writers.

Every kind has a file ``rig_<kind>.py`` with a class `Rig`; the suite finds it by that name. The SQL
that the suite sends is what all kinds share; ``?`` stands for a parameter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from viewkeeper.sources.interface import Source
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.server import LOOPBACK, DatabaseServer


class Writer(ABC):
    """One client of the source, in explicit transactions. Used by one thread at a time."""

    @abstractmethod
    def begin(self, *, relaxed: bool = False) -> None:
        """``relaxed``: the commit may return before it is on disk, where the kind can do that."""

    @abstractmethod
    def run(self, sql: str, *parameters: Any) -> None:
        """One statement; outside a transaction it commits by itself (DDL does so everywhere)."""

    @abstractmethod
    def fetch(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def replace(self, table: str, key: str, row: dict[str, Any]) -> None:
        """Put the row in, in the place of one with the same key if there is one: REPLACE, upsert."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def savepoint(self, name: str) -> None:
        self.run(f"SAVEPOINT {name}")

    def rollback_to(self, name: str) -> None:
        self.run(f"ROLLBACK TO SAVEPOINT {name}")


class ClientWriter(Writer):
    """A writer with a connection and a cursor of Python's usual kind, which commits by itself."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def begin(self, *, relaxed: bool = False) -> None:
        self._cursor.execute("BEGIN")

    def run(self, sql: str, *parameters: Any) -> None:
        if parameters:
            self._cursor.execute(sql.replace("?", "%s"), parameters)
        else:
            self._cursor.execute(sql)

    def fetch(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self.run(sql, *parameters)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def replace(self, table: str, key: str, row: dict[str, Any]) -> None:
        columns, marks = ", ".join(row), ", ".join("?" for _ in row)
        others = [name for name in row if name != key]
        insert = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        self.run(f"{insert} {self.on_conflict(key, others)}", *row.values())

    @abstractmethod
    def on_conflict(self, key: str, others: Sequence[str]) -> str:
        """What INSERT says about a key that is there already: the other columns become the new ones."""

    def commit(self) -> None:
        self._cursor.execute("COMMIT")

    def abort(self) -> None:
        self._cursor.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class Database(AbstractContextManager["Database"], ABC):
    """A fresh, empty database; leaving it drops it, with whatever a test left there."""

    url: str

    def open(self, *, allow_setup: bool = True, url: str | None = None) -> Source:
        return open_source("src", url or self.url, allow_setup=allow_setup)

    @abstractmethod
    def writer(self) -> Writer: ...

    @abstractmethod
    def leftovers(self) -> list[str]:
        """What of ours is still there: slots, publications, triggers, tables, roles."""

    def url_via(self, host: str, port: int) -> str:
        """The same database through another address (a proxy); for kinds with ``server``."""
        raise NotImplementedError

    def address(self) -> tuple[str, int]:
        """Where the server listens; for kinds with ``server``."""
        raise NotImplementedError


@dataclass(frozen=True)
class ValueCase:
    """A column type of the kind, with literals (SQL text) that must come out alike on both paths.

    ``expected`` are the canonical values; None leaves that to the comparison of the two paths.
    """

    declared: str
    literals: tuple[str, ...]
    expected: tuple[Any, ...] | None = None


class Rig(AbstractContextManager["Rig"], ABC):
    """A kind of source, ready for tests; entering starts its server, leaving stops it."""

    kind: ClassVar[str]
    # "server": there is one to kill; "truncate": TRUNCATE exists; "transactional-ddl": DDL can be
    # part of a transaction and be rolled back; "share": a cut can be joined from elsewhere.
    features: ClassVar[frozenset[str]]
    # Names of the known-wrong variants that `open_wrong` can open and the cut suite must catch.
    wrong_variants: ClassVar[tuple[str, ...]] = ()
    # Types that must come out alike, and types that must be refused by name.
    values: ClassVar[Sequence[ValueCase]] = ()
    refused_types: ClassVar[Sequence[str]] = ()

    @classmethod
    @abstractmethod
    def unavailable(cls) -> str | None:
        """Why this kind can't be tested on this machine; None when it can."""

    @abstractmethod
    def database(self) -> Database: ...

    @staticmethod
    @abstractmethod
    def quote(name: str) -> str:
        """An identifier as the kind's SQL wants it quoted."""

    def open_wrong(self, variant: str, database: Database) -> Source:
        """The source as somebody would build it who does not know better."""
        raise NotImplementedError

    def kill(self) -> None:
        """kill −9 of the server; for kinds with ``server``."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the killed server again, at the same address."""
        raise NotImplementedError


class ServerRig(Rig):
    """A kind with a server of our own."""

    server: DatabaseServer

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()


class ServerDatabase(Database):
    """A database of such a server."""

    def __init__(self, server: DatabaseServer, name: str) -> None:
        self._server, self.name = server, name
        self.url = server.url(name)

    def url_via(self, host: str, port: int) -> str:
        return f"{self._server.scheme}://{self._server.superuser}@{host}:{port}/{self.name}"

    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._server.port
