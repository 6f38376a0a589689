"""Types and rows between the algebra, Arrow and Spark.

Timestamps with a zone travel as microseconds in UTC, those without as bare microseconds; decimals
with their declared precision. Rows come back in canonical form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark_types

from viewkeeper.algebra.bag import Bag, SignedRow
from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Kind,
    Schema,
    Type,
)
from viewkeeper.arrow import arrow_schema as plain_schema
from viewkeeper.arrow import canonical_values

# The column that carries the signed count of a row.
COUNT = "_count"

_SPARK: dict[Type, spark_types.DataType] = {
    INTEGER: spark_types.LongType(),
    DOUBLE: spark_types.DoubleType(),
    STRING: spark_types.StringType(),
    BOOLEAN: spark_types.BooleanType(),
    BINARY: spark_types.BinaryType(),
    DATE: spark_types.DateType(),
    TIMESTAMP: spark_types.TimestampType(),
    LOCAL_TIMESTAMP: spark_types.TimestampNTZType(),
}


def spark_type(type: Type) -> spark_types.DataType:
    if type.kind is Kind.DECIMAL:
        return spark_types.DecimalType(type.precision, type.scale)
    return _SPARK[type]


def arrow_schema(schema: Schema) -> pa.Schema:
    """The relation's columns, then the count."""
    return plain_schema(schema).append(pa.field(COUNT, pa.int64(), nullable=False))


def spark_schema(schema: Schema) -> spark_types.StructType:
    """The relation's columns, then the count."""
    columns = [spark_types.StructField(f.name, spark_type(f.type)) for f in schema]
    return spark_types.StructType(
        [*columns, spark_types.StructField(COUNT, spark_types.LongType(), nullable=False)]
    )


def table_of(schema: Schema, signed_rows: Iterable[SignedRow]) -> pa.Table:
    """Rows in canonical form, with their counts, as an Arrow table with one line each."""
    pairs = list(signed_rows)
    types = arrow_schema(schema)
    columns: list[list[Any]] = [[row[i] for row, _ in pairs] for i in range(len(schema))]
    columns.append([count for _, count in pairs])
    arrays = [pa.array(c, field.type) for c, field in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=types)


def bag_of(table: pa.Table, schema: Schema) -> Bag:
    """The lines of a table with the columns of `arrow_schema`, as a bag."""
    return Bag(schema, signed_rows(table, schema))


def signed_rows(table: pa.Table, schema: Schema) -> Iterator[SignedRow]:
    """The lines of a table with the columns of `arrow_schema`, each with its count."""
    # By position: a table may name its columns otherwise.
    *columns, counts = table.columns
    in_order = [canonical_values(c, f.type) for c, f in zip(columns, schema, strict=True)]
    numbers = counts.to_pylist()
    rows: Iterable[Any] = zip(*in_order, strict=True) if in_order else ((),) * len(numbers)
    yield from zip(rows, numbers, strict=True)
