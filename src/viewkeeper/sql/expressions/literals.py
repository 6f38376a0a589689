"""Literals of Spark SQL as typed constants: numbers, strings with their escapes, dates and times.

Works on the characters as written, because a parser's own unescaping is not Spark's.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re

from viewkeeper.algebra.casts import rounded
from viewkeeper.algebra.expressions import Literal
from viewkeeper.algebra.types import (
    BINARY,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    INTEGER_MAX,
    INTEGER_MIN,
    STRING,
    Kind,
    Type,
    canonical,
    decimal_type,
)
from viewkeeper.errors import UsageError
from viewkeeper.views.spark_sql import natural_decimal

_INTEGER_SUFFIXES = ("L", "S", "Y")


def number(digits: str, suffix: str = "", *, negative: bool = False) -> Literal:
    """A numeric literal by Spark's rules: 5 and 5L integers, 1.50 a decimal, 1e3 and 1D doubles."""
    text = f"-{digits}" if negative else digits
    match suffix.upper():
        case "F":
            raise UsageError(
                "unsupported-type", "there are no 32-bit floats", hint=f"write {text}D, a double"
            )
        case "D":
            return Literal(_finite(text), DOUBLE)
        case "BD":
            return _decimal(text)
        case "" if "e" in text.lower():
            return Literal(_finite(text), DOUBLE)
        case "" if "." in text:
            return _decimal(text)
    value = int(text)
    if INTEGER_MIN <= value <= INTEGER_MAX:
        return Literal(value, INTEGER)
    if suffix.upper() in _INTEGER_SUFFIXES:
        raise UsageError("wrong-value", f"{text}{suffix} does not fit 64 bits")
    return _decimal(text + ".")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise UsageError("wrong-value", f"{text} does not fit a double")
    return value


def _decimal(text: str) -> Literal:
    value = decimal.Decimal(text)
    exponent = value.as_tuple().exponent
    scale = max(-exponent, 0) if isinstance(exponent, int) else 0
    digits = format(value, "f") if scale else f"{value:f}."
    type = None
    if len(re.sub(r"\D", "", digits)) <= DECIMAL_PRECISION_MAX + 1:
        type = natural_decimal(digits)
    if type is None:
        raise UsageError(
            "wrong-value", f"{text} has more than {DECIMAL_PRECISION_MAX} digits, too many"
        )
    return Literal(canonical(value, type), type)


_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.)|$)|(''|\"\")", re.DOTALL
)
_NAMED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def string(raw: str) -> str:
    """The value of a string literal from its characters as written, quotes included."""
    if raw[0] in "rR":
        return raw[2:-1]
    quote = raw[0]

    def replaced(match: re.Match[str]) -> str:
        short, long, octal, single, doubled = match.groups()
        if short or long:
            return chr(int(short or long, 16))
        if octal:
            return chr(int(octal, 8))
        if doubled:
            return quote if doubled[0] == quote else doubled
        if single in ("%", "_"):
            return f"\\{single}"  # kept as it is, for LIKE
        return _NAMED.get(single, single or "")

    return _ESCAPE.sub(replaced, raw[1:-1])


def binary(raw: str) -> Literal:
    """``X'1F'``; an odd number of digits has a zero before it."""
    digits = raw[2:-1]
    try:
        return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"), BINARY)
    except ValueError:
        raise UsageError("wrong-value", f"{raw} has characters that are no hex digits") from None


def from_text(text: str, type: Type) -> Literal | None:
    """The constant that ``text`` spells in ``type``; None where a CAST must decide at run time."""
    stripped = text.strip()
    match type.kind:
        case Kind.DATE:
            return Literal(_date(stripped), type)
        case Kind.TIMESTAMP | Kind.LOCAL_TIMESTAMP:
            return Literal(_timestamp(stripped, with_zone=type.kind is Kind.TIMESTAMP), type)
        case Kind.DOUBLE:
            return Literal(canonical(_double(stripped), type), type)
        case Kind.DECIMAL:
            return Literal(_decimal_of(stripped, type), type)
        case Kind.STRING:
            return Literal(text, STRING)
        case _:
            return None


def _date(text: str) -> dt.date:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            pass
    raise UsageError(
        "wrong-value", f"'{text}' is not a date", hint="write it like DATE '2024-01-31'"
    )


_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s*(Z|UTC|[+-]\d\d:\d\d)?)?"
)


def _timestamp(text: str, *, with_zone: bool) -> dt.datetime:
    """An instant (UTC where no zone is written) or, without zones, a local time."""
    word = "TIMESTAMP" if with_zone else "TIMESTAMP_NTZ"
    match = _TIMESTAMP.fullmatch(text)
    if match is not None and (with_zone or match[3] is None):
        zone = "+00:00" if match[3] in (None, "Z", "UTC") else match[3]
        try:
            value = dt.datetime.fromisoformat(f"{match[1]} {match[2] or '00:00'}{zone}")
            return value.astimezone(dt.UTC) if with_zone else value.replace(tzinfo=None)
        except (ValueError, OverflowError):
            pass
    zoned = "+00:00" if with_zone else ""
    raise UsageError(
        "wrong-value",
        f"'{text}' is not a {word.lower()}",
        hint=f"write it like {word} '2024-01-31 12:30:00{zoned}'",
    )


def _double(text: str) -> float:
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?Infinity|NaN", text):
        return float(text)
    raise UsageError("wrong-value", f"'{text}' is not a double")


def _decimal_of(text: str, type: Type) -> decimal.Decimal:
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?", text):
        return rounded(decimal.Decimal(text), type)
    raise UsageError("wrong-value", f"'{text}' is not a {type}")


_TYPES: dict[str, Type] = {
    **dict.fromkeys(("BIGINT", "INT", "SMALLINT", "TINYINT"), INTEGER),
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "BOOLEAN": Type(Kind.BOOLEAN),
    "BINARY": BINARY,
    "DATE": Type(Kind.DATE),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMP"), Type(Kind.TIMESTAMP)),
    "TIMESTAMPNTZ": Type(Kind.LOCAL_TIMESTAMP),
}

_INSTEAD = {"FLOAT": "DOUBLE", "VARCHAR": "STRING", "CHAR": "STRING"}


def type_named(name: str, parameters: list[str]) -> Type:
    """The type that a CAST names, by sqlglot's word for it; raises UsageError where there is none."""
    if name == "DECIMAL":
        precision, scale = [*parameters, *("10", "0")[len(parameters) :]][:2]
        return decimal_type(int(precision), int(scale))
    if name in _TYPES and not parameters:
        return _TYPES[name]
    raise UsageError(
        "unsupported-type",
        f"a view has no type {name.lower()}",
        detail="the types are bigint, double, decimal(p,s), string, boolean, binary, date, "
        "timestamp and timestamp_ntz",
        hint=f"use {_INSTEAD[name]}" if name in _INSTEAD else "",
    )
