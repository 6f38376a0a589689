"""The pgoutput protocol, version 1: bytes of one message in, one message out. Pure.

Rows are the bulk of a feed, so a relation gets its own prepared `TupleDecoder`; everything else is
rare and read plainly. Integers are big-endian; strings end with a zero byte.

Every message is read to its last byte and no further: one that is too short or too long is `Malformed`.
"""

from __future__ import annotations

import datetime as dt
import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.types import Row, Value
from viewkeeper.sources.postgres.codec import SURE_DIGITS, integer
from viewkeeper.sources.wire import ByteReader, Malformed

# PostgreSQL counts from the year 2000.
EPOCH_MICROSECONDS = int(dt.datetime(2000, 1, 1, tzinfo=dt.UTC).timestamp()) * 1_000_000

# Kind, place, moment, xid; kind, flags, place, end, moment.
_BEGIN, _COMMIT = struct.Struct(">xQqI"), struct.Struct(">xBQQq")
BEGIN_BYTES, COMMIT_BYTES = _BEGIN.size, _COMMIT.size
# No relation of PostgreSQL has more, those included that were dropped.
COLUMNS_MAX = 1_600
# A row's kind, oid, letter and number of columns.
_ROW = struct.Struct(">xI3x")
ROW_BYTES_MIN = _ROW.size
# A value's length, behind the letter that says that there is a text.
_LENGTH = struct.Struct(">xI")
# What `moment` can tell, up to the last second of the year 9999.
MICROSECONDS_MIN = -EPOCH_MICROSECONDS
MICROSECONDS_MAX = 253_402_300_799_000_000 - EPOCH_MICROSECONDS

BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE, TYPE, ORIGIN = b"BCRIUDTMYO"


@dataclass(frozen=True)
class StreamColumn:
    name: str
    type_oid: int
    modifier: int


@dataclass(frozen=True)
class StreamRelation:
    """A relation as the stream describes it before its first row and after every change."""

    oid: int
    namespace: str
    name: str
    identity: str  # d(efault), n(othing), f(ull), i(ndex)
    columns: tuple[StreamColumn, ...]


@dataclass(frozen=True)
class Truncate:
    oids: tuple[int, ...]


@dataclass(frozen=True)
class LogicalMessage:
    transactional: bool
    lsn: int
    prefix: str
    content: bytes


class UnreadableValue(ValueError):
    """A value that has no canonical form; the caller knows which relation it belongs to."""

    def __init__(self, column: int, text: bytes) -> None:
        super().__init__(column, text)
        self.column = column
        self.text = text


class MissingOldValue(ValueError):
    """An unchanged TOAST value without an old row to take it from, or an old row with keys only."""


def decode_begin(payload: bytes) -> tuple[int, int, int]:
    """When it was committed, as a number for `moment`, its xid's lower 32 bits, where its commit record begins."""
    try:
        final_lsn, microseconds, xid = _BEGIN.unpack(payload)
    except struct.error:
        raise _of_another_size(payload, BEGIN_BYTES) from None
    if not MICROSECONDS_MIN <= microseconds <= MICROSECONDS_MAX:
        raise Malformed(f"a transaction was committed {microseconds} microseconds after 2000")
    return microseconds, xid, final_lsn


def moment(microseconds: int) -> dt.datetime:
    """A time of the stream. (Dividing is exact enough here, and three times as fast as a timedelta.)"""
    return dt.datetime.fromtimestamp((microseconds + EPOCH_MICROSECONDS) / 1e6, dt.UTC)


def end_of_commit(payload: bytes) -> int:
    """Where a transaction's commit record ends."""
    try:
        end: int = _COMMIT.unpack(payload)[2]
    except struct.error:
        raise _of_another_size(payload, COMMIT_BYTES) from None
    return end


def _of_another_size(payload: bytes, size: int) -> Malformed:
    return Malformed(f"a message {payload[:1]!r} has {len(payload)} bytes, not {size}")


def relation_of(payload: bytes) -> int:
    """The oid of the relation whose row a message has."""
    try:
        oid: int = _ROW.unpack_from(payload)[0]
    except struct.error:
        raise Malformed(f"a message {payload[:1]!r} of {len(payload)} bytes has no row") from None
    return oid


def decode_relation(payload: bytes) -> StreamRelation:
    data = ByteReader(payload, "big", 1)
    oid, namespace, name = data.number(4), data.terminated(), data.terminated()
    identity = chr(data.number(1))
    columns = []
    count = data.number(2)
    if count > COLUMNS_MAX:
        raise Malformed(f"a relation has {count} columns, the most is {COLUMNS_MAX}")
    for _ in range(count):
        data.number(1)  # whether it is part of the key
        columns.append(StreamColumn(data.terminated(), data.number(4), data.number(4, signed=True)))
    data.finish()
    # pg_catalog is sent as an empty namespace.
    return StreamRelation(oid, namespace or "pg_catalog", name, identity, tuple(columns))


def decode_truncate(payload: bytes) -> Truncate:
    data = ByteReader(payload, "big", 1)
    count, _ = data.number(4), data.number(1)  # options
    if data.left != 4 * count:
        raise Malformed(f"a TRUNCATE of {count} relations has {data.left} bytes for them")
    return Truncate(tuple(data.number(4) for _ in range(count)))


def decode_message(payload: bytes) -> LogicalMessage:
    data = ByteReader(payload, "big", 1)
    transactional, lsn, prefix = bool(data.number(1) & 1), data.number(8), data.terminated()
    content = data.take(data.number(4))
    data.finish()
    return LogicalMessage(transactional, lsn, prefix, content)


def pass_over(payload: bytes) -> None:
    """A message of a type or an origin: nothing in it is for us, but it must be one."""
    data = ByteReader(payload, "big", 1)
    if payload[0] == TYPE:
        data.number(4)
        data.terminated()
    else:
        data.number(8)
    data.terminated()
    data.finish()


NULL, UNCHANGED, TEXT = b"nut"
OLD_FULL, OLD_KEY, NEW = b"OKN"


Parser = Callable[[bytes], Value]


class TupleDecoder:
    """Rows of one relation; ``parsers`` has one entry per column of the stream, None to skip it."""

    def __init__(self, parsers: Sequence[Parser | None]) -> None:
        self._parsers = tuple(parsers)
        # What stands before a row: its letter, and how many columns it has.
        count = len(self._parsers).to_bytes(2, "big")
        self._old, self._new = b"O" + count, b"N" + count

    def insert(self, payload: bytes) -> Row:
        """The row of an INSERT message."""
        if payload[5:8] != self._new:
            raise self._headless(payload)
        row, position = self._tuple(payload, 8, None)
        if position != len(payload):
            raise _not_ended(payload, position)
        return row

    def update(self, payload: bytes) -> tuple[Row, Row]:
        """Old and new row of an UPDATE message."""
        if payload[5:8] != self._old:
            raise self._headless(payload)
        old, position = self._tuple(payload, 8, None)
        if payload[position : position + 3] != self._new:
            raise Malformed("an UPDATE has no new row, or one of another number of columns")
        new, position = self._tuple(payload, position + 3, old)
        if position != len(payload):
            raise _not_ended(payload, position)
        return old, new

    def delete(self, payload: bytes) -> Row:
        """The old row of a DELETE message."""
        if payload[5:8] != self._old:
            raise self._headless(payload)
        row, position = self._tuple(payload, 8, None)
        if position != len(payload):
            raise _not_ended(payload, position)
        return row

    def _headless(self, payload: bytes) -> Exception:
        """Why no row begins where it should."""
        if payload[0] != INSERT and payload[5:6] in (b"K", b"N"):
            return MissingOldValue()
        return Malformed("a row has another letter, or another number of columns than its relation")

    def _tuple(self, payload: bytes, position: int, old: Row | None) -> tuple[Row, int]:
        """The row and where it ends, which may be past the message's end: the caller compares."""
        try:
            return self._quickly(payload, position, old)
        except (ValueError, ArithmeticError, IndexError, struct.error):
            return self._carefully(payload, position, old)

    @functools.cached_property
    def _quickly(self) -> Callable[[bytes, int, Row | None], tuple[Row, int]]:
        return _quick_decoder(self._parsers)

    def _carefully(self, payload: bytes, position: int, old: Row | None) -> tuple[Row, int]:
        """The same; raises an error that says what is wrong."""
        values: list[Value] = []
        start = position
        try:
            for parse in self._parsers:
                kind = payload[position]
                if kind == TEXT:
                    start = position + 5
                    position = start + _LENGTH.unpack_from(payload, position)[0]
                    if parse is not None:
                        values.append(parse(payload[start:position]))
                else:
                    position += 1
                    if kind != NULL and kind != UNCHANGED:
                        raise Malformed(f"a value is of the unknown kind {kind}")
                    if parse is not None:
                        values.append(None if kind == NULL else _unchanged(kind, old, len(values)))
        except (ValueError, ArithmeticError) as error:
            if isinstance(error, MissingOldValue):
                raise
            if position > len(payload):
                raise _not_ended(payload, position) from error
            raise UnreadableValue(len(values), payload[start:position]) from error
        except (IndexError, struct.error) as error:
            raise _not_ended(payload, position) from error
        return tuple(values), position


def _quick_decoder(
    parsers: Sequence[Parser | None],
) -> Callable[[bytes, int, Row | None], tuple[Row, int]]:
    """As `TupleDecoder._carefully`, for rows in which nothing is wrong; of any other it says nothing but that.

    One function for these very columns, which has nothing to decide but what the row says: a loop over
    the parsers takes a third more. Its text is made of numbers alone.
    """
    lines, kept = ["def decode(payload, position, old):"], 0
    for number, parse in enumerate(parsers):
        value, other = f"parse{number}(payload[start:position])", f"other(kind, old, {kept})"
        if parse is None:
            value, other = "None", f"None if kind == {UNCHANGED} else {other}"
        elif parse is integer:  # straight into C, unless it is so long that it may be out of range
            value = f"int(payload[start:position]) if size <= {SURE_DIGITS} else {value}"
        lines += [
            "    kind = payload[position]",
            f"    if kind == {TEXT}:",
            "        (size,) = length(payload, position)",
            "        start = position + 5",
            "        position = start + size",
            f"        v{number} = {value}",
            "    else:",
            "        position += 1",
            f"        v{number} = None if kind == {NULL} else {other}",
        ]
        kept += parse is not None
    names = [f"v{number}," for number, parse in enumerate(parsers) if parse is not None]
    lines.append(f"    return ({' '.join(names)}), position")
    known: dict[str, Any] = {f"parse{number}": parse for number, parse in enumerate(parsers)}
    known |= {"length": _LENGTH.unpack_from, "other": _unchanged}
    exec("\n".join(lines), known)
    decode: Callable[[bytes, int, Row | None], tuple[Row, int]] = known["decode"]
    return decode


def _not_ended(payload: bytes, position: int) -> Malformed:
    return Malformed(
        f"a message {payload[:1]!r} has {len(payload)} bytes, its rows end at {position}"
    )


def _unchanged(kind: int, old: Row | None, column: int) -> Value:
    """A TOAST value that the update did not touch: as it was in the old row."""
    if kind != UNCHANGED:
        raise ValueError("a value is of an unknown kind")
    if old is None:
        raise MissingOldValue
    return old[column]
