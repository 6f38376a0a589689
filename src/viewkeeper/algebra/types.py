"""Column types and schemas, and the one canonical form of every value.

Two values are the same exactly when their canonical forms are equal in Python, so that rows can be
keys of a dict. On purpose, and alike on every body of the algebra:

- **NaN** is one value: equal to itself and greater than every other double, as Spark and PostgreSQL
  order it. Python's own NaN differs from itself; `canonical` maps all of them to one object, which a
  dict then finds by identity.
- **−0.0** is stored as 0.0: Spark joins and groups the two as one, so a bag must not tell them apart.
- **Decimals** keep their column's scale; 1.5 and 1.50 are one value.
- **Timestamps** with a zone are instants, held in UTC; `LOCAL_TIMESTAMP` has no zone. Microseconds.
- **NULL** is ``None``. Bags treat NULL as equal to NULL (it is one row); predicates and joins do not.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewkeeper.errors import UsageError

Value = int | float | decimal.Decimal | str | bool | bytes | dt.date | dt.datetime | None
Row = tuple[Value, ...]

NAN = math.nan
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
DECIMAL_PRECISION_MAX = 38

# Wide enough for any exact intermediate result of two 38-digit operands.
EXACT = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)


class Kind(enum.Enum):
    """The closed list of kinds; a source maps its own types to these or refuses the column."""

    INTEGER = "bigint"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    LOCAL_TIMESTAMP = "timestamp_ntz"


@dataclass(frozen=True, slots=True)
class Type:
    """A kind, with precision and scale where it is a decimal. Prints as Spark SQL spells it."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return str(self.kind.value)

    @property
    def is_numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL)


INTEGER = Type(Kind.INTEGER)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
BOOLEAN = Type(Kind.BOOLEAN)
BINARY = Type(Kind.BINARY)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
LOCAL_TIMESTAMP = Type(Kind.LOCAL_TIMESTAMP)


def decimal_type(precision: int, scale: int) -> Type:
    """A decimal column of ``precision`` digits, ``scale`` of them after the point."""
    if not (0 <= scale <= precision <= DECIMAL_PRECISION_MAX and precision > 0):
        raise UsageError(
            "decimal-out-of-range",
            f"decimal({precision},{scale}) is not a type",
            detail=f"precision goes from 1 to {DECIMAL_PRECISION_MAX}, scale from 0 to precision",
        )
    return Type(Kind.DECIMAL, precision, scale)


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name and its type. Every column may be NULL."""

    name: str
    type: Type


@dataclass(frozen=True)
class Schema:
    """The columns of a relation, in order; names are unique."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        positions = {field.name: index for index, field in enumerate(self.fields)}
        if len(positions) != len(self.fields):
            names = [field.name for field in self.fields]
            doubled = sorted({name for name in names if names.count(name) > 1})
            raise UsageError(
                "duplicate-column",
                f"a relation can't have two columns named {', '.join(doubled)}",
                hint="give one of them another name with AS",
            )
        # Derived and rebuilt on construction; a frozen dataclass allows no other way.
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_hash", hash(self.fields))

    def __hash__(self) -> int:
        # Expressions are compiled once per schema and looked up often.
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @classmethod
    def of(cls, **types: Type) -> Schema:
        """``Schema.of(id=INTEGER, name=STRING)``."""
        return cls(tuple(Field(name, type) for name, type in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self._positions  # type: ignore[attr-defined]

    def position(self, name: str) -> int:
        """Where the column stands; raises UsageError when there is none of that name."""
        try:
            return self._positions[name]  # type: ignore[attr-defined, no-any-return]
        except KeyError:
            raise UsageError(
                "unknown-column",
                f"there is no column {name}",
                detail=f"the columns are {', '.join(self.names)}",
            ) from None

    def type_of(self, name: str) -> Type:
        return self.fields[self.position(name)].type

    def joined(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    def renamed(self, names: Iterable[str]) -> Schema:
        return Schema(
            tuple(Field(name, field.type) for name, field in zip(names, self.fields, strict=True))
        )


def canonical(value: Value, type: Type) -> Value:
    """The canonical form of ``value`` as a ``type``; raises UsageError when it is none."""
    if value is None:
        return None
    kind = type.kind
    match value:
        case bool() if kind is Kind.BOOLEAN:
            return value
        case int() if kind is Kind.INTEGER and not isinstance(value, bool):
            if INTEGER_MIN <= value <= INTEGER_MAX:
                return value
        case float() if kind is Kind.DOUBLE:
            return NAN if value != value else value + 0.0  # −0.0 + 0.0 is 0.0
        case decimal.Decimal() if kind is Kind.DECIMAL and value.is_finite():
            # Checked first: bringing 1E+999 to a scale would need more digits than there are.
            if value.adjusted() < DECIMAL_PRECISION_MAX:
                scaled = value.quantize(decimal.Decimal(1).scaleb(-type.scale), context=EXACT)
                if scaled == value and len(scaled.as_tuple().digits) <= type.precision:
                    return scaled if scaled else abs(scaled)
        case str() if kind is Kind.STRING:
            return value
        case bytes() if kind is Kind.BINARY:
            return value
        case dt.datetime() if kind is Kind.TIMESTAMP and value.tzinfo is not None:
            try:
                return value.astimezone(dt.UTC)
            except OverflowError:  # in year 1 or 9999, and outside them in UTC
                pass
        case dt.datetime() if kind is Kind.LOCAL_TIMESTAMP and value.tzinfo is None:
            return value
        case dt.date() if kind is Kind.DATE and not isinstance(value, dt.datetime):
            return value
        case _:
            pass
    raise UsageError("wrong-value", f"{value!r} is not a value of type {type}")


def canonical_row(values: Iterable[Value], schema: Schema) -> Row:
    """A row in canonical form; raises UsageError for a wrong length or a wrong value."""
    row = tuple(values)
    if len(row) != len(schema):
        raise UsageError(
            "wrong-row",
            f"a row of {len(row)} values does not fit {len(schema)} columns",
            detail=f"the columns are {', '.join(schema.names)}; the row is {row!r}",
        )
    return tuple(canonical(value, field.type) for value, field in zip(row, schema, strict=True))
