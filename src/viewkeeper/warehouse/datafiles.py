"""Data files of view tables: written, measured and checked before any table names them.

delta-rs believes what an add action says, so all of that is measured here: schema, size, row
count, and the range of ``_txn`` by which readers leave files out.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.coding import is_coded, with_codes_kept
from viewkeeper.errors import InvariantViolated, WarehouseError, invariant
from viewkeeper.warehouse.checksums import checked, checked_name
from viewkeeper.warehouse.columns import COUNT, RESERVED, TXN, stored_arrow_schema
from viewkeeper.warehouse.entries import Tally
from viewkeeper.warehouse.storage import Storage, storage_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMPRESSION = "zstd"
# The number of rows whose values are counted to find out whether they repeat.
CODING_SAMPLE_ROWS = 10_000
# A dictionary that gets larger than this is given up, and the values are written out.
DICTIONARY_BYTES_MAX = 8 * 2**20


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a view table, by its path inside the table's folder."""

    path: str
    size: int
    rows: int
    min_txn: int
    max_txn: int

    @property
    def statistics(self) -> str:
        """As an add action wants it."""
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {TXN: self.min_txn},
                "maxValues": {TXN: self.max_txn},
            }
        )


@dataclass(frozen=True)
class Written:
    """Files that lie in a table's folder and that no table names yet."""

    files: tuple[DataFile, ...]
    tally: Tally

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def stored_form(view: str, rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows with exactly the stored columns and types, canonical values, no zero counts.

    Columns that are coded stay so.
    """
    wanted = stored_arrow_schema(schema)
    if sorted(rows.column_names) != sorted(wanted.names):
        raise InvariantViolated(
            f"the rows for view {view} have the wrong columns",
            detail=f"expected {', '.join(wanted.names)}; found {', '.join(rows.column_names)}",
        )
    try:
        table = rows.select(wanted.names)
        table = table.cast(with_codes_kept(wanted, table))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvariantViolated(
            f"the rows for view {view} have the wrong types", detail=str(error)
        ) from error
    for name in RESERVED:
        invariant(not table[name].null_count, f"a row for view {view} has no {name}")
    for position, field in enumerate(schema):
        if field.type.kind is Kind.DOUBLE:
            table = table.set_column(position, field.name, _canonical_doubles(table[field.name]))
    is_change = pc.not_equal(table[COUNT], 0)
    # Nearly always all of them are, and copying them all would cost more than looking.
    return table if pc.all(is_change, min_count=0).as_py() else table.filter(is_change)


def _canonical_doubles(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """One NaN and no −0.0: Arrow would group other spellings of them apart."""
    nan = pa.scalar(float("nan"), pa.float64())
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, 0.0))


def numbered(rows: pa.Table, txn: int) -> pa.Table:
    """The rows with ``txn`` in ``_txn``, all of them."""
    return rows.append_column(TXN, pa.array(np.full(rows.num_rows, txn, np.int64)))


def tally_of(counts: pa.ChunkedArray) -> Tally:
    """How much comes in and goes out, from the column of counts."""
    inserted = pc.sum(pc.max_element_wise(counts, 0)).as_py() or 0
    net = pc.sum(counts).as_py() or 0
    return Tally(rows=len(counts), inserted=inserted, deleted=inserted - net)


def write_arrow(storage: Storage, folder: str, table: pa.Table, purpose: str) -> Written:
    """Write rows in stored form as one file of the table in ``folder``. No Spark takes part."""
    if not table.num_rows:
        return Written((), Tally())
    # A file has one dictionary for a column; and no reader shall find in it that the column was coded.
    table = table.unify_dictionaries()
    content = encoded(
        table,
        compression=COMPRESSION,
        use_dictionary=_worth_coding(table),
        dictionary_pagesize_limit=DICTIONARY_BYTES_MAX,
        store_schema=False,
    )
    name = checked_name(purpose, content)
    storage.write_new(content, folder, name)
    bounds = pc.min_max(table[TXN]).as_py()
    file = DataFile(name, len(content), table.num_rows, bounds["min"], bounds["max"])
    return Written((file,), tally_of(table[COUNT]))


def encoded(table: pa.Table, **options: Any) -> pa.Buffer:
    """Rows as the bytes of a Parquet file, here in memory: its checksum is taken before a disk has it."""
    sink = pa.BufferOutputStream()
    with storage_errors("encode rows as Parquet"):
        pq.write_table(table, sink, write_page_checksum=True, **options)
    return sink.getvalue()


def _worth_coding(table: pa.Table) -> list[str]:
    """The columns whose values repeat: a dictionary of the others is built for nothing."""
    sample = table.slice(0, CODING_SAMPLE_ROWS)
    return [
        name
        for name in table.column_names
        if is_coded(table[name]) or pc.count_distinct(sample[name]).as_py() <= sample.num_rows // 2
    ]


def write_spark(
    storage: Storage, folder: str, frame: DataFrame, schema: Schema, purpose: str
) -> Written:
    """Let Spark write rows in stored form into the table's folder; then measure what it wrote."""
    name = f"{purpose}-{uuid.uuid4().hex}"
    writer = frame.write.option("compression", COMPRESSION)
    # Spark's own marker files mean nothing here: the ledger says what is complete.
    writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    try:
        writer.parquet(storage.spark_uri(folder, name))
        return _measured(storage, folder, name, schema)
    except Exception as error:
        storage.remove_tree(folder, name)
        if isinstance(error, WarehouseError):
            raise
        raise spark_error(f"write {storage.uri(folder, name)}", error) from error


def spark_error(action: str, error: Exception) -> WarehouseError:
    """What Spark raised, as ours; the operating system's words are somewhere in its long text."""
    text = str(error)
    if "No space left" in text:
        with storage_errors(action):
            raise OSError(28, "No space left on device")
    first = text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
    return WarehouseError("spark-failed", f"could not {action}", detail=first)


def _measured(storage: Storage, folder: str, name: str, schema: Schema) -> Written:
    """The non-empty Parquet files that Spark left, read back: Spark's word is not taken for it."""
    files: list[DataFile] = []
    tally = Tally()
    found = [i for i in storage.list_files(folder, name) if i.path.endswith(".parquet")]
    for info in found:
        with storage_errors(f"read {info.path}"):
            footer = pq.ParquetFile(info.path, filesystem=storage.filesystem)
            check_file_schema(info.path, footer.schema_arrow, schema)
            signed = footer.read(columns=[COUNT, TXN])
        if not signed.num_rows:
            storage.remove_file(info.path)
            continue
        name_now = checked(storage, info.path)
        invariant(not signed[TXN].null_count, "Spark wrote a row without a transaction number")
        bounds = pc.min_max(signed[TXN]).as_py()
        path = f"{name}/{name_now}"
        files.append(DataFile(path, info.size, signed.num_rows, bounds["min"], bounds["max"]))
        part = tally_of(signed[COUNT])
        tally = Tally(
            tally.rows + part.rows,
            tally.inserted + part.inserted,
            tally.deleted + part.deleted,
        )
    if files:
        storage.sync(storage.path(folder, name), *(storage.path(folder, f.path) for f in files))
    return Written(tuple(files), tally)


def check_file_schema(path: str, found: pa.Schema, schema: Schema) -> None:
    """Refuse a file that does not hold exactly the view's columns and ours."""
    wanted = stored_arrow_schema(schema)
    if [(f.name, f.type) for f in found] != [(f.name, f.type) for f in wanted]:
        raise WarehouseError(
            "wrong-file-schema",
            f"{path} does not hold the columns that it should",
            detail=f"expected {_spelled(wanted)}; found {_spelled(found)}",
        )


def _spelled(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
