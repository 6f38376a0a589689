"""Values of rows as JSON carries them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any


def json_value(value: Any) -> Any:
    """A value that JSON can carry without losing anything: what is no JSON number is text."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
        case decimal.Decimal() | dt.timedelta():
            return str(value)
        case bytes():
            return value.hex()
        case dt.date() | dt.datetime():
            return value.isoformat()
        case list() | tuple():
            return [json_value(item) for item in value]
        case dict():
            return {str(key): json_value(item) for key, item in value.items()}
    return value
