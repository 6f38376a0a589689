"""MariaDB for the behaviour suite: a private server, one database per test."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import os
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pymysql

from live.sources import rig
from viewkeeper.sources.interface import Source
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing

_numbers = itertools.count(1)
# The server's default: setup has something to do, and teardown something to undo.
_METADATA = "NO_LOG"

# A scan for one writer's rows would wait for everybody's: the optimizer must not choose one.
_BY_INDEX = {
    "UPDATE marks SET weight = weight + 1 WHERE label = ?": (
        "UPDATE marks FORCE INDEX (by_label) SET weight = weight + 1 WHERE label = ?"
    ),
    "DELETE FROM marks WHERE label = ? AND weight = ?": (
        "DELETE marks FROM marks FORCE INDEX (by_label) WHERE label = ? AND weight = ?"
    ),
}


class MariaDBWriter(rig.ClientWriter):
    """How durable a commit is belongs to the whole server here, so that none is relaxed."""

    def __init__(self, server: PrivateMariaDB, database: str | None) -> None:
        super().__init__(server.connect(database, autocommit=True))
        # Under REPEATABLE READ writers lock the gaps around each other's rows and meet deadlocks of
        # their own making, which would hide errors that we cause.
        self._cursor.execute("SET tx_isolation = 'READ-COMMITTED'")

    def run(self, sql: str, *parameters: Any) -> None:
        super().run(_BY_INDEX.get(sql, sql), *parameters)
        if sql.startswith("CREATE TABLE marks "):
            super().run("CREATE INDEX by_label ON marks (label, weight)")

    def on_conflict(self, key: str, others: Sequence[str]) -> str:
        # Not REPLACE, which locks the gap in front of the row (see above).
        assignments = ", ".join(f"{name} = VALUE({name})" for name in others)
        return f"ON DUPLICATE KEY UPDATE {assignments}"


class MariaDBDatabase(rig.ServerDatabase):
    def __init__(self, server: PrivateMariaDB) -> None:
        super().__init__(server, f"test_{next(_numbers)}")
        self._admin(f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4")

    def _admin(self, statement: str) -> list[tuple[Any, ...]]:
        writer = MariaDBWriter(self._server, None)
        try:
            return writer.fetch(statement)
        finally:
            writer.close()

    def writer(self) -> MariaDBWriter:
        return MariaDBWriter(self._server, self.name)

    def leftovers(self) -> list[str]:
        [(value,)] = self._admin("SELECT @@GLOBAL.binlog_row_metadata")
        return [] if value == _METADATA else [f"binlog_row_metadata = {value}"]

    def __exit__(self, *_: object) -> None:
        self._admin(f"SET GLOBAL binlog_row_metadata = {_METADATA}")
        # Sessions that a silenced proxy cut off still hold their tables.
        for (number,) in self._admin(
            f"SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{self.name}'"
        ):
            with contextlib.suppress(pymysql.MySQLError):
                self._admin(f"KILL {number}")
        self._admin(f"DROP DATABASE {self.name}")


class Rig(rig.ServerRig):
    kind = "mariadb"
    features = frozenset({"server", "truncate"})
    wrong_variants = ("read-committed", "plain-begin", "automatic-reconnect")
    refused_types = (
        "point", "geometry", "decimal(40, 2)", "varchar(20) COMPRESSED", "blob COMPRESSED",
        "varchar(20) CHARACTER SET sjis", "text CHARACTER SET cp1251", "year(2)",
        "bigint AS (id * 2) VIRTUAL",
    )  # fmt: skip

    def __init__(self) -> None:
        self.server = PrivateMariaDB(
            durable=True, settings={"binlog-row-metadata": _METADATA, "sql-mode": ""}
        )

    @classmethod
    def unavailable(cls) -> str | None:
        # Where everything is checked, a missing server is a failure.
        return None if os.environ.get("CI") == "true" else mariadbd_missing() or None

    @staticmethod
    def quote(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def database(self) -> MariaDBDatabase:
        return MariaDBDatabase(self.server)

    def open_wrong(self, variant: str, database: rig.Database) -> Source:
        from live.sources.wrong_mariadb import open_wrong

        return open_wrong(variant, database.url)

    def kill(self) -> None:
        # As the setup script asks: what was set at run time stands in the configuration as well.
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.binlog_row_metadata")
            self.server.configure({"binlog-row-metadata": cursor.fetchone()[0]})
        super().kill()

    case = rig.ValueCase
    values = (
        case("tinyint", ("-128", "127"), (-128, 127)),
        case("tinyint unsigned", ("0", "255"), (0, 255)),
        case("boolean", ("true", "false"), (1, 0)),
        case("smallint", ("-32768", "32767"), (-32768, 32767)),
        case("smallint unsigned", ("65535",), (65535,)),
        case("mediumint", ("-8388608", "8388607"), (-8388608, 8388607)),
        case("mediumint unsigned", ("16777215",), (16777215,)),
        case("int", ("-2147483648", "0"), (-2147483648, 0)),
        case("int unsigned zerofill", ("4294967295", "7"), (4294967295, 7)),
        case("bigint", ("-9223372036854775808", "9223372036854775807"), (-(2**63), 2**63 - 1)),
        case("bigint unsigned", ("18446744073709551615", "0"), (Decimal(2**64 - 1), Decimal(0))),
        case("bit(1)", ("b'1'", "b'0'"), (1, 0)),
        case("bit(12)", ("b'101'", "b'111111111111'"), (5, 4095)),
        case("bit(60)", ("b'101'", "1152921504606846975"), (5, 2**60 - 1)),
        case("bit(64)", ("18446744073709551615", "1"), (Decimal(2**64 - 1), Decimal(1))),
        case("year", ("2024", "0", "1901", "2155"), (2024, 0, 1901, 2155)),
        case("float", ("0.1", "-0.0", "16777217", "1e-45", "3.4e38")),
        case("float(7,3)", ("1.2345", "-999.999")),
        case(
            "double",
            ("0.1", "-0e0", "1e-310", "1.7976931348623157e308", "123456789.12345678"),
            (0.1, 0.0, 1e-310, 1.7976931348623157e308, 123456789.12345678),
        ),
        case("double(10,2)", ("1.005", "-12345678.9")),
        case(
            "decimal(10, 2)",
            ("0", "-0.005", "12345678.9", "-99999999.99", "-0.00"),
            (
                Decimal("0.00"), Decimal("-0.01"), Decimal("12345678.90"), Decimal("-99999999.99"),
                Decimal("0.00"),
            ),
        ),
        case("decimal(38, 10)", ("1234567890123456789012345678.0123456789", "-0.0000000001")),
        case("decimal(38, 38)", ("0.12345678901234567890123456789012345678", "-0.5")),
        case("decimal(18, 9) unsigned", ("123456789.123456789", "0")),
        case("decimal(5)", ("42", "-1.5"), (Decimal("42"), Decimal("-2"))),
        case("char(6)", ("'ab'", "'abcdef'", "''", "'ab  '"), ("ab", "abcdef", "", "ab")),
        case("char(255)", ("'🦊'", "repeat('é', 255)", "repeat('x', 254)")),
        case("varchar(20)", ("'abc  '", "''", "'né 漢字 🦊'"), ("abc  ", "", "né 漢字 🦊")),
        case("varchar(300)", ("repeat('ä', 300)", "''")),
        case("varchar(20) CHARACTER SET latin1", ("'€ ü'", "x'818d8f909d80ff'", "''")),
        case("varchar(20) CHARACTER SET ascii", ("'plain'",), ("plain",)),
        case("varchar(20) CHARACTER SET utf8mb3", ("'né 漢'",), ("né 漢",)),
        case("varchar(20) CHARACTER SET ucs2", ("'né 漢'",), ("né 漢",)),
        case("varchar(20) CHARACTER SET utf16", ("'né 🦊'",), ("né 🦊",)),
        case("char(8) CHARACTER SET utf32", ("'né 🦊'",), ("né 🦊",)),
        case("varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ("'a'", "'A '"), ("a", "A ")),
        case("text CHARACTER SET latin1", ("'ü'",), ("ü",)),
        case("tinytext", ("''", "'null'"), ("", "null")),
        case("text", ("'tab\\tline\\nback\\\\slash'", "repeat('ab', 30000)", "'🦊'")),
        case("mediumtext", ("repeat('ab', 60000)",)),
        case("longtext", ("repeat('long ', 50000)",)),
        case("json", ("""'{"b":1,  "a":[null,"é"]}'""",), ("""{"b":1,  "a":[null,"é"]}""",)),
        case("binary(5)", ("x'61'", "x'0000000000'", "x'00ff5c2700'"), (b"a\0\0\0\0", bytes(5), b"\0\xff\\'\0")),
        case("varbinary(300)", ("x'00ff5c2700'", "''", "x'6120'"), (b"\0\xff\\'\0", b"", b"a ")),
        case("tinyblob", ("x'00ff'", "''"), (b"\0\xff", b"")),
        case("longblob", ("repeat(x'00ff5c27', 20000)",)),
        case(
            "date",
            ("'0001-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'", "'0000-05-05'"),
            (dt.date.min, dt.date.max, None, None, None),
        ),
        case(
            "datetime",
            ("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'", "'2024-02-00 01:02:03'"),
            (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), None, None),
        ),
        case("datetime(1)", ("'2024-02-29 12:00:00.6'",), (dt.datetime(2024, 2, 29, 12, 0, 0, 600000),)),
        case("datetime(3)", ("'2024-02-29 12:00:00.678'",), (dt.datetime(2024, 2, 29, 12, 0, 0, 678000),)),
        case("datetime(6)", ("'9999-12-31 23:59:59.999999'", "'2024-01-01'"), (dt.datetime.max, dt.datetime(2024, 1, 1))),
        case("timestamp NULL", ("'2024-07-01 12:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "0")),
        case(
            "timestamp(6) NULL",
            ("'2024-07-01 12:00:00.000001'",),
            (dt.datetime(2024, 7, 1, 12, 0, 0, 1, tzinfo=dt.UTC),),
        ),
        case("timestamp(4) NULL", ("'2024-07-01 12:00:00.1234'",)),
        case("time", ("'12:30'", "'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'")),
        case("time(1)", ("'-01:00:00.5'", "'00:00:00.9'"), ("-01:00:00.5", "00:00:00.9")),
        case("time(3)", ("'-838:59:58.999'", "'12:00:00.001'"), ("-838:59:58.999", "12:00:00.001")),
        case("time(6)", ("'-00:00:00.000001'", "'12:00:00'"), ("-00:00:00.000001", "12:00:00.000000")),
        case("enum('a', 'b''c', 'ü', '')", ("'a'", "'b''c'", "'ü'", "''"), ("a", "b'c", "ü", "")),
        case("enum('x', 'é') CHARACTER SET latin1", ("'é'", "'none'"), ("é", "")),
        case("set('p', 'q', 'r')", ("'r,p'", "''", "'q'"), ("p,r", "", "q")),
        case("uuid", ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'00000000-0000-0000-0000-000000000000'")),
        case("inet4", ("'192.168.1.1'", "'0.0.0.0'"), ("192.168.1.1", "0.0.0.0")),
        case(
            "inet6",
            (
                "'::1'", "'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.1'", "'1:0:0:2:0:0:0:3'",
                "'::1.2.3.4'", "'1:2:3:4:5:6:7:0'", "'fe80::'", "'0:0:1::'", "'::2:3'", "'64:ff9b::1.2.3.4'",
                "'1:0:2:3:4:5:6:7'", "'::ffff:0:0'", "'::0.1.0.0'", "'0:1::'", "'::1:0:0'",
            ),
        ),
    )  # fmt: skip
