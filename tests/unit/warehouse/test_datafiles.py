from __future__ import annotations

import math
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unit.warehouse.every_type import EVERY_TYPE
from viewkeeper.algebra.types import DOUBLE, STRING, Schema
from viewkeeper.coding import together
from viewkeeper.errors import InvariantViolated, WarehouseError
from viewkeeper.warehouse.columns import schema_from_json, schema_to_json, stored_arrow_schema
from viewkeeper.warehouse.datafiles import (
    DataFile,
    check_file_schema,
    stored_form,
    tally_of,
    write_arrow,
)
from viewkeeper.warehouse.entries import Tally
from viewkeeper.warehouse.reading import ReadPlan, extent, repeated, summed
from viewkeeper.warehouse.storage import Storage

SCHEMA = Schema.of(x=DOUBLE, name=STRING)


def rows(*values: tuple[float | None, str, int, int]) -> pa.Table:
    columns = [list(column) for column in zip(*values, strict=True)]
    schema = stored_arrow_schema(SCHEMA)
    arrays = [pa.array(c, f.type) for f, c in zip(schema, columns, strict=True)]
    return pa.table(arrays, schema=schema)


def test_all_spellings_of_nan_and_zero_become_one() -> None:
    other_nan = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]
    given = rows((math.nan, "n", 1, 1), (other_nan, "n", 1, 2), (-0.0, "z", 1, 1), (0.0, "z", 1, 2))
    total = summed(stored_form("v", given, SCHEMA), SCHEMA).sort_by("name").to_pylist()
    assert [(row["name"], row["_count"]) for row in total] == [("n", 2), ("z", 2)]
    assert math.isnan(total[0]["x"])
    assert math.copysign(1, total[1]["x"]) == 1


def test_columns_are_taken_by_name_and_zero_counts_vanish() -> None:
    given = rows((1.0, "a", 0, 1), (2.0, "b", -2, 1)).select(["_txn", "name", "_count", "x"])
    stored = stored_form("v", given, SCHEMA)
    assert stored.schema == stored_arrow_schema(SCHEMA)
    assert stored["name"].to_pylist() == ["b"]


def test_a_type_that_loses_something_is_refused() -> None:
    given = rows((1.0, "a", 1, 1)).set_column(2, "_count", pa.array([1.5]))
    with pytest.raises(InvariantViolated, match="wrong types"):
        stored_form("v", given, SCHEMA)


def test_rows_in_and_out_are_counted_apart() -> None:
    assert tally_of(pa.chunked_array([[3, -2], [1, -1]])) == Tally(rows=4, inserted=4, deleted=3)


def test_a_written_file_is_measured_and_read_back(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    storage.make_folder("views/v")
    table = rows((1.0, "a", 2, 7), (1.0, "a", 1, 9), (None, "b", -1, 8))
    written = write_arrow(storage, "views/v", table, "changes")
    (file,) = written.files
    assert (file.rows, file.min_txn, file.max_txn) == (3, 7, 9)
    assert file.size == (tmp_path / "views" / "v" / file.path).stat().st_size
    plan = ReadPlan("v", SCHEMA, (), (file,), False, -1, 8)
    counted = extent(storage, plan)
    assert counted.to_pylist() == [{"x": 1.0, "name": "a", "_count": 2}]
    assert repeated(counted).num_rows == 2
    assert write_arrow(storage, "views/v", table.slice(0, 0), "changes").files == ()


def test_a_coded_column_is_written_as_any_other(tmp_path: Path) -> None:
    """Readers find the column's own type; pieces that were coded apart come together."""
    storage = Storage.at(tmp_path)
    storage.make_folder("views/v")
    words = [f"{'long ' * 9}{number}" for number in range(300)]
    pieces = [
        rows(*((float(n), words[(n * step) % 300], 1, n) for n in range(2_000)))
        for step in (7, 1, 300)
    ]
    plain = pa.concat_tables(pieces)
    coded = [piece.set_column(1, "name", piece["name"].dictionary_encode()) for piece in pieces[:2]]
    given = together([*coded, pieces[2]])
    stored = stored_form("v", given, SCHEMA)
    assert pa.types.is_dictionary(stored["name"].type)
    sizes = set()
    for table in (stored, plain):
        (file,) = write_arrow(storage, "views/v", table, "changes").files
        found = pq.read_table(tmp_path / "views" / "v" / file.path)
        assert found.schema.equals(stored_arrow_schema(SCHEMA))
        assert found.equals(plain)
        codings = pq.ParquetFile(tmp_path / "views" / "v" / file.path).metadata.row_group(0)
        assert "RLE_DICTIONARY" in codings.column(1).encodings
        sizes.add(file.size // 10_000)
    assert len(sizes) == 1


def test_a_file_with_other_columns_is_refused_when_it_is_read(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    storage.make_folder("views/v")
    path = tmp_path / "views" / "v" / "wrong.parquet"
    pq.write_table(pa.table({"x": ["text"]}), path)
    file = DataFile("wrong.parquet", path.stat().st_size, 1, 1, 1)
    plan = ReadPlan("v", SCHEMA, (file,), (), True, -1, 1)
    with pytest.raises(WarehouseError, match="wrong-file-schema"):
        extent(storage, plan)
    with pytest.raises(WarehouseError, match="wrong-file-schema"):
        check_file_schema("f", stored_arrow_schema(SCHEMA).remove(0), SCHEMA)


def test_a_schema_survives_the_ledger() -> None:
    assert schema_from_json(schema_to_json(EVERY_TYPE)) == EVERY_TYPE
