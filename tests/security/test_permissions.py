"""What Viewkeeper writes is its user's alone, whatever the umask; or its group's to read, if the project says so."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from viewkeeper.live.json_files import write_json
from viewkeeper.warehouse import Warehouse

GROUP, OTHERS = stat.S_IRWXG, stat.S_IRWXO
PROJECT = """
[sources.shop]
url = "sqlite:///shop.db"
[spark]
master = "local[1]"
[warehouse]
group_readable = {group}
"""


@pytest.fixture
def wide_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def project_in(folder: Path, group: str) -> Path:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.execute("CREATE TABLE orders (id integer PRIMARY KEY, amount integer)")
        database.execute("INSERT INTO orders VALUES (1, 5)")
        database.commit()
    (folder / "viewkeeper.toml").write_text(PROJECT.format(group=group))
    (folder / "views").mkdir()
    (folder / "views" / "sales.sql").write_text("SELECT o.id, o.amount FROM shop.orders o")
    return folder


def run(folder: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "viewkeeper", *words, "--json", "--project", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        umask=0,
        timeout=1200,
    )


def modes_below(*folders: Path) -> dict[str, int]:
    found = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {str(path): path.lstat().st_mode & 0o777 for path in found}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("group", ["false", "true"])
def test_a_run_leaves_nothing_that_others_can_read(tmp_path, group):
    folder = project_in(tmp_path, group)
    run(folder, "run", "--until-caught-up", "--allow-setup", "--log", str(folder / "run.log"))
    run(folder, "vacuum")
    warehouse = modes_below(folder / "warehouse")
    private = modes_below(folder / ".viewkeeper", folder / "run.log")
    assert any(name.endswith(".parquet") for name in warehouse), "tables were written"
    assert any(name.endswith("run.json") for name in private)
    for name, mode in (warehouse | private).items():
        assert not mode & OTHERS, (name, oct(mode))
    if group == "true":
        for name, mode in warehouse.items():
            assert mode & stat.S_IRGRP, (name, oct(mode))
            assert not mode & stat.S_IWGRP, (name, oct(mode))
    else:
        for name, mode in warehouse.items():
            assert not mode & GROUP, (name, oct(mode))
    for name, mode in private.items():
        if ".viewkeeper" in name:
            assert not mode & GROUP, (name, oct(mode))


def test_a_warehouse_made_in_another_program_is_closed_too(tmp_path, wide_umask):
    Warehouse.create(tmp_path / "warehouse")
    assert (tmp_path / "warehouse").stat().st_mode & 0o777 == 0o700


def test_state_files_are_closed_too(tmp_path, wide_umask):
    write_json(tmp_path / ".viewkeeper" / "requests" / "1.json", {"a": 1})
    for name, mode in modes_below(tmp_path / ".viewkeeper").items():
        assert not mode & (GROUP | OTHERS), (name, oct(mode))
