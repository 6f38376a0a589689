"""Keyed reads: the keys as one parameter, and exactly the rows whose key is equal.

Keys go as one JSON array that the server unfolds with JSON_TABLE: one round trip, nothing created
there, and no limit by the number of placeholders. The server compares by the column's collation, so
'a' may also bring 'A' and 'a '; what comes back is filtered by equality of values.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from viewkeeper.sources.mariadb.catalog import Table
from viewkeeper.sources.mariadb.columns import Column
from viewkeeper.sources.mariadb.quoting import quoted

# A parameter must fit into max_allowed_packet, whose default is 16 MB.
CHUNK_BYTES_MAX = 4 << 20
# Of a key's numbers and brackets; and of one character, escaped.
_KEY_BYTES, _LONGEST = 64, 6
_VARCHAR_MAX = 500


def distinct_keys(keys: pa.Table) -> list[tuple[Any, ...]]:
    """The keys once each, without those that can match nothing because they hold NULL."""
    columns = [column.to_pylist() for column in keys.columns]
    found = dict.fromkeys(zip(*columns, strict=True))
    return [key for key in found if None not in key]


def chunks(
    keys: Sequence[tuple[Any, ...]],
) -> Iterator[tuple[str, set[tuple[Any, ...]]]]:
    """Parameters of bounded size, each with the keys in it."""
    start = size = 0
    for index, key in enumerate(keys):
        cost = _KEY_BYTES + sum(_LONGEST * len(v) for v in key if isinstance(v, str | bytes))
        if index > start and size + cost > CHUNK_BYTES_MAX:
            yield _chunk(keys[start:index])
            start, size = index, 0
        size += cost
    if keys:
        yield _chunk(keys[start:])


def _chunk(
    keys: Sequence[tuple[Any, ...]],
) -> tuple[str, set[tuple[Any, ...]]]:
    plain = all(isinstance(value, int) for value in keys[0])  # a column's values are of one type
    listed = keys if plain else [tuple(_as_json(value) for value in key) for key in keys]
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":"), default=str), set(keys)


def keyed_sql(table: Table, columns: Sequence[Column], keys: Sequence[Column]) -> str:
    """SELECT of ``columns`` for one chunk; the keys lead the join where an index can serve them."""
    unfolded = ", ".join(f"k{i} {_unfolded_type(key)} PATH '$[{i}]'" for i, key in enumerate(keys))
    wanted = ", ".join(f"{_compared(f'k{i}', key)} AS k{i}" for i, key in enumerate(keys))
    condition = " AND ".join(
        f"t.{quoted(key.name)} = {_joined(f'w.k{i}', key)}" for i, key in enumerate(keys)
    )
    listed = ", ".join(f"t.{quoted(column.name)}" for column in columns)
    # DISTINCT goes by the column's own collation: two keys that it equates must not give a row twice.
    keyed = f"(SELECT DISTINCT {wanted} FROM JSON_TABLE(?, '$[*]' COLUMNS ({unfolded})) AS j) AS w"
    rows = f"{table.quoted} AS t"
    # Without an index the table is scanned once, each row looking itself up among the keys.
    first, second = (keyed, rows) if table.leading & {key.name for key in keys} else (rows, keyed)
    return f"SELECT STRAIGHT_JOIN {listed} FROM {first} JOIN {second} ON {condition}"


def part_condition(table: Table, part: int, parts: int) -> str:
    """Which rows belong to one of several parts: by a hash of the key, or of the whole row."""
    names = table.schema.key or table.schema.schema.names
    hashed = ", ".join(f"COALESCE(HEX(t.{quoted(name)}), '-')" for name in names)
    return f"CRC32(CONCAT_WS(',', {hashed})) % {int(parts)} = {int(part)}"


def _as_json(value: Any) -> Any:
    match value:
        case bool() | int():
            return int(value)
        case float():
            # JSON has no NaN, and MariaDB no column that holds one.
            return value if value - value == 0 else None
        case bytes():
            return value.hex()
        case dt.datetime():
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return naive.isoformat(" ")
        case dt.date() | Decimal():
            return str(value)
    return value


def _unfolded_type(column: Column) -> str:
    match column.kind:
        case "integer" | "bit" | "year":
            # The column's own sign: a comparison of mixed types would not use its index.
            return "BIGINT UNSIGNED" if column.unsigned or column.kind == "bit" else "BIGINT"
        case "decimal":
            return f"DECIMAL({column.precision},{column.scale})"
        case "float" | "double":
            return "DOUBLE"
        case "date":
            return "DATE"
        case "datetime" | "timestamp":
            return "DATETIME(6)"
        case "char" | "varchar" if column.size <= _VARCHAR_MAX:
            return f"VARCHAR({max(column.size, 1)}) CHARACTER SET utf8mb4"
        case "binary" | "varbinary" if column.size <= _VARCHAR_MAX:
            return f"VARCHAR({max(2 * column.size, 1)}) CHARACTER SET utf8mb4"
        case "time" | "uuid" | "inet4" | "inet6":
            return "VARCHAR(64) CHARACTER SET utf8mb4"
    return "LONGTEXT CHARACTER SET utf8mb4"


def _compared(name: str, column: Column) -> str:
    match column.kind:
        case "time":
            return f"CAST({name} AS TIME(6))"
        case "uuid" | "inet4" | "inet6":
            return f"CAST({name} AS {column.kind.upper()})"
        case "char" | "varchar" | "text" | "enum" | "set":
            return f"CONVERT({name} USING {column.charset}) COLLATE {column.collation}"
    return name


def _joined(name: str, column: Column) -> str:
    # Not below DISTINCT: SELECT DISTINCT UNHEX(a LONGTEXT) gives empty strings (10.11.19).
    return f"UNHEX({name})" if column.kind in ("binary", "varbinary", "blob") else name
