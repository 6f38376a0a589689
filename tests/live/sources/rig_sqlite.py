"""SQLite for the behaviour suite: a fresh file per test, writers with connections of their own."""

from __future__ import annotations

import datetime as dt
import sqlite3
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from live.sources import rig
from viewkeeper.sources.interface import Source


class SQLiteWriter(rig.Writer):
    """Writers wait for each other, as SQLite's own documentation advises: BEGIN IMMEDIATE."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
        # Transactions that nobody watches are told apart only while the WAL still has them, so it
        # never starts over here; tests of our own look at the default.
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")

    def begin(self, *, relaxed: bool = False) -> None:
        self._connection.execute(f"PRAGMA synchronous = {'OFF' if relaxed else 'NORMAL'}")
        self._connection.execute("BEGIN IMMEDIATE")

    def run(self, sql: str, *parameters: Any) -> None:
        self._connection.execute(sql, parameters)

    def fetch(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, parameters).fetchall()

    def replace(self, table: str, key: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" for _ in row)
        self.run(f"REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def abort(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class SQLiteDatabase(rig.Database):
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="viewkeeper-sqlite-")
        self.path = Path(self._folder.name) / "source.db"
        self.url = f"sqlite:///{self.path}"
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()

    def writer(self) -> SQLiteWriter:
        return SQLiteWriter(self.path)

    def leftovers(self) -> list[str]:
        writer = self.writer()
        found = writer.fetch(
            "SELECT type || ' ' || name FROM sqlite_schema WHERE name GLOB '_view*'"
        )
        writer.close()
        return sorted(name for (name,) in found)

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


class Rig(rig.Rig):
    kind = "sqlite"
    features = frozenset({"setup-after-add-column"})
    wrong_variants = ("naive-triggers", "separate-transactions")
    refused_types = (
        "", "NUMERIC", "DECIMAL", "DECIMAL(50, 2)", "JSON", "TIME", "POLYGON",
        "DECIMAL(2, 3)",
    )  # fmt: skip

    def __exit__(self, *_: object) -> None:
        pass

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    @staticmethod
    def quote(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def database(self) -> SQLiteDatabase:
        return SQLiteDatabase()

    def open_wrong(self, variant: str, database: rig.Database) -> Source:
        from live.sources.wrong_sqlite import open_wrong

        return open_wrong(variant, database)

    case = rig.ValueCase
    values = (
        case("INTEGER", ("-9223372036854775808", "9223372036854775807", "'7'"), (-(2**63), 2**63 - 1, 7)),
        case("BIGINT", ("1.0", "0"), (1, 0)),
        case("REAL", ("1", "-0.0", "0.1", "1e999", "-1e-310"), (1.0, 0.0, 0.1, float("inf"), -1e-310)),
        case("DOUBLE PRECISION", ("'2.5'",), (2.5,)),
        case(
            "TEXT",
            (
                "''", "'null'", "1", "'🦊 né 漢字'", "'o''clock \"x\"'", "'a' || char(0) || 'b'",
                "replace(hex(zeroblob(60000)), '0', 'é')",
            ),
            ("", "null", "1", "🦊 né 漢字", "o'clock \"x\"", "a\0b", "é" * 120_000),
        ),
        case("VARCHAR(5)", ("'longer than five'",), ("longer than five",)),
        case("TEXT COLLATE NOCASE", ("'A'", "'a'"), ("A", "a")),
        case("BLOB", ("x'00ff27'", "x''", "zeroblob(100000)"), (b"\0\xff'", b"", bytes(100_000))),
        case("BOOLEAN", ("1", "0", "true"), (True, False, True)),
        case(
            "DECIMAL(10, 2)",
            ("0", "1.5", "'12345678.9'", "-99999999.99", "-0.0"),
            tuple(Decimal(t) for t in ("0.00", "1.50", "12345678.90", "-99999999.99", "0.00")),
        ),
        case("NUMERIC(18)", ("123456789012345678",), (Decimal("123456789012345678"),)),
        case("DATE", ("'0001-01-01'", "'9999-12-31'"), (dt.date.min, dt.date.max)),
        case(
            "DATETIME",
            ("'2024-02-29 12:00'", "'2024-02-29T12:00:00.5'", "'9999-12-31 23:59:59.999999'"),
            (dt.datetime(2024, 2, 29, 12), dt.datetime(2024, 2, 29, 12, 0, 0, 500_000), dt.datetime.max),
        ),
        case(
            "TIMESTAMP WITH TIME ZONE",
            ("'2024-07-01 12:00:00+02:00'", "'2024-07-01T10:00:00Z'"),
            (dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC),) * 2,
        ),
        case("UUID", ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",)),
    )  # fmt: skip
