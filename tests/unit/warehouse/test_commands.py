"""``viewkeeper history`` and ``vacuum``; ``query`` needs Spark and is tested with it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.cli import warehouse as commands
from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.warehouse import Changes, Definition, EpochCommit, Extent, Warehouse, consolidate

SCHEMA = Schema.of(id=INTEGER)


def run(project: Path, *words: str) -> str:
    app = typer.Typer()
    commands.register(app)
    result = CliRunner().invoke(app, [*words, "--project", str(project)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "viewkeeper.toml").write_text(
        '[warehouse]\npath = "w"\nkeep_transactions = 1\nkeep_days = 0\n'
    )
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        whole = Extent(pa.table({"id": [1], "_count": [1]}))
        writer.commit(EpochCommit(1, 0, {"v": whole}, definitions={"v": Definition(SCHEMA, "SQL")}))
        for first in (1, 4):
            rows = pa.table({"id": [1, 2], "_count": [-1, 3], "_txn": [first, first + 2]})
            writer.commit(EpochCommit(first, first + 2, {"v": Changes(rows)}, {"shop": "0/1A"}))
        consolidate(writer, fold_all=True)
    return tmp_path


def test_history_lists_epochs_newest_first(project: Path) -> None:
    lines = [line for line in run(project, "history").splitlines() if "│" in line]
    newest, middle, oldest = ([cell.strip() for cell in line.split("│")[1:-1]] for line in lines)
    assert (newest[0], newest[1], newest[3], newest[4]) == ("3", "4–6", "v +3 −1", "shop 0/1A")
    assert middle[1] == "1–3"
    assert (oldest[1], oldest[3]) == ("none (at 0)", "v +1 −0")


def test_history_as_json_says_where_another_engine_finds_each_state(project: Path) -> None:
    (epoch,) = json.loads(run(project, "history", "--limit", "1", "--json"))["epochs"]
    assert (epoch["epoch"], epoch["first_txn"], epoch["last_txn"]) == (3, 4, 6)
    assert epoch["positions"] == {"shop": "0/1A"}
    assert epoch["rows"] == {"v": {"rows": 2, "inserted": 3, "deleted": 1}}
    assert epoch["views"]["v"]["definition"]["schema"] == [["id", "bigint"]]
    assert isinstance(epoch["views"]["v"]["version"], int)
    every = json.loads(run(project, "history", "--all", "--json"))["epochs"]
    assert [entry["kind"] for entry in every] == [
        "consolidation", "epoch", "epoch", "epoch", "lease", "create",
    ]  # fmt: skip


def test_vacuum_keeps_what_the_project_asks_for(project: Path) -> None:
    assert json.loads(run(project, "vacuum", "--json"))["oldest_txn"] == 5
    assert "the oldest state is 5" in run(project, "vacuum")


def test_vacuum_is_refused_while_a_writer_runs(project: Path) -> None:
    with (
        Warehouse.open(project / "w").writer(),
        pytest.raises(WarehouseError, match="warehouse-held"),
    ):
        run(project, "vacuum")


@pytest.mark.parametrize(
    "sql", ["DROP TABLE v", "SELECT 1; SELECT 2", "", "INSERT INTO v VALUES (1)"]
)
def test_query_takes_one_select_and_tells_so_before_spark_starts(project: Path, sql: str) -> None:
    with pytest.raises(UsageError, match="not-a-query"):
        run(project, "query", sql)


def test_query_tells_of_a_missing_project_or_warehouse_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-project"):
        run(tmp_path, "query", "SELECT 1")
    (tmp_path / "viewkeeper.toml").write_text("")
    with pytest.raises(UsageError, match="no-warehouse"):
        run(tmp_path, "query", "SELECT 1")
