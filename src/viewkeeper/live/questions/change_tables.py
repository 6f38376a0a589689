"""Changed rows of many transactions as one table per relation, made once for all views of a group."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from viewkeeper.algebra.types import INTEGER, Field, Row, Schema
from viewkeeper.engine.integrator import Arrival
from viewkeeper.protocols.messages import TXN
from viewkeeper.sources.transaction_block import ChangedRows, Numbers, TransactionBlock
from viewkeeper.spark.arrow import COUNT, arrow_schema
from viewkeeper.views.definition import RelationName


def with_number(schema: Schema) -> Schema:
    """The columns of changed rows: the relation's, and the number of the transaction."""
    return Schema((*schema.fields, Field(TXN, INTEGER)))


class ChangeTables:
    """The changes of transactions that have arrived, by number. Thread-safe.

    Rows become columns when somebody asks for them, all that have come since the last time at once.
    """

    def __init__(self, schemas: Mapping[RelationName, Schema]) -> None:
        """``schemas``: of the feeds' rows, whole."""
        self._tables = {name: _Table(with_number(schema)) for name, schema in schemas.items()}
        self._lock = threading.Lock()

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """These have arrived, in the order of their numbers."""
        tables = self._tables
        with self._lock:
            for number, origin, transaction, _, _ in arrivals:
                if isinstance(origin, TransactionBlock):
                    for name, rows in transaction.changes:
                        tables[name].add_block(number, rows)
                else:
                    for name, (_, deleted, inserted) in transaction.changes:
                        tables[name].add(number, deleted, inserted)

    def forget(self, upto: int) -> None:
        """No job will ask for transactions up to this number any more."""
        with self._lock:
            for table in self._tables.values():
                table.forget(upto)

    def changes(
        self, name: RelationName, numbers: Sequence[int] | Numbers, columns: Sequence[str]
    ) -> pa.Table:
        """What transactions of these ascending numbers changed: columns, number, count."""
        with self._lock:
            rows = self._tables[name].rows(numbers)
        return rows.select([*columns, TXN, COUNT])


class _Table:
    def __init__(self, schema: Schema) -> None:
        self._schema = arrow_schema(schema)
        self._table = self._schema.empty_table()
        self._numbers = np.empty(0, np.int64)
        # What has arrived since, in order: columns, then rows.
        self._new_parts: list[pa.Table] = []
        self._new_rows: list[Row] = []
        self._new_numbers: list[int] = []
        self._new_counts: list[int] = []

    def add(self, number: int, deleted: Sequence[Row], inserted: Sequence[Row]) -> None:
        if deleted:
            self._new_rows += deleted
            self._new_numbers += [number] * len(deleted)
            self._new_counts += [-1] * len(deleted)
        if inserted:
            self._new_rows += inserted
            self._new_numbers += [number] * len(inserted)
            self._new_counts += [1] * len(inserted)

    def add_block(self, number: int, changed: ChangedRows) -> None:
        """``number``: of the first transaction of the block."""
        self._end_part()
        numbers = pa.array(changed.places + number)
        columns = [*changed.rows.columns, numbers, pa.array(changed.counts)]
        self._new_parts.append(pa.Table.from_arrays(columns, schema=self._schema))

    def rows(self, numbers: Sequence[int] | Numbers) -> pa.Table:
        self._take_in()
        first, last = numbers[0], numbers[-1]
        start = int(np.searchsorted(self._numbers, first, "left"))
        end = int(np.searchsorted(self._numbers, last, "right"))
        rows = self._table.slice(start, end - start)
        if last - first == len(numbers) - 1:
            return rows
        wanted = np.isin(self._numbers[start:end], np.asarray(numbers))
        return rows.filter(pa.array(wanted))

    def forget(self, upto: int) -> None:
        self._take_in()
        start = int(np.searchsorted(self._numbers, upto, "right"))
        # Taken out for good, not only sliced off: memory must not grow.
        self._table = self._table.slice(start).combine_chunks()
        self._numbers = self._numbers[start:].copy()

    def _end_part(self) -> None:
        """Make columns of the rows that have come."""
        if not self._new_rows:
            return
        columns = zip(*self._new_rows, strict=True)
        fields = list(self._schema)
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, fields[:-2], strict=True)
        ]
        arrays += [pa.array(self._new_numbers, pa.int64()), pa.array(self._new_counts, pa.int64())]
        self._new_parts.append(pa.Table.from_arrays(arrays, schema=self._schema))
        self._new_rows, self._new_numbers, self._new_counts = [], [], []

    def _take_in(self) -> None:
        self._end_part()
        if self._new_parts:
            numbers = [part.column(TXN).to_numpy() for part in self._new_parts]
            self._table = pa.concat_tables([self._table, *self._new_parts])
            self._numbers = np.concatenate([self._numbers, *numbers])
            self._new_parts = []
