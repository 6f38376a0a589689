"""What a column is: from the catalog, or from a table map of the log; and our type for it.

Both ways lead to the same `Column`, so that they can be compared: a table map that disagrees with the
schema we work by means that a change of the schema escaped us, and no value may be trusted then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.algebra.types import (
    BINARY,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Type,
    decimal_type,
)
from viewkeeper.sources.mariadb import binlog

# Python's name for each character set whose bytes we read; latin1 is the server's own cp1252.
CHARSETS = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "latin1": "latin1",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}

_INTEGER_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_PREFIX_BYTES = {"tiny": 1, "": 2, "medium": 3, "long": 4}
_MAP_INTEGERS = {
    binlog.TINY: 1,
    binlog.SHORT: 2,
    binlog.INT24: 3,
    binlog.LONG: 4,
    binlog.LONGLONG: 8,
}
_FIXED_BINARY = {"uuid": 16, "inet6": 16, "inet4": 4}
_TEXT_KINDS = frozenset({"char", "varchar", "text", "enum", "set"})


@dataclass(frozen=True)
class Column:
    """A column, as far as its bytes need it."""

    name: str
    kind: str
    # Bytes of an integer, of a string at most, of a blob's length prefix; bits of a BIT.
    size: int = 0
    unsigned: bool = False
    charset: str = ""
    precision: int = 0
    # Digits after the point, also of a second.
    scale: int = 0
    labels: tuple[str, ...] = ()
    # Why it can't be read exactly; empty when it can.
    refused: str = field(default="", compare=False, repr=False)
    # Only the catalog knows it, and only keyed reads need it.
    collation: str = field(default="", compare=False, repr=False)

    @property
    def type(self) -> Type | None:
        """Our type; None when the column is refused."""
        return None if self.refused else _type_of(self)


def _type_of(column: Column) -> Type | None:
    match column.kind:
        case "integer":
            wide = column.size == 8 and column.unsigned
            return decimal_type(20, 0) if wide else INTEGER
        case "bit":
            return decimal_type(20, 0) if column.size > 63 else INTEGER
        case "year":
            return INTEGER
        case "float" | "double":
            return DOUBLE
        case "decimal":
            return decimal_type(column.precision, column.scale)
        case "date":
            return DATE
        case "datetime":
            return LOCAL_TIMESTAMP
        case "timestamp":
            return TIMESTAMP
        case "binary" | "varbinary" | "blob":
            return BINARY
        case "char" | "varchar" | "text" | "enum" | "set" | "time" | "uuid" | "inet4" | "inet6":
            return STRING
    return None


_INTEGER_DIGITS = {1: 3, 2: 5, 3: 8, 4: 10, 8: 20}


def holds(after: Column, before: Column) -> bool:
    """Whether every value of a column is the same one in the type that it got."""
    if replace(before, name=after.name) == after:
        return True
    signs = before.unsigned == after.unsigned
    match before.kind, after.kind:
        case "integer", "integer":
            return (signs and after.size >= before.size) or (
                before.unsigned and after.size > before.size
            )
        case "integer", "decimal":
            digits = after.precision - after.scale
            return (signs or before.unsigned) and digits >= _INTEGER_DIGITS.get(before.size, 99)
        case "decimal", "decimal":
            digits = (after.precision - after.scale) - (before.precision - before.scale)
            return (signs or before.unsigned) and digits >= 0 and after.scale >= before.scale
        case "varchar", "varchar":
            return before.charset == after.charset and after.size >= before.size
    return False


def from_catalog(row: Mapping[str, Any]) -> Column:
    """A row of information_schema.COLUMNS, its names in capitals."""
    declared = str(row["COLUMN_TYPE"]).lower()
    kind, size = _kind_and_size(str(row["DATA_TYPE"]).lower(), row)
    charset = (row["CHARACTER_SET_NAME"] or "").lower()
    is_decimal, has_fraction = kind == "decimal", kind in ("time", "datetime", "timestamp")
    return Column(
        name=str(row["COLUMN_NAME"]),
        kind=kind,
        size=size,
        unsigned="unsigned" in declared and kind in ("integer", "decimal", "float", "double"),
        charset=_one_name(charset) if kind in _TEXT_KINDS else "",
        precision=int(row["NUMERIC_PRECISION"]) if is_decimal else 0,
        scale=int(row["NUMERIC_SCALE" if is_decimal else "DATETIME_PRECISION"] or 0)
        if is_decimal or has_fraction
        else 0,
        labels=_labels(str(row["COLUMN_TYPE"])) if kind in ("enum", "set") else (),
        refused=_refusal(kind, declared, charset, row),
        collation=row["COLLATION_NAME"] or "",
    )


def from_table_map(
    column: binlog.MapColumn, charsets: Mapping[int, str], wanted: Column | None
) -> Column:
    """A table map's column; ``wanted``, the catalog's, tells only what maps can't say.

    UUID and INET columns are strings there, and a virtual column looks like any other.
    """
    charset = _one_name(charsets.get(column.collation, ""))
    kind, size = _map_kind_and_size(column, charset)
    if kind == "binary" and wanted is not None and _FIXED_BINARY.get(wanted.kind) == size:
        kind = wanted.kind
    signed_kinds = ("integer", "decimal", "float", "double")
    fraction = column.length if kind in ("time", "datetime", "timestamp") else column.scale
    codec = CHARSETS.get(charset, "utf-8")
    return Column(
        name=column.name,
        kind=kind,
        size=size,
        unsigned=column.unsigned and kind in signed_kinds,
        charset=charset if kind in _TEXT_KINDS else "",
        precision=column.precision,
        scale=fraction,
        labels=tuple(label.decode(codec, errors="replace") for label in column.labels),
        refused=(wanted.refused if wanted is not None else "")
        or _unreadable(kind, kind, charset, column.precision),
    )


def _one_name(charset: str) -> str:
    return "utf8mb3" if charset == "utf8" else charset


def _kind_and_size(data_type: str, row: Mapping[str, Any]) -> tuple[str, int]:
    if data_type in _INTEGER_BYTES:
        return "integer", _INTEGER_BYTES[data_type]
    if data_type in ("char", "binary", "varchar", "varbinary"):
        return data_type, int(row["CHARACTER_OCTET_LENGTH"] or 0)
    for suffix in ("text", "blob"):
        if data_type.endswith(suffix) and data_type[: -len(suffix)] in _PREFIX_BYTES:
            return suffix, _PREFIX_BYTES[data_type[: -len(suffix)]]
    if data_type == "bit":
        return "bit", int(row["NUMERIC_PRECISION"])
    if data_type in ("enum", "set"):
        count = len(_labels(str(row["COLUMN_TYPE"])))
        return data_type, _enum_bytes(count) if data_type == "enum" else _set_bytes(count)
    return data_type, _FIXED_BINARY.get(data_type, 0)


def _enum_bytes(labels: int) -> int:
    return 1 if labels < 256 else 2


def _set_bytes(labels: int) -> int:
    return 8 if labels > 32 else (labels + 7) // 8


def _map_kind_and_size(column: binlog.MapColumn, charset: str) -> tuple[str, int]:
    binary = charset == "binary"
    match column.type:
        case binlog.TINY | binlog.SHORT | binlog.INT24 | binlog.LONG | binlog.LONGLONG:
            return "integer", _MAP_INTEGERS[column.type]
        case binlog.STRING:
            return "binary" if binary else "char", column.length
        case binlog.VARCHAR:
            return "varbinary" if binary else "varchar", column.length
        case binlog.BLOB:
            return "blob" if binary else "text", column.length
        case binlog.BIT:
            return "bit", column.length
        case binlog.ENUM:
            return "enum", column.length
        case binlog.SET:
            return "set", column.length
    return _MAP_KINDS.get(column.type, f"type {column.type}"), 0


_MAP_KINDS = {
    binlog.FLOAT: "float",
    binlog.DOUBLE: "double",
    binlog.NEWDECIMAL: "decimal",
    binlog.DATE: "date",
    binlog.YEAR: "year",
    binlog.TIME2: "time",
    binlog.DATETIME2: "datetime",
    binlog.TIMESTAMP2: "timestamp",
    binlog.GEOMETRY: "geometry",
}

_LABEL = re.compile(r"'((?:[^']++|'')*+)'")


def _labels(column_type: str) -> tuple[str, ...]:
    return tuple(found.replace("''", "'") for found in _LABEL.findall(column_type))


def _refusal(kind: str, declared: str, charset: str, row: Mapping[str, Any]) -> str:
    extra = str(row["EXTRA"] or "").upper()
    if "VIRTUAL" in extra:
        return "a virtual generated column is not stored: old values of it need not be in the log"
    if "compressed" in declared:
        return "the log holds a compressed column in the storage engine's own form"
    if "mariadb-5.3" in declared:
        return "it is stored in the old temporal format; ALTER TABLE … FORCE rewrites it"
    if kind == "year" and "(2)" in declared:
        return "YEAR(2) does not tell centuries apart"
    return _unreadable(kind, declared, charset, int(row["NUMERIC_PRECISION"] or 0))


def _unreadable(kind: str, declared: str, charset: str, precision: int) -> str:
    if kind == "decimal" and precision > DECIMAL_PRECISION_MAX:
        return f"decimals have at most {DECIMAL_PRECISION_MAX} digits here"
    if kind in _TEXT_KINDS and _one_name(charset) not in CHARSETS:
        return f"character set {charset or 'unknown'} is not read; convert the column to utf8mb4"
    if _type_of(Column("", kind, precision=1)) is None:
        return f"there is no exact type for {declared}"
    return ""
