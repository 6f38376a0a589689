"""Deleting log rows that every reader has confirm, if the setup permits it.

A few rows per transaction and never waiting for a lock: the source's own writers come first.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from viewkeeper.errors import SourceError
from viewkeeper.sources.sqlite.connection import connect
from viewkeeper.sources.sqlite.layout import CLOCK, READERS, Layout, read_layouts
from viewkeeper.sources.sqlite.position import Place

# How much must be confirmed before it is worth a write at the source.
ROWS_PER_VISIT = 5_000
ROWS_PER_TRANSACTION = 1_000


class Pruner:
    """Called after each confirmation; does something now and then."""

    def __init__(self, path: Path, source: str, reader: str) -> None:
        self._path, self._source, self._reader = path, source, reader
        self._lock = threading.Lock()
        self._visited = -ROWS_PER_VISIT
        self._closed = False

    def confirm(self, place: Place) -> None:
        with self._lock:
            if self._closed or place.seq - self._visited < ROWS_PER_VISIT:
                return
            self._visited = place.seq
            try:
                connection = connect(self._path, self._source, writable=True)
            except SourceError:
                return  # a file that we may not write: its owner prunes
            try:
                connection.execute("PRAGMA busy_timeout = 0")
                # The WAL has the ends of transactions that are not confirmed: others may let it
                # start over, not we.
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                self._visit(connection, place)
            except sqlite3.OperationalError:
                self._visited = place.seq - ROWS_PER_VISIT // 2  # a writer was there: later
            finally:
                connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _visit(self, connection: sqlite3.Connection, place: Place) -> None:
        clock = connection.execute(f"SELECT may_prune, lower(hex(history)) FROM {CLOCK}").fetchone()
        if clock is None or not clock[0] or clock[1] != place.history:
            return
        with connection:  # commits, or rolls back when a writer is in our way
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                f"INSERT OR REPLACE INTO {READERS} VALUES (?, ?)", (self._reader, place.seq)
            )
            (bound,) = connection.execute(f"SELECT min(seq) FROM {READERS}").fetchone()
        for layout in read_layouts(connection):
            while self._delete_some(connection, layout, bound):
                pass

    @staticmethod
    def _delete_some(connection: sqlite3.Connection, layout: Layout, bound: int) -> bool:
        """The row at the bound stays: a feed that resumes there recognises the log by it."""
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            deleted = connection.execute(
                f"DELETE FROM {layout.log} WHERE seq < ? AND seq IN "
                f"(SELECT seq FROM {layout.log} ORDER BY seq LIMIT ?)",
                (bound, ROWS_PER_TRANSACTION),
            ).rowcount
        return deleted == ROWS_PER_TRANSACTION
