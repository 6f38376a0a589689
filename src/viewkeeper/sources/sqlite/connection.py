"""Connections to a SQLite file: read-only ones for feeds and cuts, and errors in our own words.

Never open or close the database file by hand while a connection is open: POSIX drops all locks of a
process on a file when it closes any descriptor of it. `os.stat` is harmless, and so is the WAL file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from viewkeeper.errors import SourceError

BUSY_TIMEOUT_MS = 5_000
OLDEST_VERSION = (3, 37, 0)  # PRAGMA table_list tells WITHOUT ROWID tables from others

# SQLite result codes by which the caller should try again.
_PASSING = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PROTOCOL"}


def connect(path: Path, source: str, *, writable: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; it never creates the file."""
    if sqlite3.sqlite_version_info < OLDEST_VERSION:
        raise SourceError(
            "sqlite-too-old",
            f"this Python's SQLite can't read source {source}",
            source=source,
            retryable=False,
            detail=f"found {sqlite3.sqlite_version}, needed 3.37 or newer",
            hint="use a Python that was built with a newer SQLite",
        )
    uri = f"file:{quote(str(path.absolute()))}?mode={'rw' if writable else 'ro'}"
    with translated(source):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
    return connection


@contextmanager
def translated(source: str, code: str = "unreachable") -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        passing = any(name == known or name.startswith(f"{known}_") for known in _PASSING)
        raise SourceError(
            code if name != "SQLITE_NOTADB" else "not-a-database",
            f"source {source} could not be read",
            source=source,
            retryable=passing,
            detail=f"SQLite says: {error}",
            hint="check the path in the source's url, and the rights on the file and its folder"
            if name.startswith("SQLITE_CANTOPEN")
            else "look at the file: sqlite3 FILE 'PRAGMA integrity_check'",
        ) from error


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One snapshot, from the first read in it on. Keep it short: it holds up the WAL's reuse."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def file_identity(path: Path) -> tuple[int, int] | None:
    """Which file the path leads to now; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
