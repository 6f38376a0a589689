"""``viewkeeper import-dbt``: all models or none, and nothing is written over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from viewkeeper.cli import execute

SCHEMA = """
version: 2
sources:
  - name: shop
    tables: [{name: orders}]
  - name: crm
    schema: sales
    tables: [{name: people, identifier: customers}]
"""


@pytest.fixture
def dbt(tmp_path: Path) -> Path:
    folder = tmp_path / "dbt"
    (folder / "models" / "staging").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: shop\nmodel-paths: [models]\n")
    (folder / "models" / "schema.yml").write_text(SCHEMA)
    (folder / "models" / "staging" / "orders.sql").write_text(
        "SELECT o_id, qty, cust_id FROM {{ source('shop', 'orders') }}"
    )
    (folder / "models" / "totals.sql").write_text(
        "SELECT c.name, sum(o.qty) AS qty FROM {{ ref('orders') }} o\n"
        "JOIN {{ source('crm', 'people') }} c ON c.cust_id = o.cust_id GROUP BY c.name"
    )
    return folder


def told(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_models_become_views_and_missing_sources_are_named(dbt, tmp_path, capsys):
    project = tmp_path / "project"
    assert execute(["import-dbt", str(dbt), "--project", str(project), "--json"]) == 0
    assert told(capsys) == {
        "views": ["orders", "totals"],
        "sources": ["shop", "crm"],
        "sources_missing": ["shop", "crm"],
        "skipped": [],
    }
    totals = (project / "views" / "totals.sql").read_text()
    assert "FROM orders o" in totals
    assert "JOIN crm.sales.customers c" in totals
    assert "{{" not in totals


def test_nothing_is_written_while_one_model_cannot_be_imported(dbt, tmp_path, capsys):
    (dbt / "models" / "late.sql").write_text("SELECT {{ var('x') }} FROM {{ ref('orders') }}")
    (dbt / "models" / "later.sql").write_text("SELECT * FROM {{ ref('late') }}")
    project = tmp_path / "project"
    words = ["import-dbt", str(dbt), "--project", str(project), "--json"]
    assert execute(words) == 2
    error = told(capsys)["error"]
    assert error["code"] == "dbt-unsupported"
    assert "late, line 1: the macro var is not supported" in error["detail"]
    assert not project.exists()
    assert execute([*words, "--skip"]) == 0
    found = told(capsys)
    assert found["views"] == ["orders", "totals"]
    assert "later, line 1: it reads late, which can't be imported" in found["skipped"]


def test_a_view_that_is_there_is_not_written_over(dbt, tmp_path, capsys):
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "orders.sql").write_text("mine")
    assert execute(["import-dbt", str(dbt), "--project", str(tmp_path), "--json"]) == 2
    assert told(capsys)["error"]["code"] == "files-exist"
    assert (tmp_path / "views" / "orders.sql").read_text() == "mine"


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("dbt_project.yml", None, "no-dbt-project"),
        ("dbt_project.yml", "a: [", "bad-dbt-file"),
        ("dbt_project.yml", "model-paths: [nowhere]", "no-dbt-models"),
    ],
)
def test_what_is_no_dbt_project_is_said(dbt, capsys, file, text, code):
    (dbt / file).unlink()
    if text is not None:
        (dbt / file).write_text(text)
    assert execute(["import-dbt", str(dbt), "--json"]) == 2
    assert told(capsys)["error"]["code"] == code
