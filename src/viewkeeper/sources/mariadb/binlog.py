"""MariaDB's binary log, taken apart: events, table maps and row images. Pure; bytes in, values out.

An event is a 19-byte header, a body, and a CRC-32 where the log's first event says so. Rows come as
a *table map* (the table's name and its columns' types, with names, signs, character sets and labels
under ``binlog_row_metadata=FULL``) followed by row events that refer to it by number. Knows nothing
of connections, schemas or our types.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

# Event types of the server; those with _Z carry their body compressed.
QUERY, STOP, ROTATE, FORMAT, XID, TABLE_MAP, INCIDENT, HEARTBEAT = 2, 3, 4, 15, 16, 19, 26, 27
XA_PREPARE = 38
WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS = frozenset({23, 30}), frozenset({24, 31}), frozenset({25, 32})
ROW_EVENTS = WRITE_ROWS | UPDATE_ROWS | DELETE_ROWS
ROW_EVENTS_SECOND_VERSION = frozenset({30, 31, 32})
ANNOTATE, CHECKPOINT, GTID, GTID_LIST, START_ENCRYPTION = 160, 161, 162, 163, 164
PLAIN_OF = {165: QUERY, 166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
# Nothing in them concerns a table's contents. INTVAR (5), RAND (13) and USER_VAR (14) precede a
# statement, and the statement itself is what has to be judged.
WITHOUT_MEANING = frozenset({5, 13, 14, ANNOTATE, CHECKPOINT, GTID_LIST, START_ENCRYPTION})

# All that a feed knows what to do with.
UNDERSTOOD = (
    frozenset({QUERY, STOP, ROTATE, FORMAT, XID, TABLE_MAP, HEARTBEAT, XA_PREPARE, GTID})
    | ROW_EVENTS
    | WITHOUT_MEANING
)

ARTIFICIAL, IGNORABLE = 0x20, 0x80
GTID_STANDALONE, GTID_PREPARED_XA, GTID_COMPLETED_XA = 1, 64, 128
_HEADER = struct.Struct("<IBIIIH")
HEADER_BYTES = _HEADER.size

# Column type numbers as table maps give them.
TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = (
    1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip
VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 15, 16, 17, 18, 19
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 246, 247, 248, 252, 253, 254, 255

_ONE_META_BYTE = frozenset(
    {FLOAT, DOUBLE, BLOB, GEOMETRY, BLOB_COMPRESSED, TIMESTAMP2, DATETIME2, TIME2}
)
_NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
_CHARACTER = frozenset(
    {STRING, VAR_STRING, VARCHAR, BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED, GEOMETRY}
)


class Malformed(Exception):
    """The bytes are no event that this module understands."""


class Event(NamedTuple):
    """One event; ``end`` is the low 32 bits of its end in the file, 0 where it is in no file."""

    type: int
    flags: int
    timestamp: int
    size: int
    end: int
    body: bytes

    @property
    def is_artificial(self) -> bool:
        return bool(self.flags & ARTIFICIAL) or self.end == 0


def is_understood(event: Event) -> bool:
    """Whether a feed can go past the event: it knows it, or the server marks it as one to be skipped."""
    return event.type in UNDERSTOOD or bool(event.flags & IGNORABLE)


@dataclass(frozen=True, slots=True)
class Gtid:
    """The start of a group of events: who committed it, its number, and how it ends."""

    domain: int
    server: int
    sequence: int
    flags: int

    @property
    def is_standalone(self) -> bool:
        return bool(self.flags & GTID_STANDALONE)

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


@dataclass(frozen=True, slots=True)
class MapColumn:
    """One column of a table map: its type number, and what the metadata say of it."""

    type: int
    length: int  # bytes of a string or of a length prefix; bits of a BIT; digits after a second
    precision: int
    scale: int
    name: str
    unsigned: bool
    collation: int
    labels: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class TableMap:
    """Which table a row event's number means, at this place in the log."""

    number: int
    database: str
    table: str
    columns: tuple[MapColumn, ...]
    # Names of the primary key's columns, in the table's order.
    key: tuple[str, ...]


def parse_event(packet: bytes, checksummed: bool) -> tuple[Event, int]:
    """The event, and its server's number. Raises Malformed when the CRC or the size is wrong."""
    if len(packet) < HEADER_BYTES:
        raise Malformed("an event is shorter than its header")
    timestamp, type_, server, size, end, flags = _HEADER.unpack_from(packet)
    if size != len(packet):
        raise Malformed(f"an event of {size} bytes came with {len(packet)}")
    body = packet[HEADER_BYTES:]
    if type_ == FORMAT:
        body = body[:-4]
    elif type_ == ROTATE and flags & ARTIFICIAL:
        # Made up for the connection: whether it has a checksum depends on the log *before* it.
        body = body[:-4] if _sum_matches(packet) else body
    elif checksummed:
        if not _sum_matches(packet):
            raise Malformed("an event's checksum does not match its bytes")
        body = body[:-4]
    if type_ in PLAIN_OF:
        type_, body = PLAIN_OF[type_], _plain(type_, body)
    return Event(type_, flags, timestamp, size, end, body), server


def _sum_matches(packet: bytes) -> bool:
    return zlib.crc32(packet[:-4]) == int.from_bytes(packet[-4:], "little")


def _plain(type_: int, body: bytes) -> bytes:
    """A compressed event's body as the plain event has it: only what follows its fixed part shrank."""
    at = _query_fixed_bytes(body) if PLAIN_OF[type_] == QUERY else _rows_fixed_bytes(type_, body)
    length_bytes = body[at] & 0x07
    return body[:at] + zlib.decompress(body[at + 1 + length_bytes :])


def _query_fixed_bytes(body: bytes) -> int:
    database_bytes, status_bytes = body[8], int.from_bytes(body[11:13], "little")
    return 13 + status_bytes + database_bytes + 1


def _rows_fixed_bytes(type_: int, body: bytes) -> int:
    at = 8
    if PLAIN_OF[type_] in ROW_EVENTS_SECOND_VERSION:
        at += int.from_bytes(body[8:10], "little")
    columns, at = length_coded(body, at)
    bitmap_bytes = (columns + 7) // 8
    return at + bitmap_bytes * (2 if PLAIN_OF[type_] in UPDATE_ROWS else 1)


def is_checksummed(format_event: Event) -> bool:
    """Whether the events after this format description carry a CRC-32."""
    return format_event.body[-1] == 1


def rotation(event: Event) -> tuple[str, int]:
    """The file that comes next, and the place in it."""
    return event.body[8:].decode(), int.from_bytes(event.body[:8], "little")


def gtid(event: Event, server: int) -> Gtid:
    sequence, domain, flags = struct.unpack_from("<QIB", event.body)
    return Gtid(domain, server, sequence, flags)


def query(event: Event) -> tuple[str, str]:
    """The default database and the statement's text."""
    at = 13 + int.from_bytes(event.body[11:13], "little")
    database = event.body[at : at + event.body[8]].decode()
    text = event.body[at + event.body[8] + 1 :]
    return database, text.decode(errors="replace")


def length_coded(data: bytes, at: int) -> tuple[int, int]:
    """A length-coded integer and the place behind it."""
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None:
        raise Malformed("a length-coded integer starts with an unknown byte")
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def table_number(body: bytes) -> int:
    return int.from_bytes(body[:6], "little")


def parse_table_map(body: bytes) -> TableMap:
    """A table map with whatever metadata it carries; without them names are empty."""
    at = 8
    database, at = body[at + 1 : at + 1 + body[at]].decode(), at + 2 + body[at]
    table, at = body[at + 1 : at + 1 + body[at]].decode(), at + 2 + body[at]
    count, at = length_coded(body, at)
    types = body[at : at + count]
    meta_bytes, at = length_coded(body, at + count)
    shapes = _shapes(types, body[at : at + meta_bytes])
    metadata = _Metadata(
        tuple(shape[0] for shape in shapes), body, at + meta_bytes + (count + 7) // 8
    )
    columns = tuple(
        MapColumn(*shape, *said) for shape, said in zip(shapes, metadata.columns(), strict=True)
    )
    key = tuple(columns[index].name for index in metadata.key())
    return TableMap(table_number(body), database, table, columns, key)


def _shapes(types: bytes, meta: bytes) -> list[tuple[int, int, int, int]]:
    """(type, length, precision, scale) of each column."""
    shapes, at = [], 0
    for type_ in types:
        length = precision = scale = 0
        if type_ in _ONE_META_BYTE:
            length, at = meta[at], at + 1
        elif type_ in (VARCHAR, VARCHAR_COMPRESSED):
            length, at = int.from_bytes(meta[at : at + 2], "little"), at + 2
        elif type_ == BIT:
            length, at = meta[at] + 8 * meta[at + 1], at + 2
        elif type_ == NEWDECIMAL:
            precision, scale, at = meta[at], meta[at + 1], at + 2
        elif type_ in (STRING, ENUM, SET, VAR_STRING):
            # The two highest bits of a length above 255 hide, inverted, in the real type's byte.
            type_, length = meta[at] | 0x30, meta[at + 1] | ((meta[at] & 0x30) ^ 0x30) << 4
            at += 2
        shapes.append((type_, length, precision, scale))
    return shapes


class _Metadata:
    """The optional part of a table map: a list of (kind, length, value)."""

    def __init__(self, types: tuple[int, ...], body: bytes, at: int) -> None:
        self._types = types
        self._fields: dict[int, bytes] = {}
        while at < len(body):
            kind = body[at]
            length, at = length_coded(body, at + 1)
            self._fields[kind] = body[at : at + length]
            at += length

    def columns(self) -> Iterator[tuple[str, bool, int, tuple[bytes, ...]]]:
        """(name, unsigned, collation, labels) of each column."""
        names = iter(list(self._texts(4)))
        signs = iter(self._signs())
        collations = iter(self._collations(2, 3, _CHARACTER))
        label_collations = iter(self._collations(10, 11, frozenset({ENUM, SET})))
        labels = {SET: iter(self._labels(5)), ENUM: iter(self._labels(6))}
        for type_ in self._types:
            collation = 0
            if type_ in _CHARACTER:
                collation = next(collations, 0)
            elif type_ in labels:
                collation = next(label_collations, 0)
            yield (
                next(names, b"").decode(),
                next(signs, False) if type_ in _NUMERIC else False,
                collation,
                next(labels[type_], ()) if type_ in labels else (),
            )

    def key(self) -> list[int]:
        """Numbers of the primary key's columns; with prefixes they come in pairs."""
        return sorted(self._numbers(8)) or sorted(list(self._numbers(9))[::2])

    def _signs(self) -> list[bool]:
        return [bool(byte & 0x80 >> bit) for byte in self._fields.get(1, b"") for bit in range(8)]

    def _collations(self, default: int, each: int, of: frozenset[int]) -> list[int]:
        if each in self._fields:
            return list(self._numbers(each))
        count = sum(type_ in of for type_ in self._types)
        numbers = list(self._numbers(default))
        exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=False))
        return [exceptions.get(i, numbers[0]) for i in range(count)] if numbers else []

    def _numbers(self, kind: int) -> Iterator[int]:
        data, at = self._fields.get(kind, b""), 0
        while at < len(data):
            number, at = length_coded(data, at)
            yield number

    def _texts(self, kind: int) -> Iterator[bytes]:
        data, at = self._fields.get(kind, b""), 0
        while at < len(data):
            size, at = length_coded(data, at)
            yield data[at : at + size]
            at += size

    def _labels(self, kind: int) -> Iterator[tuple[bytes, ...]]:
        data, at = self._fields.get(kind, b""), 0
        while at < len(data):
            count, at = length_coded(data, at)
            labels = []
            for _ in range(count):
                size, at = length_coded(data, at)
                labels.append(data[at : at + size])
                at += size
            yield tuple(labels)


Reader = Callable[[bytes, int], tuple[Any, int]]


def row_images(event: Event, readers: tuple[Reader, ...], kept: tuple[int, ...]) -> list[Any]:
    """The event's row images in order (before, after, before, … for an update), columns ``kept``.

    Raises Malformed when an image lacks columns: old values would be missing.
    """
    body, at = event.body, 8
    if event.type in ROW_EVENTS_SECOND_VERSION:
        at += int.from_bytes(body[8:10], "little")
    count, at = length_coded(body, at)
    if count != len(readers):
        raise Malformed("a row event and its table map differ in their number of columns")
    bitmap_bytes = (count + 7) // 8
    for _ in range(2 if event.type in UPDATE_ROWS else 1):
        present = int.from_bytes(body[at : at + bitmap_bytes], "little")
        if present & (1 << count) - 1 != (1 << count) - 1:
            raise Malformed("a row image lacks columns: binlog_row_image is not FULL")
        at += bitmap_bytes
    images, whole = [], kept == tuple(range(count))
    masks = [(reader, 1 << index) for index, reader in enumerate(readers)]
    end = len(body)
    while at < end:
        nulls = int.from_bytes(body[at : at + bitmap_bytes], "little")
        at += bitmap_bytes
        values: list[Any] = []
        for reader, mask in masks:
            if nulls & mask:
                values.append(None)
            else:
                value, at = reader(body, at)
                values.append(value)
        images.append(tuple(values) if whole else tuple([values[i] for i in kept]))
    if at != end:
        raise Malformed("a row image is longer than its event")
    return images
