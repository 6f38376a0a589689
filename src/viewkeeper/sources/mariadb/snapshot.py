"""A read at an exact cut: a consistent snapshot that knows its place in the binary log.

``START TRANSACTION WITH CONSISTENT SNAPSHOT`` takes the snapshot and the place together, between two
commits; ``binlog_snapshot_%`` then tells the place. (After a plain BEGIN the same variables show the
log's end at the moment of asking, which is another thing.) A transaction is reflected exactly when it
ends at or before that place.

Definitions are not part of a snapshot. Opening a table in a transaction keeps changes of its definition
away, but the statement that takes the snapshot ends whatever transaction there was. So a second link, the
*holder*, keeps the tables while the snapshot is taken and until they are open in it too. From then on the
cut keeps them, until it is closed or must give way to an owner who waits (`giving_way`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import Row, Schema
from viewkeeper.arrow import batch_of
from viewkeeper.errors import SourceError, invariant
from viewkeeper.sources.interface import (
    KeyedRead,
    Position,
    RelationSchema,
    Snapshot,
    SourceTransaction,
    broken_query,
    cut_lost,
    cut_overtaken,
)
from viewkeeper.sources.mariadb.catalog import Catalog, Table, refuse_problems
from viewkeeper.sources.mariadb.columns import Column
from viewkeeper.sources.mariadb.connection import Link, rows, translated
from viewkeeper.sources.mariadb.giving_way import GivingWay
from viewkeeper.sources.mariadb.position import Place, compare, is_log_file, place_of
from viewkeeper.sources.mariadb.prepared import execute
from viewkeeper.sources.mariadb.quoting import quoted
from viewkeeper.sources.mariadb.reading import chunks, distinct_keys, keyed_sql, part_condition

BATCH_ROWS = 20_000
# Definitions that are changed again and again: more often than this, the owner is busy.
ATTEMPTS_MAX = 20

SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_PLACE = (
    "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.SESSION_STATUS"
    " WHERE VARIABLE_NAME IN ('BINLOG_SNAPSHOT_FILE', 'BINLOG_SNAPSHOT_POSITION')"
)
_ESTIMATE = (
    "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
# A cut whose client is gone must not keep the owner from changing the tables: the server ends it.
IDLE_SECONDS_MAX = 60
# Text in the columns' own bytes; many keys are looked up in an index in its own order.
_SESSION = (
    f"SET SESSION idle_readonly_transaction_timeout = {IDLE_SECONDS_MAX},"
    " character_set_results = NULL, join_cache_level = 8, join_buffer_size = 33554432,"
    " optimizer_switch = 'join_cache_hashed=on,mrr=on'"
)


def snapshot_place(link: Link, source: str) -> Place:
    """The place of the snapshot that the link has taken: all up to there is visible, now and later."""
    found = {str(n).lower(): v for n, v in rows(link, _PLACE)}
    file = found.get("binlog_snapshot_file", "")
    if not file:
        raise SourceError(
            "no-binary-log",
            f"source {source} keeps no binary log",
            source=source,
            retryable=False,
            hint=f"viewkeeper check --setup-sql {source} prints the settings it needs",
        )
    if not is_log_file(file):
        raise SourceError(
            "log-in-engine",
            f"source {source} keeps its binary log in a storage engine ({file})",
            source=source,
            retryable=False,
            detail="places in it are not those of a file, by which cuts and the feed are put in order",
            hint="remove binlog_storage_engine from the [mysqld] section and restart the server",
        )
    return Place(file, int(found["binlog_snapshot_position"]))


class MariaDBSnapshot(Snapshot):
    """Owns its connection; closing it ends the snapshot."""

    def __init__(
        self,
        source: str,
        link: Link,
        catalog: Catalog,
        relations: Sequence[str],
        charsets: dict[int, str],
        check_history: Callable[[Link], None],
        holder: Callable[[], AbstractContextManager[Link]],
        giving_way: GivingWay,
    ) -> None:
        self._source = source
        self._link = link
        self.relations = tuple(relations)
        self.thread_number = int(link.thread_id())
        self._giving_way = giving_way
        # The relation whose owner it had to give way to.
        self._gave_way_for = ""
        self._charsets = charsets
        self._closed = False
        try:
            with translated(source, f"open a cut of source {source}"):
                rows(link, _SESSION)
                with holder() as other:
                    self._place, self._tables = self._opened(catalog, relations, other)
                check_history(link)
        except BaseException:
            self.close()
            raise
        self.bound: Position = self._place.as_position()
        self.schemas: Mapping[str, RelationSchema] = {
            relation: table.schema for relation, table in self._tables.items()
        }
        giving_way.watch(self)

    def give_way(self, relation: str) -> None:
        self._gave_way_for = relation

    def _opened(
        self, catalog: Catalog, relations: Sequence[str], holder: Link
    ) -> tuple[Place, dict[str, Table]]:
        for _ in range(ATTEMPTS_MAX):
            with catalog.holding(holder, relations) as present:
                self._start()
                held = self._holds(catalog, present)
            if held:
                tables = catalog.held_tables(self._link, relations, present)
                for table in tables.values():
                    refuse_problems(self._source, table)
                return snapshot_place(self._link, self._source), tables
            rows(self._link, "ROLLBACK")
        raise SourceError(
            "cut-refused",
            f"source {self._source} changes its definitions too fast for a cut",
            source=self._source,
            retryable=True,
            detail=f"{ATTEMPTS_MAX} times in a row somebody was about to change a table",
        )

    def _start(self) -> None:
        rows(self._link, SNAPSHOT)

    def _holds(self, catalog: Catalog, relations: Sequence[str]) -> bool:
        """Open the tables; False when somebody waits to change one.

        He waits for the holder, we would wait for him, and the holder waits for us: all must let go.
        """
        return not any(catalog.is_wanted(self._link, relation) for relation in relations)

    # -- answers ------------------------------------------------------------------------------

    def reflects(self, transaction: SourceTransaction) -> bool:
        return compare(place_of(transaction.position), self._place, self._source) <= 0

    def read(self, question: KeyedRead) -> Iterator[pa.RecordBatch]:
        table = self._table(question.relation)
        asked = [self._column(table, name) for name in question.columns]
        schema = Schema(tuple(table.schema.schema.fields[self._at(table, c)] for c in asked))
        for batch in self._rows(table, asked, question):
            yield batch_of(batch, schema)

    def query(
        self, sql: str, schema: Schema, parameters: Sequence[Any] = ()
    ) -> Iterator[pa.RecordBatch]:
        for batch in self._executed(sql, parameters, schema):
            yield batch_of(batch, schema)

    def share(self) -> Mapping[str, Any] | None:
        return None

    def row_estimate(self, relation: str) -> int | None:
        table = self._table(relation)
        with translated(self._source, f"read the statistics of source {self._source}"):
            found = rows(self._link, _ESTIMATE, (table.database, table.name))
        return None if not found or found[0][0] is None else int(found[0][0])

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._giving_way.forget(self)
            self._link._force_close()

    # -- questions ----------------------------------------------------------------------------

    def _rows(self, table: Table, asked: list[Column], question: KeyedRead) -> Iterator[list[Row]]:
        if question.keys is None:
            yield from self._whole(table, asked, question)
            return
        keys = [self._column(table, name) for name in question.key_columns]
        invariant(keys, "a keyed read names no key columns")
        columns = asked + [key for key in keys if key not in asked]
        schema = Schema(tuple(table.schema.schema.fields[self._at(table, c)] for c in columns))
        places = [columns.index(key) for key in keys]
        sql = keyed_sql(table, columns, keys)
        for parameter, members in chunks(distinct_keys(question.keys)):
            for batch in self._executed(sql, (parameter,), schema):
                kept = [row for row in batch if tuple([row[p] for p in places]) in members]
                if kept:
                    yield kept if columns == asked else [row[: len(asked)] for row in kept]

    def _whole(self, table: Table, asked: list[Column], question: KeyedRead) -> Iterator[list[Row]]:
        schema = Schema(tuple(table.schema.schema.fields[self._at(table, c)] for c in asked))
        # A relation of which nothing is asked still has a number of rows.
        listed = ", ".join(f"t.{quoted(column.name)}" for column in asked) or "NULL"
        sql = f"SELECT {listed} FROM {table.quoted} AS t"
        if question.parts > 1:
            sql += f" WHERE {part_condition(table, question.part, question.parts)}"
        yield from self._executed(sql, (), schema)

    def _executed(self, sql: str, parameters: Sequence[Any], schema: Schema) -> Iterator[list[Row]]:
        try:
            if self._closed or not self._link.open:
                raise self._lost("its connection has ended")
            with translated(self._source, f"query source {self._source} at a cut"):
                yield from execute(self._link, sql, parameters, schema, self._charsets, BATCH_ROWS)
        except SourceError as error:
            if self._gave_way_for:
                reason = f"its owner waits to change {self._gave_way_for}"
                raise cut_overtaken(self._source, reason) from error
            if error.code == "connection-lost":
                raise self._lost(error.detail) from error
            raise

    def _lost(self, detail: str) -> SourceError:
        return cut_lost(self._source, f"{detail}; the snapshot ended with the connection")

    def _table(self, relation: str) -> Table:
        invariant(relation in self._tables, f"the cut was not opened for {relation}")
        return self._tables[relation]

    def _column(self, table: Table, name: str) -> Column:
        column = table.column(name)
        if column is None or column.refused:
            there = f"its columns are {', '.join(table.schema.schema.names)}"
            reason = column.refused if column else there
            raise broken_query(
                self._source, f"table {table.relation} has no readable column {name}: {reason}"
            )
        return column

    @staticmethod
    def _at(table: Table, column: Column) -> int:
        return table.schema.schema.position(column.name)
