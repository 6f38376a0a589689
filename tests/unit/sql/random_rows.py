"""Small random contents for the corpus' relations: few values, NULLs, duplicates, and odd ones."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Kind, Schema, Type, Value

_TEXTS = ("a", "b", "ab", " a ", "", "Ä", "it's", "a%b", "z\\")
_DOUBLES = (0.0, 1.0, 2.0, 2.5, -1.5, math.nan, math.inf)
_BYTES = (b"", b"\x00", b"\x1f\x00", b"\xff")
_MIDNIGHT = dt.datetime(2024, 6, 1)


def value(chance: random.Random, type: Type) -> Value:
    if chance.random() < 0.15:
        return None
    small = chance.randint(0, 5)
    match type.kind:
        case Kind.INTEGER:
            return small
        case Kind.DOUBLE:
            return chance.choice(_DOUBLES)
        case Kind.DECIMAL:
            digits = chance.choice((small, small, 10 * small + 5)) * chance.choice((1, 10))
            return decimal.Decimal(digits).scaleb(-min(type.scale, 1))
        case Kind.STRING:
            return chance.choice(_TEXTS)
        case Kind.BOOLEAN:
            return chance.random() < 0.6
        case Kind.BINARY:
            return chance.choice(_BYTES)
        case Kind.DATE:
            return dt.date(2023 + small, 1 + small, 28)
        case Kind.TIMESTAMP:
            return dt.datetime(2023 + small, 6, 1, small, tzinfo=dt.UTC)
        case Kind.LOCAL_TIMESTAMP:
            return _MIDNIGHT + dt.timedelta(days=100 * small - 200, hours=small)


def contents(schema: Schema, seed: str, rows: int = 20) -> Bag:
    """About ``rows`` rows of the schema, some of them twice; the seed alone decides which."""
    chance = random.Random(seed)
    fresh = [tuple(value(chance, f.type) for f in schema) for _ in range(rows - rows // 5)]
    return Bag.of(schema, fresh + chance.choices(fresh, k=rows // 5))
