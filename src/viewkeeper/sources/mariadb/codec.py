"""One form for every value, whether it comes from the log or from a query.

The log holds the storage format, a prepared statement answers in the protocol's binary format; both
are read here, side by side, into canonical values. Text is never converted by the server: both ways
give the column's own bytes, and one table decodes them.

A date that is none (0000-00-00, a zero month, year 0) is NULL on both ways.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import itertools
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from viewkeeper.algebra.types import EXACT, Kind, Type
from viewkeeper.errors import invariant
from viewkeeper.sources.mariadb.binlog import Reader, length_coded
from viewkeeper.sources.mariadb.columns import CHARSETS, Column
from viewkeeper.sources.wire import Malformed

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

# The server's latin1 is cp1252 whose five free places hold the control characters of the same number.
_LATIN1 = "".join(bytes([b]).decode("cp1252", errors="ignore") or chr(b) for b in range(256))


def text_decoder(charset: str) -> Callable[[bytes], str]:
    """Bytes of a column in this character set as text; broken bytes become U+FFFD on both ways."""
    codec = CHARSETS.get(charset, "utf-8")
    if codec == "latin1":
        return lambda data: data.decode("latin1").translate(_LATIN1_TABLE)
    return lambda data: data.decode(codec, errors="replace")


_LATIN1_TABLE = {b: _LATIN1[b] for b in range(256) if chr(b) != _LATIN1[b]}


# -- the log's storage format ---------------------------------------------------------------------


def log_reader(column: Column) -> Reader:
    """Reads the column's value at a place in a row image."""
    match column.kind:
        case "integer":
            return _log_integer(column)
        case "char" | "varchar" | "binary" | "varbinary":
            prefix = 1 if column.size < 256 else 2
            return _prefixed(prefix, _converter(column))
        case "text" | "blob":
            return _prefixed(column.size, _converter(column))
        case "uuid" | "inet4" | "inet6":
            return _prefixed(1, _converter(column))
        case "enum" | "set":
            return _fixed(column.size, _labelled(column))
        case "bit":
            return _fixed((column.size + 7) // 8, _bits(column.size))
        case "decimal":
            return _log_decimal(column.precision, column.scale)
        case "datetime":
            return _fixed(5 + (column.scale + 1) // 2, _datetime_from(column.scale))
        case "timestamp":
            return _fixed(4 + (column.scale + 1) // 2, _timestamp_from(column.scale))
        case "time":
            return _fixed(3 + (column.scale + 1) // 2, _time_from(column.scale))
    reader = _PLAIN_LOG_READERS.get(column.kind)
    invariant(reader, f"there is no reader for a column of kind {column.kind}")
    return reader  # type: ignore[return-value]


def log_skipper(type_length: int, prefixed: bool) -> Reader:
    """Steps over a value that is not read."""
    return (
        _prefixed(type_length, lambda data: None)
        if prefixed
        else _fixed(type_length, lambda data: None)
    )


def _fixed(size: int, convert: Callable[[bytes], Any]) -> Reader:
    return lambda data, at: (convert(data[at : at + size]), at + size)


def _prefixed(prefix: int, convert: Callable[[bytes], Any]) -> Reader:
    if prefix == 1:

        def read_short(data: bytes, at: int) -> tuple[Any, int]:
            end = at + 1 + data[at]
            return convert(data[at + 1 : end]), end

        return read_short

    def read(data: bytes, at: int) -> tuple[Any, int]:
        start = at + prefix
        end = start + int.from_bytes(data[at:start], "little")
        return convert(data[start:end]), end

    return read


def _log_integer(column: Column) -> Reader:
    size, signed = column.size, not column.unsigned
    if size == 3:
        return _fixed(3, lambda data: int.from_bytes(data, "little", signed=signed))
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[size]
    unpack = struct.Struct("<" + (letter if signed else letter.upper())).unpack_from
    if size == 8 and not signed:
        return lambda data, at: (Decimal(unpack(data, at)[0]), at + 8)
    return lambda data, at: (unpack(data, at)[0], at + size)


def _unpacking(format_: str) -> Reader:
    codec = struct.Struct(format_)
    unpack, size = codec.unpack_from, codec.size
    # −0.0 + 0.0 is 0.0, as everywhere in the algebra.
    return lambda data, at: (unpack(data, at)[0] + 0.0, at + size)


def _read_date(data: bytes, at: int) -> tuple[Any, int]:
    packed = data[at] | data[at + 1] << 8 | data[at + 2] << 16
    return _date(packed >> 9, packed >> 5 & 15, packed & 31), at + 3


def _read_year(data: bytes, at: int) -> tuple[Any, int]:
    return (1900 + data[at] if data[at] else 0), at + 1


_PLAIN_LOG_READERS: dict[str, Reader] = {
    "float": _unpacking("<f"),
    "double": _unpacking("<d"),
    "date": _read_date,
    "year": _read_year,
}


def _converter(column: Column) -> Callable[[bytes], Any]:
    match column.kind:
        case "binary":
            # The log drops trailing zero bytes that the column has.
            return lambda data: data.ljust(column.size, b"\0")
        case "varbinary" | "blob":
            return bytes
        case "uuid":
            return lambda data: str(uuid.UUID(bytes=data.ljust(16, b"\0")))
        case "inet6":
            return lambda data: inet6_text(data.ljust(16, b"\0"))
        case "inet4":
            return lambda data: str(ipaddress.IPv4Address(data.ljust(4, b"\0")))
    return text_decoder(column.charset)


def inet6_text(data: bytes) -> str:
    """As the server prints it: unlike RFC 5952 it shortens even a single group of zeros to ``::``."""
    words = struct.unpack(">8H", data)
    runs = [
        (sum(1 for _ in itertools.takewhile(lambda w: not w, words[at:])), -at) for at in range(8)
    ]
    size, start = max(runs)[0], -max(runs)[1]
    if not size:
        return ":".join(f"{word:x}" for word in words)
    tail = [f"{word:x}" for word in words[start + size :]]
    if start == 0 and (size == 6 or (size == 5 and words[5] == 0xFFFF)):
        tail[-2:] = [str(ipaddress.IPv4Address(data[12:]))]
    return ":".join(f"{word:x}" for word in words[:start]) + "::" + ":".join(tail)


def _labelled(column: Column) -> Callable[[bytes], str]:
    labels = column.labels

    def chosen(data: bytes) -> str:
        number = int.from_bytes(data, "little")
        if number > len(labels):
            raise Malformed(f"an ENUM of {len(labels)} labels has the value {number}")
        return labels[number - 1] if number else ""

    def members(data: bytes) -> str:
        number = int.from_bytes(data, "little")
        if number >> len(labels):
            raise Malformed(f"a SET of {len(labels)} labels has the value {number}")
        return ",".join(label for bit, label in enumerate(labels) if number >> bit & 1)

    return chosen if column.kind == "enum" else members


def _bits(size: int) -> Callable[[bytes], int | Decimal]:
    """All but the widest are integers here, also where they take eight bytes."""

    def convert(data: bytes) -> int | Decimal:
        number = int.from_bytes(data, "big")
        if number >> size:
            raise Malformed(f"a BIT({size}) has more bits")
        return Decimal(number) if size > 63 else number

    return convert


_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def _digit_groups(precision: int, scale: int) -> list[int]:
    """How many digits each group of a decimal has."""
    whole = precision - scale
    digits = [whole % 9] + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9]
    return [n for n in digits if n]


def decimal_bytes(precision: int, scale: int) -> int:
    return sum(_DIGIT_BYTES[n] for n in _digit_groups(precision, scale))


def _log_decimal(precision: int, scale: int) -> Reader:
    """Groups of nine digits in four bytes each, the odd ones outermost; a flipped sign bit first."""
    groups = [(_DIGIT_BYTES[n], 10**n) for n in _digit_groups(precision, scale)]
    size = decimal_bytes(precision, scale)
    top, every = 1 << 8 * size - 1, (1 << 8 * size) - 1
    exponent = -scale

    def read(data: bytes, at: int) -> tuple[Any, int]:
        packed = int.from_bytes(data[at : at + size], "big")
        negative = not packed & top
        packed ^= top
        if negative:
            packed ^= every
        number, left = 0, 8 * size
        for count, weight in groups:
            left -= 8 * count
            part = packed >> left & (1 << 8 * count) - 1
            if part >= weight:
                raise Malformed(
                    f"a group of a decimal's digits is {part}, it must be below {weight}"
                )
            number = number * weight + part
        return Decimal(-number if negative else number).scaleb(exponent, EXACT), at + size

    return read


def _microseconds(fraction: int, scale: int) -> int:
    """From the number behind the seconds, which has an even count of digits.

    A column of an odd scale has a zero as its last digit. Another one is refused: the server shows such a value
    without the digit, and its clients would see another row than we.
    """
    micros = fraction * (1, 10_000, 10_000, 100, 100, 1, 1)[scale]
    if micros > 999_999:
        raise Malformed(f"a second has {micros} microseconds")
    if micros % 10 ** (6 - scale):
        raise Malformed(f"{micros} microseconds have more than {scale} digits")
    return micros


def _datetime_from(scale: int) -> Callable[[bytes], Any]:
    def convert(data: bytes) -> Any:
        packed = int.from_bytes(data[:5], "big") - 0x80_0000_0000
        clock = packed & 0x1FFFF
        months, day = packed >> 22, packed >> 17 & 31
        moment = (
            clock >> 12,
            clock >> 6 & 63,
            clock & 63,
            _microseconds(int.from_bytes(data[5:], "big"), scale),
        )
        return _datetime(months // 13, months % 13, day, *moment)

    return convert


def _timestamp_from(scale: int) -> Callable[[bytes], Any]:
    def convert(data: bytes) -> Any:
        seconds = int.from_bytes(data[:4], "big")
        micros = _microseconds(int.from_bytes(data[4:], "big"), scale)
        if not seconds and not micros:
            return None  # how 0000-00-00 00:00:00 is stored
        return _EPOCH + dt.timedelta(seconds=seconds, microseconds=micros)

    return convert


def _time_from(scale: int) -> Callable[[bytes], Any]:
    def convert(data: bytes) -> Any:
        fraction_bits = 8 * (len(data) - 3)
        packed = int.from_bytes(data, "big") - (0x80_0000 << fraction_bits)
        negative, packed = packed < 0, abs(packed)
        clock, rest = packed >> fraction_bits, packed & (1 << fraction_bits) - 1
        micros = _microseconds(rest, scale)
        hours, minutes, seconds = clock >> 12, clock >> 6 & 63, clock & 63
        if hours > 838 or minutes > 59 or seconds > 59:
            raise Malformed(f"a TIME is {hours}:{minutes}:{seconds}")
        return _time_text(negative, hours, minutes, seconds, micros, scale)

    return convert


def _date(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def _datetime(year: int, month: int, day: int, *clock: int) -> dt.datetime | None:
    try:
        return dt.datetime(year, month, day, *clock)  # type: ignore[arg-type]
    except ValueError:
        return None


def _time_text(
    negative: bool, hours: int, minutes: int, seconds: int, micros: int, scale: int
) -> str:
    text = f"{'-' if negative else ''}{hours:02}:{minutes:02}:{seconds:02}"
    return f"{text}.{micros:06}"[: len(text) + 1 + scale] if scale else text


# -- the protocol's binary format -----------------------------------------------------------------

_INTEGER_FORMATS = {1: "b", 2: "h", 13: "h", 3: "i", 9: "i", 8: "q"}
_STRINGS = frozenset({15, 249, 250, 251, 252, 253, 254, 247, 248, 255})


def result_reader(
    wire_type: int, unsigned: bool, charset: str, decimals: int, target: Type
) -> Reader:
    """Reads a value of a result column, described by the server, as a ``target``."""
    if wire_type in _INTEGER_FORMATS:
        letter = _INTEGER_FORMATS[wire_type]
        codec = struct.Struct("<" + (letter.upper() if unsigned else letter))
        unpack, size, number = codec.unpack_from, codec.size, _number_as(target)
        if target.kind is Kind.INTEGER:
            return lambda data, at: (unpack(data, at)[0], at + size)
        return lambda data, at: (number(unpack(data, at)[0]), at + size)
    if wire_type in (4, 5):
        return _unpacking("<f" if wire_type == 4 else "<d")
    if wire_type in (0, 246):
        number = _number_as(target)
        return _length_coded(lambda data: number(Decimal(data.decode())))
    if wire_type == 16:
        number = _number_as(target)
        return _length_coded(lambda data: number(int.from_bytes(data, "big")))
    if wire_type in (7, 10, 12):
        return _packed_moment(target.kind)
    if wire_type == 11:
        return _packed_time(decimals)
    if wire_type in _STRINGS:
        return _length_coded(bytes if target.kind is Kind.BINARY else text_decoder(charset))
    if wire_type == 6:
        return lambda data, at: (None, at)
    raise Malformed(f"a result has a column of unknown type {wire_type}")


def _length_coded(convert: Callable[[bytes], Any]) -> Reader:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        size = data[at]
        if size < 251:
            start = at + 1
        else:
            size, start = length_coded(data, at)
        return convert(data[start : start + size]), start + size

    return read


def _number_as(target: Type) -> Callable[[Any], Any]:
    match target.kind:
        case Kind.INTEGER:
            return int
        case Kind.BOOLEAN:
            return bool
        case Kind.DOUBLE:
            return float
        case Kind.DECIMAL:
            unit = Decimal(1).scaleb(-target.scale)
            return lambda number: Decimal(number).quantize(unit, context=EXACT)
    return lambda number: number


def _packed_moment(kind: Kind) -> Reader:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        size = data[at]
        part = data[at + 1 : at + 1 + size].ljust(11, b"\0")
        year, month, day, hour, minute, second, micros = struct.unpack("<HBBBBBI", part)
        end = at + 1 + size
        if kind is Kind.DATE:
            return _date(year, month, day), end
        moment = _datetime(year, month, day, hour, minute, second, micros)
        if moment is not None and kind is Kind.TIMESTAMP:
            moment = moment.replace(tzinfo=dt.UTC)
        return moment, end

    return read


def _packed_time(scale: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        size = data[at]
        part = data[at + 1 : at + 1 + size].ljust(12, b"\0")
        negative, days, hours, minutes, seconds, micros = struct.unpack("<BIBBBI", part)
        digits = min(scale, 6)
        text = _time_text(bool(negative), days * 24 + hours, minutes, seconds, micros, digits)
        return text, at + 1 + size

    return read
