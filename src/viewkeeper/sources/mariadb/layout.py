"""How the rows of one table lie in the log, by the log's own description of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.binlog import MapColumn, Reader, TableMap
from viewkeeper.sources.mariadb.catalog import Table
from viewkeeper.sources.mariadb.codec import decimal_bytes, log_reader, log_skipper
from viewkeeper.sources.mariadb.columns import Column, from_table_map

# Types whose values a table map of ours can't name: how to step over them.
_PREFIXED = frozenset({binlog.BLOB, binlog.GEOMETRY, binlog.BLOB_COMPRESSED})


@dataclass(frozen=True)
class Layout:
    """Readers for all columns of a row image, and which of them a row keeps."""

    table: Table
    readers: tuple[Reader, ...]
    kept: tuple[int, ...]


def layout_of(
    table_map: TableMap, relation: str, known: Table | None, charsets: Mapping[int, str]
) -> Layout | None:
    """The layout that the map describes; None when it lacks names or has a type we can't step over.

    ``known``, the table as the catalog has it, tells what maps can't: which columns are refused for
    the way they come about, and which strings are really UUIDs or addresses.
    """
    columns: list[Column] = []
    readers: list[Reader] = []
    for described in table_map.columns:
        if not described.name:
            return None
        wanted = known.column(described.name) if known is not None else None
        column = from_table_map(described, charsets, wanted)
        reader = _reader(column, described)
        if reader is None:
            return None
        columns.append(column)
        readers.append(reader)
    table = Table(relation, table_map.database, table_map.table, tuple(columns), table_map.key)
    kept = tuple(index for index, column in enumerate(columns) if not column.refused)
    return Layout(table, tuple(readers), kept)


def _reader(column: Column, described: MapColumn) -> Reader | None:
    if column.refused:
        return _skipper(column, described)
    return log_reader(column)


def _skipper(column: Column, described: MapColumn) -> Reader | None:
    if described.type in _PREFIXED:
        return log_skipper(described.length, prefixed=True)
    if described.type == binlog.VARCHAR_COMPRESSED:
        return log_skipper(1 if described.length < 256 else 2, prefixed=True)
    if described.type in _OLD_MOMENTS:
        return log_skipper(_OLD_MOMENTS[described.type], prefixed=False)
    if described.type == binlog.NEWDECIMAL:
        # Also of more digits than we have a type for.
        return log_skipper(decimal_bytes(described.precision, described.scale), prefixed=False)
    accepted = replace(column, refused="")
    return None if accepted.type is None else log_reader(accepted)


_OLD_MOMENTS = {binlog.TIMESTAMP: 4, binlog.TIME: 3, binlog.DATETIME: 8}
