"""MariaDB's binary log, taken apart: events, table maps and row images. Pure; bytes in, values out.

An event is a 19-byte header, a body, and a CRC-32, without which no log is read. Rows come as
a *table map* (the table's name and its columns' types, with names, signs, character sets and labels
under ``binlog_row_metadata=FULL``) followed by row events that refer to it by number. Knows nothing
of connections, schemas or our types.

Whatever does not end where it says is `Malformed`, and no compressed body grows beyond `EVENT_BYTES_MAX`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from viewkeeper.inflating import inflated
from viewkeeper.sources.wire import ByteReader, Malformed

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
CHECKSUM_BYTES = 4
CRC32 = 1
# What an event may take, plain or once it is decompressed. Events of rows have some 8 KiB, unless a single row
# is larger; the server's own limit is max_allowed_packet (16 MiB unless it is set, 1 GiB at most).
EVENT_BYTES_MAX = 256 << 20

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


class Incomplete(Malformed):
    """A row image lacks columns, by the settings of the server or of a session."""


class TooLarge(Malformed):
    """An event that no machine should be asked to hold; reading it again would not help."""


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


def parse_event(packet: bytes) -> tuple[Event, int]:
    """The event, and its server's number. Raises Malformed when the CRC or the size is wrong."""
    if len(packet) < HEADER_BYTES + CHECKSUM_BYTES:
        raise Malformed(f"an event of {len(packet)} bytes is shorter than its header")
    timestamp, type_, server, size, end, flags = _HEADER.unpack_from(packet)
    if size != len(packet):
        raise Malformed(f"an event of {size} bytes came with {len(packet)}")
    if zlib.crc32(packet[:-4]) != int.from_bytes(packet[-4:], "little"):
        raise Malformed("an event's checksum does not match its bytes")
    body = packet[HEADER_BYTES:-CHECKSUM_BYTES]
    if type_ in PLAIN_OF:
        type_, body = PLAIN_OF[type_], _plain(type_, body)
    return Event(type_, flags, timestamp, size, end, body), server


def _plain(type_: int, body: bytes) -> bytes:
    """A compressed event's body as the plain event has it: only what follows its fixed part shrank."""
    at = _query_fixed_bytes(body) if PLAIN_OF[type_] == QUERY else _rows_fixed_bytes(type_, body)
    data = ByteReader(body, "big", at)
    head = data.number(1)
    size = data.number(head & 0x07)
    if head & 0xF8 != 0x80 or not 1 <= head & 0x07 <= 4:
        raise Malformed(f"an event is compressed in an unknown way ({head:#x})")
    if at + size > EVENT_BYTES_MAX:
        raise TooLarge(f"an event has {size} bytes uncompressed, the most is {EVENT_BYTES_MAX}")
    return body[:at] + _decompressed(data.rest(), size)


def _decompressed(data: bytes, size: int) -> bytes:
    """Exactly that many bytes."""
    try:
        found = inflated(data, size)
    except ValueError as error:
        raise Malformed(
            f"a compressed event does not have the {size} bytes that it says: {error}"
        ) from error
    if len(found) != size:
        raise Malformed(f"a compressed event says that it has {size} bytes, and has {len(found)}")
    return found


def _query_fixed_bytes(body: bytes) -> int:
    """Thread, time, sizes of database and status, an error's number; then status and database."""
    data = ByteReader(body, "little", 8)
    database_bytes, _, status_bytes = data.number(1), data.number(2), data.number(2)
    data.take(status_bytes + database_bytes + 1)
    return data.at


def _rows_fixed_bytes(type_: int, body: bytes) -> int:
    data = _rows_start(PLAIN_OF[type_], body)
    bitmap_bytes = (data.length_coded() + 7) // 8
    data.take(bitmap_bytes * (2 if PLAIN_OF[type_] in UPDATE_ROWS else 1))
    return data.at


def _rows_start(type_: int, body: bytes) -> ByteReader:
    """Behind a row event's table number, its flags and, in the second version, what else it says."""
    data = ByteReader(body, "little")
    data.take(8)
    if type_ in ROW_EVENTS_SECOND_VERSION:
        extra_bytes = data.number(2)  # with these two
        data.take(extra_bytes - 2)
    return data


def checksum_kind(format_event: Event) -> int:
    """How the events after this format description are checksummed; the description itself always is."""
    data = ByteReader(format_event.body, "little")
    version, _, _, header_bytes = data.number(2), data.take(50), data.number(4), data.number(1)
    if version != 4 or header_bytes != HEADER_BYTES:
        raise Malformed(f"the log is of version {version}, its headers have {header_bytes} bytes")
    return data.rest()[-1] if data.left else 0


def rotation(event: Event) -> tuple[str, int]:
    """The file that comes next, and the place in it."""
    data = ByteReader(event.body, "little")
    place = data.number(8)
    return data.text(data.left), place


def gtid(event: Event, server: int) -> Gtid:
    data = ByteReader(event.body, "little")
    sequence, domain, flags = data.number(8), data.number(4), data.number(1)
    return Gtid(domain, server, sequence, flags)


def length_coded(data: bytes, at: int) -> tuple[int, int]:
    """A length-coded integer and the place behind it."""
    reader = ByteReader(data, "little", at)
    return reader.length_coded(), reader.at


def table_number(body: bytes) -> int:
    return ByteReader(body, "little").number(6)


def parse_table_map(body: bytes) -> TableMap:
    """A table map with whatever metadata it carries; without them names are empty."""
    data = ByteReader(body, "little", 8)
    database, table = _name(data), _name(data)
    count = data.length_coded()
    types = data.take(count)
    if not count:
        raise Malformed("a table map has no columns")
    shapes = _shapes(types, data.take(data.length_coded()))
    data.take((count + 7) // 8)  # which may be NULL
    metadata = _Metadata(tuple(shape[0] for shape in shapes), data)
    columns = tuple(
        MapColumn(*shape, *said) for shape, said in zip(shapes, metadata.columns(), strict=True)
    )
    key = metadata.key()
    if key and key[-1] >= count:
        raise Malformed(f"a key has column {key[-1]} of {count}")
    names = tuple(columns[index].name for index in key)
    return TableMap(table_number(body), database, table, columns, names)


def _name(data: ByteReader) -> str:
    found = data.text(data.number(1))
    data.take(1)  # a zero byte
    return found


def _shapes(types: bytes, meta: bytes) -> list[tuple[int, int, int, int]]:
    """(type, length, precision, scale) of each column."""
    shapes, data = [], ByteReader(meta, "little")
    for type_ in types:
        length = precision = scale = 0
        if type_ in _ONE_META_BYTE:
            length = data.number(1)
        elif type_ in (VARCHAR, VARCHAR_COMPRESSED):
            length = data.number(2)
        elif type_ == BIT:
            length = data.number(1) + 8 * data.number(1)
        elif type_ == NEWDECIMAL:
            precision, scale = data.number(1), data.number(1)
        elif type_ in (STRING, ENUM, SET, VAR_STRING):
            # The two highest bits of a length above 255 hide, inverted, in the real type's byte.
            real, low = data.number(1), data.number(1)
            type_, length = real | 0x30, low | ((real & 0x30) ^ 0x30) << 4
        if not _is_possible(type_, length, precision, scale):
            raise Malformed(f"a column of type {type_} can't have {length or (precision, scale)}")
        shapes.append((type_, length, precision, scale))
    data.finish()
    return shapes


def _is_possible(type_: int, length: int, precision: int, scale: int) -> bool:
    """Whether values of such a column can be read at all: readers are made for what is said here."""
    if type_ in (TIMESTAMP2, DATETIME2, TIME2):
        return length <= 6
    if type_ in (BLOB, GEOMETRY, BLOB_COMPRESSED):
        return 1 <= length <= 4
    if type_ == NEWDECIMAL:
        return 1 <= precision <= 65 and scale <= min(precision, 38)
    if type_ == BIT:
        return 1 <= length <= 64
    if type_ == ENUM:
        return 1 <= length <= 2
    return type_ != SET or 1 <= length <= 8


class _Metadata:
    """The optional part of a table map: a list of (kind, length, value)."""

    def __init__(self, types: tuple[int, ...], data: ByteReader) -> None:
        self._types = types
        self._fields: dict[int, bytes] = {}
        while data.left:
            kind = data.number(1)
            self._fields[kind] = data.take(data.length_coded())

    def columns(self) -> Iterator[tuple[str, bool, int, tuple[bytes, ...]]]:
        """(name, unsigned, collation, labels) of each column."""
        names = iter(list(self._names()))
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
                next(names, ""),
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
        data = self._field(kind)
        while data.left:
            yield data.length_coded()

    def _names(self) -> Iterator[str]:
        data = self._field(4)
        while data.left:
            yield data.text(data.length_coded())

    def _labels(self, kind: int) -> Iterator[tuple[bytes, ...]]:
        data = self._field(kind)
        while data.left:
            yield tuple([data.take(data.length_coded()) for _ in range(data.length_coded())])

    def _field(self, kind: int) -> ByteReader:
        return ByteReader(self._fields.get(kind, b""), "little")


Reader = Callable[[bytes, int], tuple[Any, int]]


def row_images(event: Event, readers: tuple[Reader, ...], kept: tuple[int, ...]) -> list[Any]:
    """The event's row images in order (before, after, before, … for an update), columns ``kept``.

    Raises Incomplete when an image lacks columns: old values would be missing.
    """
    body, data = event.body, _rows_start(event.type, event.body)
    count = data.length_coded()
    if not count or count != len(readers):
        raise Malformed("a row event and its table map differ in their number of columns")
    bitmap_bytes = (count + 7) // 8
    for _ in range(2 if event.type in UPDATE_ROWS else 1):
        present = data.number(bitmap_bytes)
        if present & (1 << count) - 1 != (1 << count) - 1:
            raise Incomplete("a row image lacks columns: binlog_row_image is not FULL")
    try:
        images, end = _images(body, data.at, readers, kept)
    except (IndexError, ValueError, ArithmeticError, struct.error) as error:
        raise Malformed(f"a row image can't be read: {error}") from error
    if end != len(body):
        raise Malformed(f"row images end at byte {end} of {len(body)}")
    if event.type in UPDATE_ROWS and len(images) % 2:
        raise Malformed("an update has an old row without a new one")
    return images


def _images(
    body: bytes, at: int, readers: tuple[Reader, ...], kept: tuple[int, ...]
) -> tuple[list[Any], int]:
    """The images from there on, and where they end; past the body's end, what was read is nothing."""
    images: list[Any] = []
    whole, bitmap_bytes, end = (
        kept == tuple(range(len(readers))),
        (len(readers) + 7) // 8,
        len(body),
    )
    masks = [(reader, 1 << index) for index, reader in enumerate(readers)]
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
    return images, at
