"""A view's columns in the warehouse's files: our types in Arrow, in Spark's DDL and as JSON.

Every view table holds the view's columns and two of ours: ``_count``, the signed number of times
the row comes in or goes out, and ``_txn``, the number of the transaction it came from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from viewkeeper.algebra.types import Field, Kind, Schema, Type, decimal_type
from viewkeeper.arrow import arrow_schema
from viewkeeper.errors import UsageError, invariant
from viewkeeper.views.spark_sql import quoted

COUNT = "_count"
TXN = "_txn"
RESERVED = (COUNT, TXN)

# Delta tables without column mapping do not allow these in a column's name; with column mapping
# half of the readers would get NULLs.
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=]")
_VIEW_NAME = re.compile(r"[^\W_]\w*")
_STORE_NAME = re.compile(rf"({_VIEW_NAME.pattern})@[\w.]+")

_SIGNED = (pa.field(COUNT, pa.int64()), pa.field(TXN, pa.int64()))


def store_name(view: str, store: str) -> str:
    """The name of the table that keeps one of a view's stores: no view can be named so."""
    return f"{view}@{store}"


def owner_of(name: str) -> str | None:
    """The view whose store it is; None for a view."""
    match = _STORE_NAME.fullmatch(name)
    return None if match is None else match[1]


def stored_arrow_schema(schema: Schema) -> pa.Schema:
    """The view's columns, then ``_count`` and ``_txn``: what every file of a view table holds."""
    return pa.schema([*arrow_schema(schema), *_SIGNED])


def stored_ddl(schema: Schema) -> str:
    """The columns of a view table's files as Spark reads a schema."""
    columns = [f"{quoted(field.name)} {field.type}" for field in schema]
    return ", ".join([*columns, f"{COUNT} bigint", f"{TXN} bigint"])


def schema_to_json(schema: Schema) -> list[list[str]]:
    return [[field.name, str(field.type)] for field in schema]


def schema_from_json(columns: Sequence[Sequence[str]]) -> Schema:
    return Schema(tuple(Field(name, type_from_text(text)) for name, text in columns))


def type_from_text(text: str) -> Type:
    """The inverse of ``str(type)``."""
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", text):
        return decimal_type(int(match[1]), int(match[2]))
    invariant(text in {kind.value for kind in Kind}, f"{text!r} is not a type of ours")
    return Type(Kind(text))


def check_columns(view: str, schema: Schema) -> None:
    """Raise UsageError for a column whose name a Delta table or Spark can't hold."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if not name or _FORBIDDEN.search(name):
            _refuse(view, name, "a Delta table's column name is not empty and has none of ,;{}()= "
                    "and no space, tab or line break")  # fmt: skip
        if name.lower() in RESERVED:
            _refuse(view, name, f"{COUNT} and {TXN} are columns of the warehouse itself")
        if name.lower() in seen:
            _refuse(view, name, f"it differs from {seen[name.lower()]!r} by case only, and Spark "
                    "takes the two for one")  # fmt: skip
        seen[name.lower()] = name
    if not len(schema):
        raise UsageError("no-columns", f"view {view} has no columns, so it can't be stored")


def _refuse(view: str, column: str, why: str) -> None:
    raise UsageError(
        "bad-column-name",
        f"column {column!r} of view {view} can't be stored",
        detail=why,
        hint="give the column another name with AS",
    )


def check_view_name(name: str) -> None:
    """Raise UsageError unless the name can be a folder and a Spark table on every system."""
    if not _VIEW_NAME.fullmatch(name) and owner_of(name) is None:
        raise UsageError(
            "bad-view-name",
            f"a view can't be named {name!r}",
            detail="a view's name starts with a letter or digit and goes on with letters, digits "
            "and underscores",
            hint="rename the view's file",
        )
