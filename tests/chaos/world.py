"""The real parts: a PostgreSQL, a MariaDB, an SQLite file, ways to them, and a project over all three."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from chaos.network import Way
from chaos.scenery import CREATE, CRM, FILL, GEO, SHOP, SOURCES, VIEWS
from live.sources.rig import Writer
from live.sources.rig_mariadb import MariaDBWriter
from live.sources.rig_postgres import PostgresWriter
from live.sources.rig_sqlite import SQLiteWriter
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.mariadb import PrivateMariaDB
from viewkeeper.testing.postgres import EmbeddedPostgres
from viewkeeper.warehouse import Warehouse

DATABASE = "storm"


class World:
    """Started on construction; ``close`` ends everything. Names of outages say whom to forgive."""

    def __init__(
        self, folder: Path, *, views: Mapping[str, str] = VIEWS, direct: bool = False
    ) -> None:
        """``direct``: `run` reaches the servers without a way that could be cut."""
        self.folder = folder
        self._views = views
        self._direct = direct
        self.project = folder / "project"
        self.sqlite_path = folder / "geo.db"
        self._stack = contextlib.ExitStack()
        # Sources that a fault keeps from their own writers; set by actions, cleared after the round.
        self.outages: set[str] = set()
        self.servers: dict[str, EmbeddedPostgres | PrivateMariaDB] = {}
        self.ways: dict[str, Way] = {}
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self.postgres = self._stack.enter_context(EmbeddedPostgres())
        # A server that may forget after a crash is refused, rightly: durable.
        self.mariadb = self._stack.enter_context(
            PrivateMariaDB(durable=True, settings={"sql-mode": ""})
        )
        self.servers = {SHOP: self.postgres, CRM: self.mariadb}
        for source, server in self.servers.items():
            self.ways[source] = Way(("127.0.0.1", server.port))
            self._stack.callback(self.ways[source].end)
        admin = PostgresWriter(self.postgres.url())
        admin.run(f"CREATE DATABASE {DATABASE}")
        admin.close()
        admin = MariaDBWriter(self.mariadb, None)
        admin.run(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        admin.close()
        connection = sqlite3.connect(self.sqlite_path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        for source in SOURCES:
            with self.client(source) as client:
                for statement in (*CREATE[source], *FILL[source]):
                    client.run(statement)
        self._write_project()

    def _write_project(self) -> None:
        (self.project / "views").mkdir(parents=True)
        lines = ['[warehouse]\npath = "warehouse"\n', '[spark]\nmaster = "local[2]"\n']
        lines += [f'[sources.{source}]\nurl = "{self.url(source)}"\n' for source in SOURCES]
        (self.project / "viewkeeper.toml").write_text("\n".join(lines))
        for name, text in self._views.items():
            self.write_view(name, text)

    def write_view(self, name: str, text: str) -> None:
        (self.project / "views" / f"{name}.sql").write_text(text + "\n")

    def url(self, source: str) -> str:
        """As `run` reaches the source: servers by a way that can be cut."""
        match source:
            case "shop":
                return f"postgresql://postgres@127.0.0.1:{self._port(SHOP)}/{DATABASE}"
            case "crm":
                return f"mariadb://root@127.0.0.1:{self._port(CRM)}/{DATABASE}"
            case _:
                return f"sqlite:///{self.sqlite_path}"

    def _port(self, source: str) -> int:
        return self.servers[source].port if self._direct else self.ways[source].port

    def writer(self, source: str) -> Writer:
        """A client of the source's owner, who sits beside it."""
        match source:
            case "shop":
                return PostgresWriter(self.postgres.url(DATABASE))
            case "crm":
                return MariaDBWriter(self.mariadb, DATABASE)
            case _:
                return SQLiteWriter(self.sqlite_path)

    def is_away(self, source: str) -> bool:
        """Whether a fault keeps `run` from a source at the moment, or makes it slow."""
        way = self.ways.get(source)
        disturbed = way is not None and (way.silent.is_set() or way.closed.is_set())
        return disturbed or source in self.outages or bool(way and way.delay_seconds)

    @contextlib.contextmanager
    def client(self, source: str) -> Iterator[Writer]:
        writer = self.writer(source)
        try:
            yield writer
        finally:
            writer.close()

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse.open(self.project / "warehouse")

    @property
    def has_warehouse(self) -> bool:
        return (self.project / "warehouse" / "_epochs" / "_delta_log").exists()

    def remove_warehouse(self) -> None:
        shutil.rmtree(self.project / "warehouse", ignore_errors=True)

    def tear_down_sources(self) -> list[str]:
        """As an owner does who is done with us; what of ours is still there afterwards."""
        left: list[str] = []
        for source in SOURCES:
            with open_source(source, self.url(source), allow_setup=True) as opened:
                opened.teardown()
        with self.client(SHOP) as client:
            left += [f"slot {name}" for (name,) in client.fetch(_SLOTS)]
        with self.client(GEO) as client:
            left += [f"geo {name}" for (name,) in client.fetch(_TRIGGERS)]
        return left

    def close(self) -> None:
        self._stack.close()


_SLOTS = "SELECT slot_name FROM pg_replication_slots"
_TRIGGERS = "SELECT name FROM sqlite_schema WHERE name GLOB '_view*'"
