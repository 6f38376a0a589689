"""SQLite's values as ours: declared types to kinds, and one decoder for the log and for queries.

SQLite keeps any value in any column. A column is read as its declared type says, and a value of
another storage class is a *poison row*, reported with its table, row and column, never coerced.
Columns are decoded whole: the set of a column's Python types is found at C speed, and in the usual
case nothing is left to do.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    canonical,
    decimal_type,
)
from viewkeeper.errors import UsageError

_NAMED = {
    "BOOLEAN": BOOLEAN, "BOOL": BOOLEAN, "DATE": DATE, "DATETIME": LOCAL_TIMESTAMP,
    "TIMESTAMP": LOCAL_TIMESTAMP, "TIMESTAMPTZ": TIMESTAMP, "TIMESTAMP WITH TIME ZONE": TIMESTAMP,
    "UUID": STRING,
}  # fmt: skip
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?")
_INSTANT = re.compile(_MOMENT.pattern + r"(?:Z|[+-]\d{2}:\d{2})")


class Misfit(Exception):
    """A value that is none of its column's type; ``index`` says which of the column's values."""

    def __init__(self, index: int, value: object) -> None:
        super().__init__(index, value)
        self.index, self.value = index, value


def column_type(declared: str) -> Type | str:
    """Our type for a declared one, or why a column of it can't be read exactly."""
    text = " ".join(declared.upper().split())
    if text in _NAMED:
        return _NAMED[text]
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2] or 0)
        if 0 < precision <= DECIMAL_PRECISION_MAX and scale <= precision:
            return decimal_type(precision, scale)
        return f"{declared} has more digits than {DECIMAL_PRECISION_MAX}, or a scale past them"
    return _by_affinity(declared, text)


def _by_affinity(declared: str, text: str) -> Type | str:
    """SQLite's own rules, in their order."""
    if "INT" in text:
        return INTEGER
    if any(word in text for word in ("CHAR", "CLOB", "TEXT")):
        return STRING
    if "BLOB" in text:
        return BINARY
    if any(word in text for word in ("REAL", "FLOA", "DOUB")):
        return DOUBLE
    if text in ("JSON", "JSONB"):
        return f"SQLite turns {declared} that looks like a number into one: declare TEXT"
    if not text or text == "ANY":
        return "the column has no declared type, so its values may be of any"
    if text in ("NUMERIC", "DECIMAL", "DEC", "NUMBER"):
        return f"{declared} does not say how many digits: declare {declared}(p,s), INTEGER or REAL"
    return f"{declared} is not a type that is read exactly: SQLite would treat it as NUMERIC"


def decode_column(values: Sequence[Any], type: Type) -> Sequence[Any]:
    """The column in canonical form; raises Misfit for the first value that is of another kind."""
    codec = _CODECS[type.kind]
    found = set(map(_type_of, values))
    found.discard(_NONE)
    if found <= codec.classes:
        if codec.decode is None:
            return values
        try:
            return [None if v is None else codec.decode(v, type) for v in values]
        except (ValueError, InvalidOperation, UsageError, OverflowError):
            pass
    raise _misfit(values, type, codec)


def _misfit(values: Sequence[Any], type: Type, codec: _Codec) -> Misfit:
    for index, value in enumerate(values):
        if value is None:
            continue
        try:
            if value.__class__ not in codec.classes:
                return Misfit(index, value)
            if codec.decode is not None:
                codec.decode(value, type)
        except (ValueError, InvalidOperation, UsageError, OverflowError):
            return Misfit(index, value)
    return Misfit(0, values[0])


def encode_key(value: Any) -> Any:
    """A key as a parameter that equals the stored value; only for kinds in `EXACT_KEYS`."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if isinstance(value, dt.date) else value


# One value has one stored form, so that the database itself can look for it.
EXACT_KEYS = frozenset(
    {Kind.INTEGER, Kind.DOUBLE, Kind.STRING, Kind.BINARY, Kind.BOOLEAN, Kind.DATE, Kind.DECIMAL}
)

_PLAIN = 10**15
_type_of: Callable[[Any], type] = type
_NONE = type(None)


def _double(value: float, _: Type) -> float:
    return value + 0.0  # −0.0 is 0.0; SQLite stores NaN as NULL


def _boolean(value: int, _: Type) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _date(value: str, _: Type) -> dt.date:
    if not _DATE.fullmatch(value):
        raise ValueError(value)
    return dt.date.fromisoformat(value)


def _moment(value: str, _: Type) -> dt.datetime:
    if not _MOMENT.fullmatch(value):
        raise ValueError(value)
    return dt.datetime.fromisoformat(value)


def _instant(value: str, _: Type) -> dt.datetime:
    if not _INSTANT.fullmatch(value):
        raise ValueError(value)
    return dt.datetime.fromisoformat(value).astimezone(dt.UTC)


def _decimal(value: int | float, type: Type) -> Any:
    """The shortest text of a float is what was written, up to 15 digits."""
    if -_PLAIN < value < _PLAIN:
        # The short way: below this the text with the column's scale says the same.
        text = f"{value:.{type.scale}f}"
        if float(text) == value:
            found = Decimal(text)
            if found.adjusted() < type.precision - type.scale:
                return found if found else abs(found)
            raise ValueError(value)
    if value.__class__ is float and not math.isfinite(value):
        raise ValueError(value)
    return canonical(Decimal(repr(value)), type)


@dataclass(frozen=True)
class _Codec:
    """Which Python classes a stored value may have, and what is left to do with it."""

    classes: frozenset[type]
    decode: Callable[[Any, Type], Any] | None = None


_CODECS = {
    Kind.INTEGER: _Codec(frozenset({int})),
    Kind.DOUBLE: _Codec(frozenset({float}), _double),
    Kind.DECIMAL: _Codec(frozenset({int, float}), _decimal),
    Kind.STRING: _Codec(frozenset({str})),
    Kind.BOOLEAN: _Codec(frozenset({int}), _boolean),
    Kind.BINARY: _Codec(frozenset({bytes})),
    Kind.DATE: _Codec(frozenset({str}), _date),
    Kind.TIMESTAMP: _Codec(frozenset({str}), _instant),
    Kind.LOCAL_TIMESTAMP: _Codec(frozenset({str}), _moment),
}
