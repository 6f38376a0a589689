"""MariaDB's events under attack: refused by name, or the rows that another decoder finds, too."""

from __future__ import annotations

import functools
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from fuzzing import corpus, second_binlog
from viewkeeper.arrow import batch_of, rows_of
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.binlog import Event
from viewkeeper.sources.mariadb.catalog import Table
from viewkeeper.sources.mariadb.columns import Column
from viewkeeper.sources.mariadb.dialect import logged
from viewkeeper.sources.mariadb.layout import Layout, layout_of
from viewkeeper.sources.wire import Malformed

# What is replaced by the attacker's bytes: the rows, their table's map, the whole event, an event of any kind.
ROWS, MAP, WHOLE, OTHER = range(4)
_HEADER = struct.Struct("<IBIIIH")
_FIXED = {"uuid": 16, "inet4": 4, "inet6": 16}


@dataclass(frozen=True)
class Pair:
    """A row event and the map of its table, as the server wrote them."""

    table_map: bytes
    rows: bytes


@functools.cache
def pairs() -> tuple[Pair, ...]:
    found, table_map = [], b""
    for event in corpus.events():
        if event[4] == binlog.TABLE_MAP:
            table_map = event
        elif event[4] in binlog.ROW_EVENTS or binlog.PLAIN_OF.get(event[4], 0) in binlog.ROW_EVENTS:
            found.append(Pair(table_map, event))
    return tuple(found)


def seeds() -> list[bytes]:
    """Number of a pair (two bytes), what is replaced, and by what."""
    found = []
    for number, pair in enumerate(pairs()):
        head = struct.pack(">H", number)
        found.append(head + bytes([ROWS]) + pair.rows[19:-4])
        found.append(head + bytes([WHOLE]) + pair.rows)
        if number % 5 == 0:
            found.append(head + bytes([MAP]) + pair.table_map[19:-4])
    found += [b"\0\0" + bytes([OTHER]) + event[4:5] + event[19:-4] for event in corpus.events()]
    return list(dict.fromkeys(found))


def sealed(kind: int, body: bytes) -> bytes:
    """An event around a body, with the size and the checksum that it has to have."""
    size = binlog.HEADER_BYTES + len(body) + binlog.CHECKSUM_BYTES
    event = _HEADER.pack(1_700_000_000, kind, 1, size, 4 + size, 0) + body
    return event + struct.pack("<I", zlib.crc32(event))


def attack(data: bytes) -> None:
    """Raises AssertionError, or whatever else a decoder raised that it may not."""
    if len(data) < 4:
        return
    pair, what, content = pairs()[int.from_bytes(data[:2], "big") % len(pairs())], data[2], data[3:]
    if what % 4 == ROWS:
        _attack_rows(pair.table_map, sealed(pair.rows[4], content))
    elif what % 4 == MAP:
        _attack_rows(sealed(binlog.TABLE_MAP, content), pair.rows, is_map_true=False)
    elif what % 4 == WHOLE:
        _attack_whole(content)
    else:
        _attack_other(sealed(content[0], content[1:]))


def decoded(table_map: bytes, rows: bytes) -> tuple[Layout, list[Any]] | None:
    """As the feed does it; None where the layout has columns that can't be stepped over."""
    described, _ = binlog.parse_event(table_map)
    parsed = binlog.parse_table_map(described.body)
    layout = layout_of(parsed, "r", _known(parsed), _charsets())
    if layout is None:
        return None
    event, _ = binlog.parse_event(rows)
    return layout, binlog.row_images(event, layout.readers, layout.kept)


def _attack_rows(table_map: bytes, rows: bytes, *, is_map_true: bool = True) -> None:
    try:
        found = decoded(table_map, rows)
    except Malformed:
        return
    if found is None:
        return
    layout, images = found
    schema = layout.table.schema.schema
    if not schema.fields:
        return  # no column can be read: an Arrow batch without any does not tell its number of rows
    # What was read can be stored.
    assert repr(list(rows_of(batch_of(images, schema), schema))) == repr(images)
    if is_map_true and rows[4] in binlog.ROW_EVENTS:
        _compare(layout, images, table_map, rows)


def _compare(layout: Layout, images: list[Any], table_map: bytes, rows: bytes) -> None:
    try:
        others = second_binlog.images(table_map, rows)
    except Exception:  # it is not made for broken input: then it has no say
        return
    columns = [layout.table.columns[index] for index in layout.kept]
    assert len(images) == len(others), rows
    for image, other in zip(images, others, strict=True):
        for column, ours in zip(columns, image, strict=True):
            theirs = other[column.name]
            assert second_binlog.agrees(column, ours, theirs), (column, ours, theirs, rows)


def _attack_whole(event: bytes) -> None:
    """Without a new checksum: then only what the server wrote is an event."""
    try:
        binlog.parse_event(event)
    except Malformed:
        return
    assert event in _written(), event


@functools.cache
def _written() -> frozenset[bytes]:
    return frozenset(corpus.events())


def _attack_other(packet: bytes) -> None:
    try:
        event, server = binlog.parse_event(packet)
        reader = _OTHERS.get(event.type)
        if reader is not None:
            reader(event, server)
    except Malformed:
        return


_OTHERS: dict[int, Any] = {
    binlog.QUERY: lambda event, server: logged(event.body),
    binlog.ROTATE: lambda event, server: binlog.rotation(event),
    binlog.FORMAT: lambda event, server: binlog.checksum_kind(event),
    binlog.GTID: binlog.gtid,
    binlog.TABLE_MAP: lambda event, server: binlog.parse_table_map(event.body),
}


@functools.cache
def _charsets() -> dict[int, str]:
    return {int(number): name for number, name in corpus.facts("mariadb")["charsets"].items()}


@functools.lru_cache(1_000)
def _known(described: binlog.TableMap) -> Table | None:
    """What the catalog would add: which strings are really UUIDs or addresses."""
    declared = corpus.facts("mariadb")["declared"]
    number = described.table.removeprefix("v")
    kind = declared[int(number)] if number.isdecimal() and int(number) < len(declared) else ""
    if kind not in _FIXED:
        return None
    columns = (Column("id", "integer", 8), Column("v", kind, _FIXED[kind]))
    return Table("r", described.database, described.table, columns, ("id",))


def event_of(kind: int, body: bytes) -> Event:
    return binlog.parse_event(sealed(kind, body))[0]
