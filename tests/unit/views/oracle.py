"""DuckDB as a second opinion: what a text means on given rows, asked of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import duckdb

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.views.definition import RelationName

_TYPES = {Kind.STRING: "VARCHAR", Kind.BINARY: "BLOB", Kind.LOCAL_TIMESTAMP: "TIMESTAMP"}


@contextmanager
def database(contents: Mapping[RelationName, Bag]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with these relations, each in a schema named as its source."""
    with closing(duckdb.connect()) as connection:
        for name, bag in contents.items():
            fields = ", ".join(f"{f.name} {_TYPES.get(f.type.kind, f.type)}" for f in bag.schema)
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name.source}")
            connection.execute(f"CREATE TABLE {name} ({fields})")
            rows = [row for row, count in bag for _ in range(count)]
            if rows:
                marks = ", ".join("?" * len(bag.schema.fields))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        yield connection


def answer(connection: duckdb.DuckDBPyConnection, text: str, schema: Schema) -> Bag:
    """What DuckDB gives for the text, in the types that we expect of it."""
    return Bag.of(schema, connection.execute(text).fetchall())
