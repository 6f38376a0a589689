"""``viewkeeper teardown``: what was set up at a source goes, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from viewkeeper.cli import execute
from viewkeeper.warehouse import Warehouse


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    assert execute(["init", str(tmp_path / "shop")]) == 0
    assert execute(["check", "--allow-setup", "--project", str(tmp_path / "shop")]) == 0
    return tmp_path / "shop"


def ours(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE name GLOB '_view*'")
        return [name for (name,) in names]
    finally:
        connection.close()


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_one_source_is_left_and_the_other_is_not(shop, capsys):
    assert ours(shop / "shop.db")
    assert ours(shop / "crm.db")
    assert execute(["teardown", "shop", "--project", str(shop), "--json"]) == 0
    assert told(capsys) == {"ok": True, "sources": ["shop"]}
    assert not ours(shop / "shop.db")
    assert ours(shop / "crm.db")


def test_all_sources_are_left_and_once_more_does_no_harm(shop, capsys):
    for _ in range(2):
        assert execute(["teardown", "--all", "--project", str(shop)]) == 0
        said = capsys.readouterr().out
        assert "Nothing of ours is left at source shop" in said
        assert "Nothing of ours is left at source crm" in said
    assert not ours(shop / "shop.db")
    assert not ours(shop / "crm.db")


@pytest.mark.parametrize("words", [(), ("shop", "--all")])
def test_what_is_meant_must_be_said(shop, capsys, words):
    assert execute(["teardown", *words, "--project", str(shop), "--json"]) == 2
    assert told(capsys)["error"]["code"] == "teardown-what"


def test_an_unknown_source_is_refused_before_any_is_touched(shop, capsys):
    assert execute(["teardown", "shop", "nowhere", "--project", str(shop), "--json"]) == 2
    assert told(capsys)["error"]["code"] == "unknown-source"
    assert ours(shop / "shop.db")


def test_beside_a_run_it_is_refused(shop, capsys):
    with Warehouse.create(shop / "warehouse").writer():
        assert execute(["teardown", "--all", "--project", str(shop), "--json"]) != 0
    assert told(capsys)["error"]["code"] == "warehouse-held"
    assert ours(shop / "shop.db")
