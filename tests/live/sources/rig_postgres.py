"""PostgreSQL for the behaviour suite: an embedded server, one database per test."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg

from live.sources import rig
from viewkeeper.algebra.types import NAN
from viewkeeper.sources.interface import Source
from viewkeeper.testing.postgres import EmbeddedPostgres

_numbers = itertools.count(1)


class PostgresWriter(rig.ClientWriter):
    def __init__(self, dsn: str) -> None:
        super().__init__(psycopg.connect(dsn, autocommit=True))

    def begin(self, *, relaxed: bool = False) -> None:
        super().begin()
        if relaxed:
            self.run("SET LOCAL synchronous_commit = off")

    def on_conflict(self, key: str, others: Sequence[str]) -> str:
        assignments = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        return f"ON CONFLICT ({key}) DO UPDATE SET {assignments}"


class PostgresDatabase(rig.ServerDatabase):
    def __init__(self, server: EmbeddedPostgres) -> None:
        super().__init__(server, f"test_{next(_numbers)}")
        self._admin(f"CREATE DATABASE {self.name}")

    def _admin(self, *statements: str) -> list[tuple[Any, ...]]:
        writer = PostgresWriter(self._server.url("postgres"))
        try:
            return [writer.fetch(statement) for statement in statements][-1]
        finally:
            writer.close()

    def writer(self) -> PostgresWriter:
        return PostgresWriter(self.url)

    def leftovers(self) -> list[str]:
        writer = self.writer()
        found = writer.fetch(
            "SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()"
            " UNION ALL SELECT 'publication ' || pubname FROM pg_publication"
            " UNION ALL SELECT 'event trigger ' || evtname FROM pg_event_trigger"
            " UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname LIKE 'viewkeeper%'"
            " UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname LIKE 'viewkeeper%'"
        )
        writer.close()
        return [text for (text,) in found]

    def __exit__(self, *_: object) -> None:
        slots = self._admin(
            f"SELECT slot_name FROM pg_replication_slots WHERE database = '{self.name}'"
        )
        for (slot,) in slots:
            self._admin(
                f"SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
                f"WHERE slot_name = '{slot}' AND active_pid IS NOT NULL",
                f"SELECT pg_drop_replication_slot('{slot}')",
            )
        self._admin(f"DROP DATABASE {self.name} WITH (FORCE)")


class Rig(rig.ServerRig):
    kind = "postgres"
    features = frozenset({"server", "truncate", "transactional-ddl", "share"})
    # The others show for certain in test_postgres_traps.py; by chance they would take minutes.
    wrong_variants = ("lsn-cut",)
    refused_types = (
        "numeric", "numeric(50, 2)", "numeric(5, 7)", "xml", "money", "point", "int4range", "tsvector",
        "xid", "bigint GENERATED ALWAYS AS (id * 2) STORED", "bigint GENERATED ALWAYS AS (id * 2)",
    )  # fmt: skip

    def __init__(self) -> None:
        self.server = EmbeddedPostgres()

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    @staticmethod
    def quote(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def database(self) -> PostgresDatabase:
        return PostgresDatabase(self.server)

    def open_wrong(self, variant: str, database: rig.Database) -> Source:
        from live.sources.wrong_postgres import open_wrong

        return open_wrong(variant, database.url)

    case = rig.ValueCase
    values = (
        case("smallint", ("-32768", "32767"), (-32768, 32767)),
        case("integer", ("-2147483648", "0"), (-2147483648, 0)),
        case("bigint", ("-9223372036854775808", "9223372036854775807"), (-(2**63), 2**63 - 1)),
        case("oid", ("4294967295",), (4294967295,)),
        case(
            "double precision",
            ("'NaN'", "'Infinity'", "'-0'", "0.1", "1e-310", "1.7976931348623157e308"),
            (NAN, float("inf"), 0.0, 0.1, 1e-310, 1.7976931348623157e308),
        ),
        case("real", ("0.1", "'NaN'", "'-Infinity'", "16777217", "1e-45")),
        case(
            "numeric(10, 2)",
            ("0", "-0.005", "12345678.9", "-99999999.99"),
            (Decimal("0.00"), Decimal("-0.01"), Decimal("12345678.90"), Decimal("-99999999.99")),
        ),
        case("numeric(38, 10)", ("1234567890123456789012345678.0123456789",)),
        case("numeric(5)", ("42", "-1.5"), (Decimal("42"), Decimal("-2"))),
        case("boolean", ("true", "false"), (True, False)),
        case(
            "text",
            ("''", "'null'", "'\\N'", "E'tab\\tline\\nback\\\\slash'", "'🦊 né 漢字'", "repeat('ab', 60000)"),
        ),
        case("varchar(20)", ("'abc  '", "''"), ("abc  ", "")),
        case("char(6)", ("'ab'", "'abcdef'", "''"), ("ab", "abcdef", "")),
        case("name", ("'abc'",), ("abc",)),
        case("bytea", ("'\\x00ff5c27'", "''", "decode(repeat('00ff', 30000), 'hex')")),
        case("date", ("'0001-01-01'", "'9999-12-31'"), (dt.date.min, dt.date.max)),
        case(
            "timestamp",
            ("'0001-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 12:00'"),
            (
                dt.datetime(1, 1, 1, 0, 0, 0, 1),
                dt.datetime.max,
                dt.datetime(2024, 2, 29, 12),
            ),
        ),
        case(
            "timestamptz",
            ("'2024-07-01 12:00:00.5+02'", "'0001-01-01 00:00:00+00'", "'1900-01-01 00:00:00+00:19:32'"),
        ),
        case("timestamp(0)", ("'2024-07-01 12:00:00.6'",), (dt.datetime(2024, 7, 1, 12, 0, 1),)),
        case("time", ("'12:30'", "'24:00'", "'00:00:00.000001'")),
        case("timetz", ("'12:30+05:30'",)),
        case("interval", ("'1 mon -3 days 04:05:06.7'", "'0'")),
        case("uuid", ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",), ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",)),
        case("json", ("""'{"b":1,  "a":[null,"é"]}'""",), ("""{"b":1,  "a":[null,"é"]}""",)),
        case("jsonb", ("""'{"b":1,  "a":[null,"é"], "a":2}'""",), ("""{"a": 2, "b": 1}""",)),
        case("integer[]", ("'{1,NULL,3}'", "'{}'", "'{{1,2},{3,4}}'", "'[2:3]={7,8}'")),
        case("text[]", ("""ARRAY['a,b', 'q"uote', '', NULL]""",)),
        case("timestamptz[]", ("ARRAY['2024-07-01 12:00+02'::timestamptz]",)),
        case("inet", ("'192.168.1.1'", "'10.0.0.0/8'", "'::1'"), ("192.168.1.1", "10.0.0.0/8", "::1")),
        case("cidr", ("'10.0.0.0/8'", "'10.1.2.3/32'")),
        case("macaddr", ("'08:00:2b:01:02:03'",)),
        case("bit(4)", ("B'1010'",), ("1010",)),
        case("bit varying", ("B'10101'", "B''")),
    )  # fmt: skip
