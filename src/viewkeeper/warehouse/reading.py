"""Reading a view at a state: which files, and their sum without Spark.

A `ReadPlan` is data. What Arrow makes of it here, Spark makes of it in `dataframes`; tests hold the
two against each other and against a replay in plain Python.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.algebra.types import Schema
from viewkeeper.warehouse.checksums import damaged, opened, seal_of
from viewkeeper.warehouse.columns import COUNT, TXN, owner_of, stored_arrow_schema
from viewkeeper.warehouse.datafiles import DataFile, check_file_schema
from viewkeeper.warehouse.entries import ViewState
from viewkeeper.warehouse.file_lists import files_of
from viewkeeper.warehouse.states import Segment
from viewkeeper.warehouse.storage import Storage, storage_errors

VIEWS = "views"
# Rows at a time for a reader that reads much and keeps little.
PART_ROWS = 65_536


def view_folder(view: str) -> str:
    """Where a view's table lies in the warehouse."""
    return f"{VIEWS}/{view}"


@dataclass(frozen=True)
class ReadPlan:
    """The files whose rows numbered ``after`` < n ≤ ``upto`` are wanted, base and log apart."""

    view: str
    schema: Schema
    base: tuple[DataFile, ...]
    log: tuple[DataFile, ...]
    base_distinct: bool
    after: int
    upto: int

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.base + self.log

    @property
    def base_rows(self) -> int:
        return sum(file.rows for file in self.base)

    @property
    def log_rows(self) -> int:
        return sum(file.rows for file in self.log)

    def is_summed(self, *, distinct: bool) -> bool:
        """Whether the counts are final as they stand; ``distinct``: with each row in one place."""
        return not self.log and (self.base_distinct or not distinct)


BEFORE_ALL = -1


def extent_plan(storage: Storage, view: str, state: ViewState, txn: int) -> ReadPlan:
    """How to read the view's extent at ``txn`` from a state that serves it."""
    files = [file for file in _files(storage, view, state) if file.min_txn <= txn]
    base = tuple(file for file in files if file.max_txn <= state.base_txn)
    log = tuple(file for file in files if file.max_txn > state.base_txn)
    return ReadPlan(view, state.schema, base, log, state.base_distinct, BEFORE_ALL, txn)


def segment_plan(storage: Storage, view: str, segment: Segment) -> ReadPlan:
    """How to read one segment of the view's change feed."""
    files = _files(storage, view, segment.state)
    log = tuple(f for f in files if f.max_txn > segment.after and f.min_txn <= segment.upto)
    return ReadPlan(view, segment.state.schema, (), log, False, segment.after, segment.upto)


def _files(storage: Storage, view: str, state: ViewState) -> tuple[DataFile, ...]:
    files = files_of(storage, view_folder(view), state.version)
    check_seal(storage, view, state, files)
    return files


def check_seal(storage: Storage, view: str, state: ViewState, files: Sequence[DataFile]) -> None:
    """Raise unless these are the files that the ledger says; one of before has no seal."""
    where = storage.uri(view_folder(view))
    sealed_as(where, owner_of(view) or view, state.version, state.seal, files)


def sealed_as(where: str, whose: str, version: int, seal: str, files: Sequence[DataFile]) -> None:
    """Raise unless a version of a table names the files that were sealed."""
    found = seal_of(files)
    if seal and found != seal:
        raise damaged(
            where,
            whose,
            f"version {version} of the table names other files than the ledger: expected the seal "
            f"{seal}; found {found}",
        )


def stored_rows(storage: Storage, plan: ReadPlan) -> pa.Table:
    """The plan's rows as they are stored."""
    tables = [_file_rows(storage, plan, file) for file in plan.files]
    if not tables:
        return stored_arrow_schema(plan.schema).empty_table()
    return pa.concat_tables(tables)


def stored_parts(storage: Storage, plan: ReadPlan) -> Iterator[pa.Table]:
    """The same some rows at a time: a reader needs no more memory than for one part."""
    for file in plan.files:
        reader = _opened(storage, plan, file)
        with storage_errors(f"read {file.path} of {plan.view}"):
            for batch in reader.iter_batches(PART_ROWS):
                yield _wanted(plan, file, pa.Table.from_batches([batch]))


def _file_rows(storage: Storage, plan: ReadPlan, file: DataFile) -> pa.Table:
    reader = _opened(storage, plan, file)
    with storage_errors(f"read {file.path} of {plan.view}"):
        table = reader.read()
    return _wanted(plan, file, table)


def _opened(storage: Storage, plan: ReadPlan, file: DataFile) -> pq.ParquetFile:
    path = storage.path(view_folder(plan.view), file.path)
    reader = opened(storage, path, file.size, owner_of(plan.view) or plan.view)
    with storage_errors(f"read {path}"):
        check_file_schema(path, reader.schema_arrow, plan.schema)
    return reader


def _wanted(plan: ReadPlan, file: DataFile, rows: pa.Table) -> pa.Table:
    # Spark leaves its own words in a file's metadata; tables must agree to be put together.
    rows = rows.cast(stored_arrow_schema(plan.schema))
    if file.min_txn > plan.after and file.max_txn <= plan.upto:
        return rows
    wanted = pc.and_(pc.greater(rows[TXN], plan.after), pc.less_equal(rows[TXN], plan.upto))
    return rows.filter(wanted)


def rows_with(storage: Storage, plan: ReadPlan, column: str, values: Sequence[Any]) -> pa.Table:
    """The plan's rows that have one of the values in a column, as they are stored."""
    schema = stored_arrow_schema(plan.schema)
    wanted = pa.array(values, schema.field(column).type)
    parts = (
        part.filter(pc.is_in(part[column], value_set=wanted))
        for part in stored_parts(storage, plan)
    )
    return pa.concat_tables([schema.empty_table(), *parts])


def some_values(
    storage: Storage, plan: ReadPlan, column: str, number: int, randomness: random.Random
) -> list[Any]:
    """What some stored rows, taken by chance, have in a column; NULL is left out.

    Reads that column of the files that they lie in. A later row may take such a row out again.
    """
    ends = list(accumulate(file.rows for file in plan.files))
    total = ends[-1] if ends else 0
    chosen = np.array(sorted(randomness.sample(range(total), min(number, total))), dtype=np.int64)
    found: dict[Any, None] = {}
    for file, end in zip(plan.files, ends, strict=True):
        begin = end - file.rows
        here = chosen[(chosen >= begin) & (chosen < end)] - begin
        if len(here):
            reader = _opened(storage, plan, file)
            with storage_errors(f"read {file.path} of {plan.view}"):
                values = reader.read(columns=[column]).column(0)
            found |= dict.fromkeys(values.take(pa.array(here)).drop_null().to_pylist())
    return list(found)


def summed(rows: pa.Table, schema: Schema) -> pa.Table:
    """One row per distinct row, with the sum of its counts; sums of zero vanish here."""
    names = list(schema.names)
    # Columns are grouped under their positions: Arrow takes a dot in a name for a path.
    plain = rows.select([*names, COUNT]).rename_columns([*map(str, range(len(names))), COUNT])
    grouped = plain.group_by([str(n) for n in range(len(names))]).aggregate([(COUNT, "sum")])
    grouped = grouped.rename_columns([*names, COUNT])
    return grouped.filter(pc.not_equal(grouped[COUNT], 0))


def extent(storage: Storage, plan: ReadPlan, *, distinct: bool = True) -> pa.Table:
    """The view's rows with their positive counts in ``_count``.

    One per distinct row, unless the caller repeats them by their counts anyway.
    """
    rows = stored_rows(storage, plan)
    is_summed = plan.is_summed(distinct=distinct)
    total = rows.drop_columns([TXN]) if is_summed else summed(rows, plan.schema)
    return total.filter(pc.greater(total[COUNT], 0))


def repeated(counted: pa.Table) -> pa.Table:
    """Rows as often as their counts say, without the counts."""
    counts = counted[COUNT].to_numpy()
    plain = counted.drop_columns([COUNT])
    if (counts == 1).all():
        return plain
    return plain.take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def feed(storage: Storage, schema: Schema, plans: Sequence[ReadPlan]) -> pa.Table:
    """The change rows of several segments, in order of their transactions."""
    tables = [stored_rows(storage, plan) for plan in plans]
    if not tables:
        return stored_arrow_schema(schema).empty_table()
    return pa.concat_tables(tables).sort_by(TXN)
