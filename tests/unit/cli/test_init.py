"""``viewkeeper init``: all of a project that works, or nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from viewkeeper.cli import execute
from viewkeeper.demo import example_project
from viewkeeper.project.config import read_project


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_it_writes_a_project_whose_sources_are_ready(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert execute(["init", "example", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = [name for name in everything_in(tmp_path / "example") if name != "views"]
    assert told["files"] == found
    assert list(read_project(tmp_path / "example").sources) == ["shop", "crm"]
    # From another folder: the files of the sources are found all the same.
    monkeypatch.chdir("/")
    assert execute(["check", "--project", str(tmp_path / "example")]) == 0
    assert "Every source can be read exactly." in capsys.readouterr().out


def test_its_readme_names_the_next_commands_in_five_lines(tmp_path):
    assert execute(["init", str(tmp_path / "new")]) == 0
    lines = (tmp_path / "new" / "README.md").read_text().splitlines()
    assert len(lines) == 5
    for command in ("check", "run --until-caught-up", "query", "audit"):
        assert any(f"viewkeeper {command}" in line for line in lines)


def test_a_project_is_never_written_over_another(tmp_path, capsys):
    (tmp_path / "viewkeeper.toml").write_text("# mine\n")
    assert execute(["init", str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "project-exists"
    assert everything_in(tmp_path) == ["viewkeeper.toml"]


def test_no_file_is_replaced_in_a_folder_that_has_others(tmp_path, capsys):
    (tmp_path / "shop.db").write_text("mine")
    assert execute(["init", str(tmp_path), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["detail"]) == ("files-exist", "shop.db")
    assert everything_in(tmp_path) == ["shop.db"]


def test_a_folder_with_other_files_keeps_them(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert execute(["init", str(tmp_path)]) == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "viewkeeper.toml").exists()


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_is_left_of_a_project_that_could_not_be_made(
    tmp_path, monkeypatch, capsys, is_there
):
    folder = tmp_path / "new"
    if is_there:
        folder.mkdir()
    moves = []
    rename = Path.rename

    def failing_rename(path, target):
        moves.append(target)
        if len(moves) == 4:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing_rename)
    assert execute(["init", str(folder)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert everything_in(tmp_path) == (["new"] if is_there else [])


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert execute(["init", str(tmp_path / "file")]) == 2
    assert "[not-a-folder]" in capsys.readouterr().err


def test_the_databases_hold_what_the_views_join(tmp_path):
    example_project.write_example(tmp_path / "new")
    with sqlite3.connect(tmp_path / "new" / "shop.db") as shop:
        (customers,) = shop.execute("SELECT count(DISTINCT customer_id) FROM orders").fetchone()
    with sqlite3.connect(tmp_path / "new" / "crm.db") as crm:
        assert crm.execute("SELECT count(*) FROM customers").fetchone() == (customers,)
