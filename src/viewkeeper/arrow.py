"""Our schemas and rows as Arrow, and back: the same for sources, Spark and the warehouse.

Arrow can hold what Python's dates can't, so `rows_of` is also where a value that has no canonical
form is noticed. Knows no database and no Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import NAN, Kind, Row, Schema, Type
from viewkeeper.errors import UsageError

_ARROW = {
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.LOCAL_TIMESTAMP: pa.timestamp("us"),
}


def arrow_type(type: Type) -> pa.DataType:
    """How a value of our type travels in Arrow."""
    if type.kind is Kind.DECIMAL:
        return pa.decimal128(type.precision, type.scale)
    return _ARROW[type.kind]


def arrow_schema(schema: Schema) -> pa.Schema:
    """Our schema as Arrow's; every column may be NULL."""
    return pa.schema([pa.field(field.name, arrow_type(field.type)) for field in schema])


def batch_of(rows: Iterable[Row], schema: Schema) -> pa.RecordBatch:
    """Rows in canonical form as one Arrow batch."""
    target = arrow_schema(schema)
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, target, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def rows_of(batch: pa.RecordBatch | pa.Table, schema: Schema) -> list[Row]:
    """The batch's rows in canonical form; raises UsageError when its types are not the schema's."""
    target = arrow_schema(schema)
    if not batch.schema.equals(target):
        raise UsageError(
            "wrong-batch",
            "an Arrow batch does not fit its schema",
            detail=f"expected {target.to_string()}, found {batch.schema.to_string()}",
        )
    if not schema.fields:
        return [()] * batch.num_rows
    columns = [canonical_values(batch.column(i), f.type) for i, f in enumerate(schema)]
    return list(zip(*columns, strict=True))


def canonical_values(column: Any, type: Type) -> list[Any]:
    """The values of one column in canonical form."""
    values = column.to_pylist()
    repair = _REPAIRS.get(type.kind)
    return values if repair is None else [None if v is None else repair(v) for v in values]


def _canonical_double(value: float) -> float:
    return NAN if value != value else value + 0.0


def _canonical_instant(value: dt.datetime) -> dt.datetime:
    return value.astimezone(dt.UTC)


def _positive_zero(value: Any) -> Any:
    return value if value else abs(value)


# What Arrow gives otherwise than `algebra.types.canonical` wants it.
_REPAIRS: dict[Kind, Callable[[Any], Any]] = {
    Kind.DOUBLE: _canonical_double,
    Kind.TIMESTAMP: _canonical_instant,
    Kind.DECIMAL: _positive_zero,
}
