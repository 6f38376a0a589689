"""Columns whose values repeat, as codes into a dictionary: Arrow's dictionary arrays.

A change of one row may show in a thousand rows of a view. Writing its name a thousand times costs time and
fresh memory, and Parquet has its own dictionary. Codes are a form of a column, never its type: whoever
can't bear them decodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

# From this number of uses of each value on, on average, codes are worth it.
USES_MIN = 4


def is_coded(column: pa.ChunkedArray | pa.Field) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in its own type."""
    return column.cast(column.type.value_type) if is_coded(column) else column


def taken(column: pa.ChunkedArray, lines: pa.Array) -> pa.ChunkedArray:
    """The column's values in these lines: coded where long values are used again and again."""
    if not _is_long(column.type) or len(lines) < USES_MIN * len(column):
        return column.take(lines)
    codes = pc.dictionary_encode(column.combine_chunks())
    found = pa.DictionaryArray.from_arrays(codes.indices.take(lines), codes.dictionary)
    return pa.chunked_array([found])


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The lines of all tables, whose columns differ at most in being coded."""
    names = tables[0].column_names
    coded = [
        i for i in range(len(names)) if any(is_coded(table.schema.field(i)) for table in tables)
    ]
    for position in coded:
        tables = [_with_codes(table, position) for table in tables]
    return pa.concat_tables(tables)


def decoded(table: pa.Table, types: pa.Schema) -> pa.Table:
    """The table in its plain types."""
    return table.cast(types) if any(map(is_coded, table.schema)) else table


def line_bytes(table: pa.Table) -> float:
    """About how long a line is, on average, when nothing is coded."""
    return sum(map(_value_bytes, table.columns))


def _value_bytes(column: pa.ChunkedArray) -> float:
    if is_coded(column):
        column = pa.chunked_array(
            [chunk.dictionary for chunk in column.chunks], column.type.value_type
        )
    return float(column.nbytes / max(len(column), 1))


def with_codes_kept(types: pa.Schema, table: pa.Table) -> pa.Schema:
    """The types, but codes where the table's columns are coded."""
    for position, field in enumerate(types):
        if is_coded(table.schema.field(position)):
            types = types.set(position, field.with_type(pa.dictionary(pa.int32(), field.type)))
    return types


def _is_long(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def _with_codes(table: pa.Table, position: int) -> pa.Table:
    column = table.column(position)
    if is_coded(column):
        return table
    return table.set_column(position, table.column_names[position], pc.dictionary_encode(column))
