"""A date plus or minus an INTERVAL, where both are constants: worked out when the view is read."""

from __future__ import annotations

import calendar
import datetime as dt

from sqlglot import exp

from viewkeeper.algebra.expressions import Expression, Literal
from viewkeeper.algebra.types import DATE
from viewkeeper.errors import UsageError

# How many days or months one of each is.
_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def shifted(date: Expression, interval: exp.Interval, sign: int) -> Literal | None:
    """The date that much later (or, by the sign, earlier); None where that is no constant date."""
    unit = str(interval.args.get("unit") or "").upper().removesuffix("S")
    number = str(interval.this.this) if isinstance(interval.this, exp.Literal) else ""
    if not isinstance(date, Literal) or not isinstance(date.value, dt.date) or date.type != DATE:
        return None
    if not number.removeprefix("-").isdigit() or unit not in (*_DAYS, *_MONTHS):
        return None
    count = sign * int(number)
    try:
        if unit in _DAYS:
            return Literal(date.value + dt.timedelta(days=count * _DAYS[unit]), DATE)
        return Literal(_months_later(date.value, count * _MONTHS[unit]), DATE)
    except (ValueError, OverflowError):
        raise UsageError("wrong-value", "this date is out of range") from None


def _months_later(date: dt.date, months: int) -> dt.date:
    """The same day of another month, or its last day where it is shorter."""
    years, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    last = calendar.monthrange(years, month + 1)[1]
    return date.replace(year=years, month=month + 1, day=min(date.day, last))
