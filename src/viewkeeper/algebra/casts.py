"""CAST: what may become what, and what a value becomes, as Spark's ANSI mode has it.

Nothing here is sent to a source: PostgreSQL, MariaDB and SQLite each read text and round doubles in
their own way. Two conversions are narrower than Spark's, so that they mean the same on every Java:

- **double to decimal** takes the shortest digits that name the double, as Spark does (1.005 becomes
  1.01), and rounds half away from zero. Which digits Java prints depends on its version, but only for
  doubles of 10^15 and more, whose last digits are not their own, and for powers of two in their 23rd
  digit after the point. So a double of 10^15 or more is an overflow, and a scale above 22 is refused.
- **text to date** gives days from year 1 to 9999: other years are no values of ours.

NaN and the infinities become NULL as decimals, as in Spark.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from functools import lru_cache
from typing import Any

from viewkeeper.algebra.types import (
    DECIMAL_PRECISION_MAX,
    EXACT,
    INTEGER_MAX,
    INTEGER_MIN,
    Kind,
    Type,
    decimal_type,
)
from viewkeeper.errors import UsageError

# Digits before the point that every double has exactly, and digits after it that every Java agrees on.
DOUBLE_WHOLE_DIGITS = 15
DOUBLE_SCALE_MAX = 22

_CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.INTEGER: frozenset({Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL, Kind.STRING}),
    Kind.DECIMAL: frozenset({Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL}),
    Kind.DOUBLE: frozenset({Kind.DOUBLE, Kind.DECIMAL}),
    # Not to a timestamp: that depends on the session's time zone.
    Kind.STRING: frozenset({Kind.STRING, Kind.INTEGER, Kind.DECIMAL, Kind.DATE}),
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN}),
    Kind.BINARY: frozenset({Kind.BINARY}),
    Kind.DATE: frozenset({Kind.DATE, Kind.LOCAL_TIMESTAMP, Kind.STRING}),
    Kind.TIMESTAMP: frozenset({Kind.TIMESTAMP}),
    Kind.LOCAL_TIMESTAMP: frozenset({Kind.LOCAL_TIMESTAMP, Kind.DATE}),
}

# What Spark ignores around a number or a date in a text: blanks and control characters. Java's reader
# of decimals knows one fewer.
_BLANKS = "".join(map(chr, range(0x21)))
_BLANKS_AND_DELETE = _BLANKS + "\x7f"
_INTEGER_TEXT = re.compile("[+-]?[0-9]+")
# Without the underscores that Python would read over; digits of any script, as Java does.
_DECIMAL_TEXT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?")
_EXPONENT_MAX, _EXPONENT_DIGITS_MAX = 2**31 - 1, 10
_INTEGER_DIGITS_MAX = 19
_DATE_TEXT = re.compile(
    r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL
)


def require_castable(source: Type, target: Type) -> None:
    """Raises UsageError unless values of the one type can be cast to the other."""
    if target.kind not in _CASTS[source.kind]:
        allowed = ", ".join(sorted(kind.value for kind in _CASTS[source.kind]))
        raise UsageError(
            "unsupported-cast",
            f"a {source} can't be cast to {target} here",
            detail=f"a {source} can be cast to: {allowed}",
        )
    if (source.kind, target.kind) == (Kind.DOUBLE, Kind.DECIMAL):
        _require_few_digits(target)


def _require_few_digits(target: Type) -> None:
    if target.scale > DOUBLE_SCALE_MAX:
        raise UsageError(
            "unsupported-cast",
            f"a double can't be cast to {target} here",
            detail=f"a double has no digits of its own that far after the point: at most "
            f"{DOUBLE_SCALE_MAX} are taken",
            hint=f"write a scale of {DOUBLE_SCALE_MAX} or less",
        )


def double_room(target: Type) -> Type:
    """The decimal type with room for all that a double may become on its way to ``target``."""
    precision = min(target.precision, DOUBLE_WHOLE_DIGITS + target.scale)
    return decimal_type(precision, target.scale)


def cast_value(value: Any, source: Type, target: Type) -> Any:
    """``value`` of type ``source`` as ``target``; raises UsageError where ANSI SQL fails."""
    if source == target:
        return value
    match target.kind:
        case Kind.INTEGER:
            return _to_integer(value)
        case Kind.DOUBLE:
            return float(value)
        case Kind.DECIMAL:
            return _to_decimal(value, target)
        case Kind.STRING:
            return value.isoformat() if isinstance(value, dt.date) else str(value)
        case Kind.LOCAL_TIMESTAMP:
            return dt.datetime.combine(value, dt.time())
        case Kind.DATE:
            return _to_date(value) if isinstance(value, str) else value.date()
        case _:
            return value


def _to_integer(value: Any) -> int:
    if isinstance(value, str):
        digits = value.strip(_BLANKS_AND_DELETE)
        # Python would also read 1_000 and digits of other scripts; SQL does not.
        if not _INTEGER_TEXT.fullmatch(digits):
            raise UsageError("bad-cast", f"{value!r} is not an integer")
        # Python refuses to convert thousands of digits, and no such number fits anyway.
        if len(digits.lstrip("+-0")) > _INTEGER_DIGITS_MAX:
            raise UsageError("integer-overflow", f"{value} does not fit 64 bits")
        value = _short(digits)
    return checked_integer(int(value))


def _to_decimal(value: Any, target: Type) -> decimal.Decimal | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return rounded(decimal.Decimal(repr(value)), double_room(target))
    if isinstance(value, str):
        digits = value.strip(_BLANKS)
        found = _DECIMAL_TEXT.fullmatch(digits)
        if found is None or not _is_exponent(found[1] or "0"):
            raise UsageError("bad-cast", f"{value!r} is not a number")
        return rounded(decimal.Decimal(digits), target)
    return rounded(decimal.Decimal(value), target)


def _is_exponent(digits: str) -> bool:
    # Counted first: Python refuses to convert thousands of digits.
    if len(digits.lstrip("+-0")) > _EXPONENT_DIGITS_MAX:
        return False
    return abs(int(_short(digits))) <= _EXPONENT_MAX


def _short(digits: str) -> str:
    """The number without zeros that it only begins with."""
    return ("-" if digits.startswith("-") else "") + (digits.lstrip("+-0") or "0")


def _to_date(text: str) -> dt.date:
    found = _DATE_TEXT.fullmatch(text.strip(_BLANKS_AND_DELETE))
    if found is not None:
        sign, year, month, day = found.groups()
        try:
            return dt.date(int(sign + year), int(month or 1), int(day or 1))
        except ValueError:
            pass  # no such day, or a year that dates here do not have
    raise UsageError(
        "bad-cast",
        f"{text!r} is not a date",
        hint="dates are written yyyy, yyyy-m or yyyy-m-d, from year 1 to 9999",
    )


def checked_integer(value: int) -> int:
    """The integer itself; raises UsageError when it does not fit 64 bits."""
    if INTEGER_MIN <= value <= INTEGER_MAX:
        return value
    raise UsageError("integer-overflow", f"{value} does not fit 64 bits")


def rounded(value: decimal.Decimal, type: Type) -> decimal.Decimal:
    """A decimal brought to its type's scale, half away from zero; raises UsageError on overflow."""
    # Looked at first: bringing 1E+999 to a scale would need more digits than there are.
    if value and value.adjusted() >= DECIMAL_PRECISION_MAX:
        raise _overflow(value, type)
    if value.adjusted() < -type.scale - 1:
        return _unit(type.scale) * 0  # less than a tenth of its last digit
    result = value.quantize(_unit(type.scale), context=EXACT)
    if result.adjusted() + type.scale >= type.precision and result:
        raise _overflow(value, type)
    return result if result else abs(result)


def _overflow(value: decimal.Decimal, type: Type) -> UsageError:
    return UsageError(
        "decimal-overflow",
        f"{value} does not fit {type}",
        hint="CAST to a decimal with more digits before the point",
    )


@lru_cache
def _unit(scale: int) -> decimal.Decimal:
    """1 with ``scale`` digits after the point: what values are brought to their scale by."""
    return decimal.Decimal(1).scaleb(-scale)
