"""SQLite sources as somebody would build them who does not know better. The suite catches each."""

from __future__ import annotations

import sqlite3

from live.sources.rig import Database
from viewkeeper.sources.interface import Source
from viewkeeper.sources.sqlite.catalog import Catalog
from viewkeeper.sources.sqlite.layout import read_layouts
from viewkeeper.sources.sqlite.position import Clock
from viewkeeper.sources.sqlite.quoting import quoted
from viewkeeper.sources.sqlite.source import SQLiteSource
from viewkeeper.sources.urls import parse_source_url


def open_wrong(variant: str, database: Database) -> Source:
    url = parse_source_url(database.url, "src")
    if variant == "naive-triggers":
        make_triggers_naive(url.database)
        return SQLiteSource("src", url)
    return SeparateTransactions("src", url)


def make_triggers_naive(path: str) -> None:
    """AFTER triggers alone: nobody looks at what REPLACE is about to delete."""
    connection = sqlite3.connect(path, isolation_level=None)
    for layout in read_layouts(connection):
        for kind, event in (("before_insert", "INSERT"), ("before_rekey", "UPDATE")):
            connection.execute(f"DROP TRIGGER {layout.trigger(kind)}")
            connection.execute(
                f"CREATE TRIGGER {layout.trigger(kind)} BEFORE {event} "
                f"ON {quoted(layout.relation)} BEGIN SELECT 1; END"
            )
    connection.close()


class SeparateTransactions(SQLiteSource):
    """Asks for the log's number first, and for the data in a transaction of its own."""

    def _begin_cut(self, connection: sqlite3.Connection) -> tuple[Clock, Catalog]:
        clock = self._clock_or_refuse(connection)
        with self._lock:
            self._note_cut(clock.seq)
        connection.execute("BEGIN")
        return clock, self.catalog(connection)
