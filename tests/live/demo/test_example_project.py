"""The project that ``viewkeeper init`` writes, used as its README says."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest

from viewkeeper.cli import execute
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def told(capsys, folder, *words):
    assert execute([*words, "--json", "--project", str(folder)]) == 0
    return json.loads(capsys.readouterr().out)


def sales_of_edgar(capsys, folder):
    sql = "SELECT title, amount FROM sales WHERE name = 'Edgar'"
    return told(capsys, folder, "query", sql)["rows"]


def test_every_command_works_in_a_new_project(tmp_path, capsys, running_spark):
    folder = tmp_path / "new"
    assert execute(["init", str(folder)]) == 0
    capsys.readouterr()
    assert told(capsys, folder, "check")["ok"]
    with Keeper.open(folder) as keeper:
        assert keeper.run_until_caught_up().transactions == 0
    assert sales_of_edgar(capsys, folder) == [["lamp", 40]]
    # The README's own change of a source.
    statement = re.search(r"execute\('(.*?)'\)", (folder / "README.md").read_text())[1]
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        shop.execute(statement)
        shop.commit()
    with Keeper.open(folder, allow_setup=True) as keeper:
        assert keeper.run_until_caught_up().transactions == 1
    assert sales_of_edgar(capsys, folder) == [["lamp", 360]]
    audits = told(capsys, folder, "audit")["views"]
    assert {a["view"]: a["verdict"] for a in audits} == dict.fromkeys(
        ["names", "referrals", "sales"], "equal"
    )
    assert [epoch["last_txn"] for epoch in told(capsys, folder, "history")["epochs"]] == [1, 0]
    status = told(capsys, folder, "status")
    assert (status["frontier"], list(status["sources"])) == (1, ["shop", "crm"])
