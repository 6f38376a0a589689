"""The binary log read by another decoder: `mysql-replication`, given the same bytes without a server."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from pymysql.protocol import MysqlPacket
from pymysqlreplication import row_event
from pymysqlreplication.packet import BinLogPacketWrapper

from viewkeeper.sources.mariadb.columns import CHARSETS, Column

_EVENTS = frozenset(
    {
        row_event.TableMapEvent,
        row_event.WriteRowsEvent,
        row_event.UpdateRowsEvent,
        row_event.DeleteRowsEvent,
    }
)


class _Connection:
    """Answers the two questions that the decoder has for its server."""

    charset = "utf8mb4"

    def _get_dbms(self) -> str:
        return "mariadb"


def images(table_map: bytes, rows: bytes) -> list[dict[str, Any]]:
    """Row images of a sealed row event, by column; raises whatever that decoder raises."""
    tables: dict[int, Any] = {}
    _wrapped(table_map, tables)
    found: list[dict[str, Any]] = []
    for row in _wrapped(rows, tables).rows:
        if "values" in row:
            found.append(row["values"])
        else:
            found += [row["before_values"], row["after_values"]]
    return found


def _wrapped(event: bytes, tables: dict[int, Any]) -> Any:
    packet = MysqlPacket(b"\0" + event, "utf8mb4")
    return BinLogPacketWrapper(
        packet, tables, _Connection(), (10, 11, 0), True, _EVENTS, None, None, None, None,
        False, False, True, True, False,
    ).event  # fmt: skip


def agrees(column: Column, ours: Any, theirs: Any) -> bool:
    """Whether both mean the same value; where the other decoder has no value for it, we can't tell."""
    if ours is None or theirs is None:
        # Zero dates and empty sets are None there as well, labels that are not UTF-8, too.
        return ours is None or column.kind in ("set", "enum") or ours == ""
    if column.charset == "utf16" or (column.kind == "enum" and column.charset == "latin1"):
        return True  # known to be read wrongly there: little-endian, and labels as UTF-8
    match column.kind:
        case "integer":
            return int(ours) == theirs
        case "bit":
            return int(ours) == int(theirs, 2)
        case "year":
            return ours == theirs or (ours, theirs) == (0, 1900)
        case "float" | "double":
            return ours == theirs or (ours != ours and theirs != theirs)
        case "decimal":
            return isinstance(ours, Decimal) and ours == theirs
        case "timestamp":
            # Newer servers count seconds without a sign, up to the year 2106.
            return ours.replace(tzinfo=None) == theirs or ours.year >= 2038
        case "time":
            return _as_seconds(ours) == abs(theirs) or ours.startswith("-")
        case "set":
            return set(ours.split(",")) == theirs
        case "char" | "varchar" | "text" | "enum":
            if isinstance(theirs, bytes):  # a character set that it does not know
                return (
                    theirs == ours.encode(CHARSETS[column.charset], "replace") or "\ufffd" in ours
                )
            return ours == theirs or "\ufffd" in ours
        case "date" | "datetime":
            return ours == theirs
    return True  # bytes, which are texts there


def _as_seconds(text: str) -> dt.timedelta:
    hours, minutes, seconds = text.removeprefix("-").split(":")
    return dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
