"""DuckDB as a second opinion: what a text means on given rows, asked of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

import duckdb

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Kind, Row, Schema
from viewkeeper.views.definition import RelationName

CHUNK = 200
_TYPES = {Kind.STRING: "VARCHAR", Kind.BINARY: "BLOB", Kind.LOCAL_TIMESTAMP: "TIMESTAMP"}


@contextmanager
def database(contents: Mapping[RelationName, Bag]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with these relations, each in a schema named as its source."""
    with closing(duckdb.connect()) as connection:
        for name, bag in contents.items():
            fields = ", ".join(f"{f.name} {_TYPES.get(f.type.kind, f.type)}" for f in bag.schema)
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name.source}")
            connection.execute(f"CREATE TABLE {name} ({fields})")
            insert(connection, name, [row for row, count in bag for _ in range(count)])
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, name: RelationName, rows: Sequence[Row]) -> None:
    """Put rows in, many with one statement: DuckDB takes as long for one of them as for hundreds."""
    for chunk in (rows[at : at + CHUNK] for at in range(0, len(rows), CHUNK)):
        holes = ", ".join(f"({', '.join('?' * len(row))})" for row in chunk)
        values = [value for row in chunk for value in row]
        connection.execute(f"INSERT INTO {name} VALUES {holes}", values)


def answer(connection: duckdb.DuckDBPyConnection, text: str, schema: Schema) -> Bag:
    """What DuckDB gives for the text, in the types that we expect of it."""
    return Bag.of(schema, connection.execute(text).fetchall())
