"""Spark reads what Arrow wrote and the other way round, and both equal plain Python."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from epoch_workload import SCHEMAS, Replay, counted, empty_epoch, epoch, key
from typer.testing import CliRunner

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    decimal_type,
)
from viewkeeper.cli import warehouse as commands
from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.warehouse import (
    Amortisation,
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Warehouse,
    consolidate,
    consolidation,
    dataframes,
    publish,
    publishing,
)
from viewkeeper.warehouse.checksums import checksum_in
from viewkeeper.warehouse.columns import stored_arrow_schema, stored_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SPARK_FLIPS = 200

TYPES = Schema(
    (
        Field("an.integer", INTEGER),
        Field("größe", DOUBLE),
        Field("select", decimal_type(38, 10)),
        Field("back`tick", STRING),
        Field("b", BOOLEAN),
        Field("bytes", BINARY),
        Field("day", DATE),
        Field("instant", TIMESTAMP),
        Field("local", LOCAL_TIMESTAMP),
    )
)
ROWS = [
    (None,) * 9,
    (
        -(2**63), math.nan, decimal.Decimal("1234567890123456789012345678.0123456789"), "", True,
        b"\x00\xff", dt.date(1, 1, 1), dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(1, 1, 1),
    ),
    (
        2**63 - 1, -0.0, decimal.Decimal("-0.5"), "naïve 'quoted' \\ text\n", False, b"",
        dt.date(9999, 12, 31), dt.datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 3, 31, 2, 30, 0, 999999),
    ),
    (0, math.inf, decimal.Decimal("0"), "🙂", None, b"x" * 100, None, None,
     dt.datetime(1582, 10, 10)),
]  # fmt: skip


def arrow_rows(rows: list[tuple[object, ...]], counts: list[int], txn: int) -> pa.Table:
    schema = stored_arrow_schema(TYPES)
    columns = [list(column) for column in zip(*rows, strict=True)]
    columns += [counts, [txn] * len(rows)]
    return pa.table(
        {f.name: pa.array(c, f.type) for f, c in zip(schema, columns, strict=True)}, schema=schema
    )


def bag_of(frame: DataFrame) -> Bag:
    """A DataFrame with ``_count`` as a bag of canonical rows."""
    rows = [(row[:-1], row[-1]) for row in zip(*_columns(frame.toArrow()), strict=True)]
    return Bag.signed(TYPES, rows)


def _columns(table: pa.Table) -> list[list[object]]:
    return [column.to_pylist() for column in table.columns]


@pytest.mark.parametrize("written_by", ["arrow", "spark"])
def test_every_type_survives_every_way_through_the_warehouse(
    tmp_path: Path, spark: SparkSession, written_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    plus, minus = arrow_rows(ROWS, [1, 2, 1, 3], 1), arrow_rows(ROWS[2:], [-1, -1], 2)

    def given(table: pa.Table) -> object:
        if written_by == "arrow":
            return table
        # Without a schema Spark takes a timestamp without a zone for one with.
        ddl = ", ".join(stored_ddl(TYPES).split(", ")[: table.num_columns])
        return spark.createDataFrame(table, ddl)

    full = Bag.signed(TYPES, zip(ROWS, [1, 2, 1, 3], strict=True))
    less = Bag.signed(TYPES, zip(ROWS, [1, 2, 0, 2], strict=True))
    if written_by == "spark":
        monkeypatch.setattr(consolidation, "ARROW_ROWS_MAX", 0)
    with warehouse.writer() as writer:
        extent = Extent(given(plus.drop_columns(["_txn"])))
        writer.commit(EpochCommit(1, 1, {"v": extent}, definitions={"v": Definition(TYPES)}))
        writer.commit(EpochCommit(2, 2, {"v": Changes(given(minus))}))
        for _ in range(2):  # the log as committed, then folded
            assert bag_of(warehouse.read("v", 1, with_count=True)) == full
            assert bag_of(warehouse.read("v", with_count=True)) == less
            for as_of, bag in ((1, full), (2, less)):
                found = _columns(warehouse.read_arrow("v", as_of, with_count=True))
                rows = [(row[:-1], row[-1]) for row in zip(*found, strict=True)]
                assert Bag.signed(TYPES, rows) == bag
            plain = warehouse.read("v")
            assert plain.columns == list(TYPES.names)
            assert Bag.of(TYPES, zip(*_columns(plain.toArrow()), strict=True)) == less
            consolidate(writer, fold_all=True)
        assert writer.latest.views["v"].base_txn == 2


def test_states_read_by_spark_equal_the_replay_whatever_the_plan(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    with warehouse.writer() as writer:
        writer.commit(empty_epoch())
        writer.commit(epoch(1, 90))
        consolidate(writer, fold_all=True)
        writer.commit(epoch(91, 99))
        consolidate(writer, Amortisation(merge_files=2))
        writer.commit(epoch(100, 100))
    replay = Replay()
    # Of the version before the fold; summed as a whole; the base patched with a short log.
    for as_of, broadcast_rows_max in ((40, 0), (95, 0), (100, dataframes.BROADCAST_ROWS_MAX)):
        monkeypatch.setattr(dataframes, "BROADCAST_ROWS_MAX", broadcast_rows_max)
        expected = replay.at(as_of)
        for view, frame in warehouse.read_many(SCHEMAS, as_of, with_count=True).items():
            assert counted(frame.toArrow()) == expected[view], (view, as_of)
    plain = warehouse.read("marks", 95).toArrow()
    rows = zip(*(column.to_pylist() for column in plain.columns), strict=True)
    assert Counter(map(key, rows)) == replay.at(95)["marks"]


def test_the_change_feed_of_spark_is_that_of_arrow_across_folds(
    tmp_path: Path, spark: SparkSession
) -> None:
    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    with warehouse.writer() as writer:
        writer.commit(empty_epoch())
        for first in range(1, 61, 20):
            writer.commit(epoch(first, first + 19))
            consolidate(writer, fold_all=True)
    by_spark = warehouse.changes("orders", 15, 50).toArrow()
    by_arrow = warehouse.changes_arrow("orders", 15, 50)
    columns = ["id", "note", "_txn", "_count"]
    assert counted(by_spark.select(columns)) == counted(by_arrow.select(columns))
    assert by_arrow["_txn"].to_pylist()[0] == 16
    assert by_arrow["_txn"].to_pylist()[-1] == 50
    assert warehouse.changes("orders", 50, 50).count() == 0


def test_spark_publishes_what_arrow_publishes(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars

    monkeypatch.setattr(publishing, "ARROW_ROWS_MAX", 0)
    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    with warehouse.writer() as writer:
        writer.commit(empty_epoch())
        writer.commit(epoch(1, 30))
        assert publish(writer) == ("totals",)
    found = polars.read_delta(str(tmp_path / "w" / "published" / "totals"))
    assert Counter(map(key, found.iter_rows())) == Replay().at(30)["totals"]


def test_a_dataframe_with_other_columns_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    from viewkeeper.errors import InvariantViolated

    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    wrong = spark.createDataFrame(
        [(1, "x", 1, 1)], "id int, note string, _count bigint, _txn bigint"
    )
    with warehouse.writer() as writer:
        writer.commit(empty_epoch())
        with pytest.raises(InvariantViolated, match="wrong columns"):
            writer.commit(EpochCommit(1, 1, {"orders": Changes(wrong)}))
        assert writer.commit(epoch(1, 1)).last_txn == 1


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Path:
    (tmp_path / "viewkeeper.toml").write_text('[warehouse]\npath = "w"\n')
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        writer.commit(empty_epoch())
        writer.commit(epoch(1, 20))
        writer.commit(epoch(21, 40))
    return tmp_path


def run(project: Path, *words: str) -> str:
    app = typer.Typer()
    commands.register(app)
    result = CliRunner().invoke(app, [*words, "--project", str(project)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_query_asks_all_views_at_one_state(project: Path) -> None:
    sql = "SELECT count(*) AS n, max(id) AS newest FROM orders JOIN totals ON id % 12 = bucket"
    answer = json.loads(run(project, "query", sql, "--as-of", "25", "--json"))
    orders, totals = Replay().at(25)["orders"], Replay().at(25)["totals"]
    assert answer == {
        "as_of": 25,
        "states": {"orders": 25, "totals": 25},
        "columns": [{"name": "n", "type": "bigint"}, {"name": "newest", "type": "bigint"}],
        "rows": [[sum(1 for o in orders for t in totals if o[0] % 12 == t[0]), 25]],
        "truncated": False,
    }
    text = run(project, "query", "SELECT id FROM orders ORDER BY id", "--limit", "2")
    assert "2 rows (more: --limit) at state 40" in text


def test_query_writes_values_that_json_has_no_word_for_as_text(project: Path) -> None:
    sql = "SELECT DISTINCT mark FROM marks ORDER BY mark"
    rows = json.loads(run(project, "query", sql, "--json"))["rows"]
    assert [row[0] for row in rows] == [None, 0.0, 0.5, 2.5, "NaN"]


def test_query_tells_what_is_wrong_with_a_query(project: Path) -> None:
    with pytest.raises(UsageError, match="spark-query-failed"):
        run(project, "query", "SELECT nothing FROM orders")
    with pytest.raises(UsageError, match="there is no state 41 yet"):
        run(project, "query", "SELECT 1", "--as-of", "41")


def test_spark_verifies_every_page_and_the_driver_the_rest(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bit of a page's data, with nothing but Spark's own reader to find it; then a bit of the footer."""
    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    schema = Schema.of(id=INTEGER)
    rows = pa.table({"id": list(range(5_000)), "_count": [1] * 5_000})
    with warehouse.writer() as writer:
        views = {"arrow": Extent(rows), "by_spark": Extent(spark.createDataFrame(rows.to_pandas()))}
        definitions = dict.fromkeys(views, Definition(schema))
        writer.commit(EpochCommit(1, 0, views, definitions=definitions))
    for view in views:
        (file, *_) = warehouse.snapshot()._plan(view).files
        assert checksum_in(file.path), "Spark's files get a checksum, too"
        path = tmp_path / "w" / "views" / view / file.path
        good = path.read_bytes()
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        start = column.dictionary_page_offset or column.data_page_offset
        for place, trusting in ((start + column.total_compressed_size - 2, True), (-20, False)):
            content = bytearray(good)
            content[place] ^= 8
            path.write_bytes(content)
            with monkeypatch.context() as patch:
                if trusting:
                    patch.setattr(dataframes.verified, "check", lambda *arguments: None)
                with pytest.raises(Exception, match=r"(?i)checksum|crc"):
                    warehouse.read(view).collect()
            path.write_bytes(good)
        assert warehouse.read(view).count() == 5_000


def test_random_bits_are_never_read_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = Warehouse.create(tmp_path / "w", spark=spark)
    rows = pa.table({"id": list(range(300)), "_count": [1] * 300})
    with warehouse.writer() as writer:
        views = {"v": Extent(spark.createDataFrame(rows.to_pandas()))}
        writer.commit(
            EpochCommit(1, 0, views, definitions={"v": Definition(Schema.of(id=INTEGER))})
        )
        change = pa.table({"id": [1_000], "_count": [1], "_txn": [1]})
        writer.commit(EpochCommit(1, 1, {"v": Changes(change)}))
    rng = random.Random(5)
    for _ in range(SPARK_FLIPS):
        file = rng.choice(warehouse.snapshot()._plan("v").files)
        path = tmp_path / "w" / "views" / "v" / file.path
        good = path.read_bytes()
        content = bytearray(good)
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        with pytest.raises(WarehouseError, match="file-damaged"):
            warehouse.read("v").collect()
        path.write_bytes(good)
    assert warehouse.read("v").count() == 301
