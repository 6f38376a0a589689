"""Damage on the disk under a project: one view stops by name, the others go on, a rebuild brings it back."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from viewkeeper.cli import execute
from viewkeeper.errors import WarehouseError
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = {
    "big": "SELECT id, amount FROM shop.orders WHERE amount > 3",
    "per_amount": "SELECT amount, COUNT(*) AS n FROM shop.orders GROUP BY amount",
    "places": "SELECT id, name FROM shop.places",
}


@pytest.fixture
def project(tmp_path: Path, running_spark) -> Path:
    write(tmp_path, "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
    write(tmp_path, "CREATE TABLE places (id INTEGER PRIMARY KEY, name TEXT)")
    write(tmp_path, *(f"INSERT INTO orders VALUES ({i}, {i % 7})" for i in range(40)))
    write(tmp_path, "INSERT INTO places VALUES (1, 'here')")
    (tmp_path / "viewkeeper.toml").write_text(
        f'[sources.shop]\nurl = "sqlite:///{tmp_path / "shop.db"}"\n[warehouse]\npath = "w"\n[spark]\nmaster = "local[2]"\n'
    )
    (tmp_path / "views").mkdir()
    for name, text in VIEWS.items():
        (tmp_path / "views" / f"{name}.sql").write_text(text)
    caught_up(tmp_path)
    return tmp_path


def write(folder: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as link, link:
        for statement in statements:
            link.execute(statement)


def caught_up(folder: Path) -> list[dict]:
    events: list[dict] = []
    with Keeper.open(folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up(lambda event: events.append(event.as_dict()))
    return events


def command(*words: str) -> tuple[int, dict]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = execute([*words, "--json"])
    return code, json.loads(out.getvalue())


def rows(folder: Path, view: str) -> list[tuple]:
    with Keeper.open(folder) as keeper:
        table = keeper.warehouse(with_spark=False).read_arrow(view)
    return sorted(tuple(row.values()) for row in table.to_pylist())


def largest_file(folder: Path, table: str) -> Path:
    found = (folder / "w" / "views" / table).rglob("*.parquet")
    return max((p for p in found if "_delta_log" not in p.parts), key=lambda p: p.stat().st_size)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("harm", ["lost file", "store"])
def test_one_view_stops_the_others_go_on_and_a_rebuild_mends(project: Path, harm: str) -> None:
    view, code = "per_amount", "file-damaged"
    if harm == "store":
        flip(largest_file(project, "per_amount@t0.groups"))
    else:
        largest_file(project, "per_amount").unlink()
    write(project, "INSERT INTO orders VALUES (100, 6)", "INSERT INTO places VALUES (2, 'there')")
    events: list[dict] = []
    with (
        Keeper.open(project) as keeper,
        pytest.raises(WarehouseError, match=f"rebuild {view}") as caught,
    ):
        keeper.run_until_caught_up(lambda event: events.append(event.as_dict()))
    assert caught.value.code == code
    (stopped,) = (event for event in events if event["event"] == "views_stopped")
    assert (stopped["views"], stopped["error"]["code"]) == ([view], code)
    assert rows(project, "places") == [(1, "here"), (2, "there")]
    assert (100, 6) in rows(project, "big")

    said, found = command("verify", "--project", str(project))
    assert said == 1
    assert {damage["view"] for damage in found["damages"]} == {view}
    _, status = command("status", "--project", str(project))
    assert status["views"][view]["damage"]["code"] == code
    assert any(f"viewkeeper rebuild {view}" in problem for problem in status["problems"])

    said, told = command("rebuild", view, "--project", str(project))
    assert (said, told["views"]) == (0, [view]), told
    assert rows(project, view)[-1] == (6, 6)
    write(project, "INSERT INTO orders VALUES (101, 6)")
    assert not [event for event in caught_up(project) if event["event"] == "views_stopped"]
    assert rows(project, view)[-1] == (6, 7)
    # What is left of the damage is in states before the rebuild, until retention lets them go.
    left = command("verify", view, "--project", str(project))[1]["damages"]
    assert all(damage["states"]["to"] < told["txn"] for damage in left)


def test_spark_and_query_never_show_a_flipped_bit(project: Path) -> None:
    right = command("query", "SELECT SUM(amount) AS s FROM big", "--project", str(project))
    assert right[0] == 0
    flip(largest_file(project, "big"))
    said, told = command("query", "SELECT SUM(amount) AS s FROM big", "--project", str(project))
    assert (said, told["error"]["code"]) == (1, "file-damaged"), told
    assert command("query", "SELECT * FROM places", "--project", str(project))[0] == 0


def test_an_older_copy_of_the_warehouse_is_told_by_query_and_status(project: Path) -> None:
    shutil.copytree(project / "w", project / "backup")
    write(project, "INSERT INTO places VALUES (2, 'there')")
    caught_up(project)
    assert command("query", "SELECT * FROM places", "--project", str(project))[0] == 0
    shutil.rmtree(project / "w")
    (project / "backup").rename(project / "w")
    said, told = command("query", "SELECT * FROM places", "--project", str(project))
    assert (said, told["error"]["code"]) == (1, "warehouse-older"), told
    _, status = command("status", "--project", str(project))
    assert status["warehouse_error"]["code"] == "warehouse-older"
    assert any("older copy" in problem for problem in status["problems"])
    # A run says so and goes on from there, or its source says that it can't.
    events: list[dict] = []
    with Keeper.open(project) as keeper, contextlib.suppress(Exception):
        keeper.run_until_caught_up(lambda event: events.append(event.as_dict()))
    warnings = [e["error"]["code"] for e in events if e["event"] == "warning" and "error" in e]
    assert warnings == ["warehouse-older"]
