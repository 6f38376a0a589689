"""A cut: one read transaction, which sees the log's newest number together with the data.

SQLite gives a snapshot to one connection only, so that a cut can't be shared with another process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.algebra.types import Field, Kind, Schema
from viewkeeper.arrow import arrow_schema
from viewkeeper.sources.interface import (
    KeyedRead,
    Position,
    RelationSchema,
    Snapshot,
    SourceTransaction,
    broken_query,
    cut_lost,
)
from viewkeeper.sources.sqlite.catalog import Capture
from viewkeeper.sources.sqlite.codec import EXACT_KEYS, encode_key
from viewkeeper.sources.sqlite.connection import translated
from viewkeeper.sources.sqlite.quoting import quoted
from viewkeeper.sources.sqlite.row_decoding import decode_columns, undecodable_text

if TYPE_CHECKING:
    from viewkeeper.sources.sqlite.source import SQLiteSource

BATCH_ROWS = 20_000
# Up to this number of key values travel as parameters, which is a quarter faster at every size (0029);
# SQLite's own limit is 32,766. More go through a temporary table.
PARAMETERS_MAX = 30_000
KEYS = "_viewkeeper_keys"


class SQLiteSnapshot(Snapshot):
    """See `Snapshot`. The connection is in a read transaction, and is given back on closing."""

    def __init__(
        self,
        source: SQLiteSource,
        connection: sqlite3.Connection,
        bound: Position,
        captures: Mapping[str, Capture],
    ) -> None:
        self._source, self._captures = source, captures
        self._connection: sqlite3.Connection | None = connection
        self.bound = bound
        self.schemas = {name: capture.schema for name, capture in captures.items()}

    def reflects(self, transaction: SourceTransaction) -> bool:
        number, position = self.bound["seq"], transaction.position
        if position["history"] != self.bound["history"]:
            raise cut_lost(
                self._source.name, "the transaction belongs to another history of the database"
            )
        if transaction.identity <= number:
            return True
        if position["after"] >= number:
            return False
        # Only for a cut and a feed that do not know each other: see `SQLiteFeed._note_ends`.
        raise cut_lost(
            self._source.name,
            "the feed gave several transactions as one, and the cut is among them",
        )

    def read(self, question: KeyedRead) -> Iterator[pa.RecordBatch]:
        capture = self._captures.get(question.relation)
        if capture is None:
            detail = f"the cut was not opened for relation {question.relation}"
            raise broken_query(self._source.name, detail)
        fields = self._fields(capture.schema, question.columns)
        keys = self._fields(capture.schema, question.key_columns)
        if question.keys is None:
            return self._whole(capture, fields, question.part, question.parts)
        wanted = _key_values(question.keys, keys)
        if not wanted:
            return iter(())
        exact = all(key.type.kind in EXACT_KEYS for key in keys)
        return (self._keyed if exact else self._filtered)(capture, fields, keys, wanted)

    def query(
        self, sql: str, schema: Schema, parameters: Sequence[Any] = ()
    ) -> Iterator[pa.RecordBatch]:
        return self._batches(sql, parameters, schema.fields, "the query", frozenset(), False)

    def share(self) -> Mapping[str, Any] | None:
        return None

    def row_estimate(self, relation: str) -> int:
        """Counted: SQLite walks its smallest index for that, which is little beside reading."""
        table = quoted(self._captures[relation].table.name)
        with translated(self._source.name, "broken-query"):
            [count] = self._open().execute(f"SELECT count(*) FROM main.{table}").fetchone()
        return int(count)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._source.cut_closed(connection)

    def _whole(
        self, capture: Capture, fields: Sequence[Field], part: int, parts: int
    ) -> Iterator[pa.RecordBatch]:
        table, rowid = quoted(capture.table.name), capture.table.rowid
        select = self._select(capture, fields)
        if parts == 1:
            return self._answer(capture, fields, select)
        if rowid is None:
            # Its key may be anything, so that it can't be cut in ranges: the first part has it all.
            none = "" if part == 0 else " WHERE 0"
            return self._answer(capture, fields, select + none)
        low, high = (
            self._open().execute(f"SELECT min({rowid}), max({rowid}) FROM {table}").fetchone()
        )
        if low is None:
            return iter(())
        span = high - low + 1
        bounds = (low + span * part // parts, low + span * (part + 1) // parts - 1)
        return self._answer(capture, fields, f"{select} WHERE t.{rowid} BETWEEN ? AND ?", bounds)

    def _keyed(
        self,
        capture: Capture,
        fields: Sequence[Field],
        keys: Sequence[Field],
        wanted: Sequence[tuple[Any, ...]],
    ) -> Iterator[pa.RecordBatch]:
        """Keys of a kind that SQLite stores in one way: let it find them by its index."""
        rows = _encoded(wanted, keys)
        columns = ", ".join(_comparable(key) for key in keys)
        left = f"({columns})" if len(keys) > 1 else columns
        select = self._select(capture, fields)
        if len(rows) * len(keys) <= PARAMETERS_MAX:
            marks = ", ".join(f"({', '.join('?' * len(keys))})" for _ in rows)
            flat = tuple(value for row in rows for value in row)
            sql = f"{select} WHERE {left} IN (VALUES {marks})"
            yield from self._answer(capture, fields, sql, flat)
            return
        self._fill_keys(rows, len(keys))
        sql = f"{select} WHERE {left} IN (SELECT * FROM temp.{KEYS})"
        yield from self._answer(capture, fields, sql)

    def _fill_keys(self, rows: Sequence[tuple[Any, ...]], width: int) -> None:
        """A temporary table lives in our own memory or temporary folder, not in the source."""
        connection = self._open()
        connection.execute(f"DROP TABLE IF EXISTS temp.{KEYS}")
        names = ", ".join(f"k{n}" for n in range(width))
        connection.execute(
            f"CREATE TEMP TABLE {KEYS} ({names}, PRIMARY KEY ({names})) WITHOUT ROWID"
        )
        marks = ", ".join("?" * width)
        connection.executemany(f"INSERT INTO temp.{KEYS} VALUES ({marks})", rows)

    def _filtered(
        self,
        capture: Capture,
        fields: Sequence[Field],
        keys: Sequence[Field],
        wanted: Sequence[tuple[Any, ...]],
    ) -> Iterator[pa.RecordBatch]:
        """Keys of a kind that SQLite stores in several ways: read everything, compare values."""
        among = set(wanted)
        both = [*fields, *(key for key in keys if key not in fields)]
        places = [both.index(key) for key in keys]
        for batch in self._answer(capture, both, self._select(capture, both)):
            columns = [batch.column(place).to_pylist() for place in places]
            keep = [row in among for row in zip(*columns, strict=True)]
            kept = batch.filter(pa.array(keep, pa.bool_())).select([f.name for f in fields])
            if kept.num_rows:
                yield kept

    def _select(self, capture: Capture, fields: Sequence[Field]) -> str:
        """The row's identity comes first, so that a row that can't be decoded can be named."""
        identity = "NULL" if capture.table.rowid is None else f"t.{capture.table.rowid}"
        columns = "".join(f", t.{quoted(field.name)}" for field in fields)
        return f"SELECT {identity}{columns} FROM main.{quoted(capture.table.name)} AS t"

    def _answer(
        self,
        capture: Capture,
        fields: Sequence[Field],
        sql: str,
        parameters: Sequence[Any] = (),
    ) -> Iterator[pa.RecordBatch]:
        required = frozenset(capture.schema.key)
        return self._batches(sql, parameters, fields, capture.table.name, required, True)

    def _batches(
        self,
        sql: str,
        parameters: Sequence[Any],
        fields: Sequence[Field],
        relation: str,
        required: frozenset[str],
        identified: bool,
    ) -> Iterator[pa.RecordBatch]:
        target = arrow_schema(Schema(tuple(fields)))
        with translated(self._source.name, "broken-query"):
            cursor = self._open().execute(sql, tuple(parameters))
            while rows := _fetch(cursor, self._source.name, relation):
                columns = list(zip(*rows, strict=True))
                identities = columns.pop(0) if identified else ()
                decoded = decode_columns(
                    columns,
                    fields,
                    required=required,
                    identities=identities,
                    source=self._source.name,
                    relation=relation,
                )
                arrays = [pa.array(c, f.type) for c, f in zip(decoded, target, strict=True)]
                if not arrays:
                    yield pa.RecordBatch.from_struct_array(
                        pa.array([{}] * len(rows), pa.struct([]))
                    )
                    continue
                yield pa.RecordBatch.from_arrays(arrays, schema=target)

    def _fields(self, known: RelationSchema, columns: Sequence[str]) -> list[Field]:
        for column in columns:
            if column not in known.schema:
                reason = known.refused.get(column, "there is no such column")
                detail = f"column {column} of {known.relation}: {reason}"
                raise broken_query(self._source.name, detail)
        return [known.schema.fields[known.schema.position(column)] for column in columns]

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise cut_lost(self._source.name, "it was closed")
        return self._connection


def _fetch(cursor: sqlite3.Cursor, source: str, relation: str) -> list[tuple[Any, ...]]:
    try:
        return cursor.fetchmany(BATCH_ROWS)
    except sqlite3.OperationalError as error:
        if "UTF-8" in str(error):
            raise undecodable_text(source, relation, error) from None
        raise


def _comparable(key: Field) -> str:
    """Views compare text byte by byte, whatever collation the column was declared with."""
    column = f"t.{quoted(key.name)}"
    return f"{column} COLLATE BINARY" if key.type.kind is Kind.STRING else column


def _key_values(table: pa.Table, keys: Sequence[Field]) -> list[tuple[Any, ...]]:
    """The distinct keys; one that holds a NULL equals nothing."""
    columns = [table.column(place).to_pylist() for place in range(len(keys))]
    distinct = dict.fromkeys(zip(*columns, strict=True))
    return [row for row in distinct if None not in row]


def _encoded(wanted: Sequence[tuple[Any, ...]], keys: Sequence[Field]) -> Sequence[tuple[Any, ...]]:
    """The keys as they are stored; most kinds are stored as they are."""
    if not any(key.type.kind in (Kind.DECIMAL, Kind.DATE) for key in keys):
        return wanted
    columns = [[encode_key(value) for value in column] for column in zip(*wanted, strict=True)]
    return list(zip(*columns, strict=True))
