"""PostgreSQL's types as ours: one codec for values from the feed and values from a query.

The feed gives every value in the text form of its output function. A query gives Arrow in binary;
`Codec.select` is the expression that makes the two agree, `Codec.parse` reads the text form. A type
without a codec is refused with a reason: better no column than one that differs between the paths.

Both connections pin TimeZone, DateStyle, IntervalStyle, bytea_output and extra_float_digits
(`connection.SETTINGS`), or the text forms would depend on who asks.
"""

from __future__ import annotations

import binascii
import datetime as dt
import functools
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation, Rounded
from typing import Any

from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    NAN,
    STRING,
    TIMESTAMP,
    Type,
    Value,
    decimal_type,
)

Parse = Callable[[bytes], Value]


@dataclass(frozen=True)
class Codec:
    """How one column type is read on both paths, and how keys of it are handed back.

    ``select`` and ``match`` are SQL with ``{}`` for the column: what a query reads, and what a key is
    compared with. ``key_array`` is the SQL type that the array of keys (bigint or text) is cast to.
    """

    type: Type
    parse: Parse
    select: str = "{}"
    match: str = "{}"
    key_array: str = "text[]"


@dataclass(frozen=True)
class ColumnType:
    """A column's type as the catalog tells it, domains resolved to their base."""

    name: str  # "pg_catalog.int4"
    category: str  # pg_type.typtype: b(ase), e(num), c(omposite), r(ange), m(ultirange), p(seudo)
    modifier: int
    element: str = ""  # the element type's name when it is an array
    element_category: str = ""


def codec_for(column: ColumnType) -> Codec | str:
    """The codec, or the reason why there is none."""
    name = column.name.removeprefix("pg_catalog.")
    if column.category == "e":
        return _AS_TEXT
    if column.element:
        return _array_codec(column)
    if column.category != "b" or "." in name:
        return f"values of type {column.name} have no form that views can compute with"
    if name == "numeric":
        return _numeric_codec(column.modifier)
    if name in _CODECS:
        return _CODECS[name]
    return _REFUSALS.get(name, f"values of type {name} have no form that views can compute with")


def _array_codec(column: ColumnType) -> Codec | str:
    """An array is its text form, as long as every element's text form is the same on both paths."""
    element = ColumnType(column.element, column.element_category, -1)
    fits = element.name == "pg_catalog.numeric" or isinstance(codec_for(element), Codec)
    return _AS_TEXT if fits else f"an array of {column.element}, which can't be read exactly"


def _numeric_codec(modifier: int) -> Codec | str:
    if modifier < 0:
        return "numeric without a precision has no bound; declare numeric(p, s) with p up to 38"
    precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if scale & 0x400:
        scale -= 0x800
    if not 0 <= scale <= precision <= DECIMAL_PRECISION_MAX:
        return (
            f"numeric({precision},{scale}) does not fit a decimal of {DECIMAL_PRECISION_MAX} digits"
        )
    parse = _decimal(precision, scale)
    return Codec(decimal_type(precision, scale), parse, "{}::text", key_array="numeric[]")


# Each parser takes the form that the output function has, as far as that costs nothing: this is where a feed
# spends its time. All that it raises for another form is a ValueError or an ArithmeticError.


# Whatever is no longer than this has eight bytes at most.
SURE_DIGITS = 18


def integer(text: bytes) -> Value:
    value = int(text)
    if -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        return value
    raise ValueError("it has more than eight bytes")


@functools.cache  # codecs of one type are equal
def _decimal(precision: int, scale: int) -> Parse:
    """With as many digits behind the point as the type has; NaN and infinities have none."""
    unit = Decimal(1).scaleb(-scale)
    # Raises for more digits than the type has.
    exact = Context(prec=precision, traps=[Rounded, Inexact, InvalidOperation]).create_decimal

    def parse(text: bytes) -> Value:
        value = exact(text.decode())
        if value.same_quantum(unit):
            return value or abs(value)
        raise ValueError("it is no decimal of the column's type")

    return parse


def _double(text: bytes) -> Value:
    value = float(text)
    # Nearly all: a finite number, without the underscores and blanks that Python would read over.
    if value - value == 0.0 and _UNDERSCORE not in text and text.strip() is text:
        return value + 0.0
    value = _float(text)
    return NAN if value != value else value + 0.0


_UNDERSCORE = ord("_")


def _float(text: bytes) -> float:
    if text.translate(None, b"+-.0123456789e") and text not in _NO_NUMBERS:
        raise ValueError("it has more than a number")
    return float(text)


_NO_NUMBERS = frozenset({b"NaN", b"Infinity", b"-Infinity"})


_SINGLE = struct.Struct("f")


def _single(text: bytes) -> Value:
    """The exact value of the four-byte float, as ``::float8`` widens it."""
    exact = _float(text)
    (value,) = _SINGLE.unpack(_SINGLE.pack(exact))
    if math.isinf(value) != math.isinf(exact):
        raise ValueError("it has more than four bytes")
    return NAN if value != value else value + 0.0


def _padded(text: bytes) -> Value:
    return text.decode().rstrip(" ")


def _binary(text: bytes) -> Value:
    if text[:2] == b"\\x":
        return binascii.unhexlify(text[2:])
    raise ValueError("it has no \\x in front")


# Python's parsers refuse what Python's dates can't hold: infinity, BC, years after 9999.
def _date(text: bytes) -> Value:
    if len(text) == 10 and text[7] == _DASH:
        return _day(text.decode())
    raise ValueError("it is no date")  # but a week or days of a year


# Python takes any letter between day and time: that is the only one that need not be ASCII.
def _timestamp(text: bytes) -> Value:
    value = _moment(text.decode())
    if value.tzinfo is None and len(text) >= _MOMENT_BYTES_MIN and text[10] == _BLANK:
        return value
    raise ValueError("it has a time zone, or is no day and time")


def _instant(text: bytes) -> Value:
    value = _moment(text.decode())
    if value.tzinfo is dt.UTC and len(text) >= _MOMENT_BYTES_MIN and text[10] == _BLANK:
        return value
    raise ValueError("it is not at UTC, to which the connection is pinned, or is no day and time")


_day, _moment = dt.date.fromisoformat, dt.datetime.fromisoformat
_DASH, _BLANK = b"- "
_MOMENT_BYTES_MIN = len("2024-01-01 00:00:00")


def _boolean(text: bytes) -> Value:
    if text == b"t":
        return True
    if text == b"f":
        return False
    raise ValueError("it is neither t nor f")


# Straight into C for the commonest type: a call of ours would cost more than the parsing.
text: Parse = bytes.decode

_AS_TEXT = Codec(STRING, text, "{}::text", "{}::text")
# ::text of an address adds /32 where the output function does not.
_ADDRESS = Codec(STRING, text, "inet_out({})::text", "inet_out({})::text")

_CODECS: dict[str, Codec] = {
    "int2": Codec(INTEGER, integer, "{}::int8", key_array="int8[]"),
    "int4": Codec(INTEGER, integer, "{}::int8", key_array="int8[]"),
    "int8": Codec(INTEGER, integer, key_array="int8[]"),
    "oid": Codec(INTEGER, integer, "{}::int8", "{}::int8", "int8[]"),
    "float8": Codec(DOUBLE, _double, key_array="float8[]"),
    "float4": Codec(DOUBLE, _single, "{}::float8", key_array="float8[]"),
    "bool": Codec(BOOLEAN, _boolean, key_array="bool[]"),
    "text": Codec(STRING, text),
    "varchar": Codec(STRING, text),
    "name": Codec(STRING, text, "{}::text", key_array="name[]"),
    # char(n) compares without its padding, and ::text takes the padding off.
    "bpchar": Codec(STRING, _padded, "{}::text", key_array="bpchar[]"),
    "bytea": Codec(BINARY, _binary, key_array="bytea[]"),
    "date": Codec(DATE, _date, key_array="date[]"),
    "timestamp": Codec(LOCAL_TIMESTAMP, _timestamp, key_array="timestamp[]"),
    "timestamptz": Codec(TIMESTAMP, _instant, key_array="timestamptz[]"),
    "uuid": Codec(STRING, text, "{}::text", key_array="uuid[]"),
    "inet": _ADDRESS,
    "cidr": Codec(STRING, text, "cidr_out({})::text", "cidr_out({})::text"),
    **dict.fromkeys(
        [
            "json", "jsonb", "time", "timetz", "interval", "bit", "varbit", "macaddr",
            "macaddr8",
        ],
        _AS_TEXT,
    ),
}  # fmt: skip

_REFUSALS = {
    "money": "the text of money depends on the server's locale; use numeric(p, s)",
    "xml": "the text of xml depends on what the server was built with; use text",
    "char": 'the one-byte "char" is internal to PostgreSQL; use char(1) or text',
}


def codec_of_result(type_name: str, target: Type) -> Codec:
    """The codec for a computed column of a query, whose result must be of our type ``target``."""
    codec = _CODECS.get(type_name)
    if target.kind is decimal_type(1, 0).kind:
        parse = _decimal(target.precision, target.scale)
        return Codec(target, parse, f"{{}}::numeric({target.precision},{target.scale})::text")
    if codec is not None and codec.type == target:
        return codec
    return Codec(target, text, "{}::" + _CAST_TO[target])


_CAST_TO: dict[Any, str] = {
    INTEGER: "int8",
    DOUBLE: "float8",
    STRING: "text",
    BOOLEAN: "bool",
    BINARY: "bytea",
    DATE: "date",
    TIMESTAMP: "timestamptz",
    LOCAL_TIMESTAMP: "timestamp",
}
