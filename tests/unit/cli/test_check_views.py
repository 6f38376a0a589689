"""``viewkeeper check`` and the views: who keeps each, and why nobody can."""

from __future__ import annotations

import json

import pytest

from viewkeeper.cli import execute
from viewkeeper.demo.example_project import write_example


@pytest.fixture
def example(tmp_path):
    write_example(tmp_path / "example")
    return tmp_path / "example"


def checked(capsys, folder) -> tuple[int, dict]:
    code = execute(["check", "--allow-setup", "--json", "--project", str(folder)])
    return code, json.loads(capsys.readouterr().out)


def test_a_view_that_can_be_kept_is_told_with_its_protocol(example, capsys):
    code, report = checked(capsys, example)
    assert (code, report["ok"]) == (0, True)
    assert {view["view"]: view["protocol"] for view in report["views"]}["sales"] == "sweep"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ("-- protocol: strobe\n", "protocol-below-level"),
        ("-- consistency: strong\n-- protocol: eca\n", "protocol-not-applicable"),
        ("-- consistency: strong\n-- protocol: periodic\n", "bad-period"),
        ("-- protocol: sweep\n-- refresh: full\n", "protocol-not-applicable"),
    ],
)
def test_a_view_that_nobody_can_keep_fails_the_check_with_the_reason(
    example, capsys, headers, code
):
    text = "SELECT c.customer_id, o.order_id FROM crm.customers c JOIN shop.orders o USING (customer_id)"
    (example / "views" / "own.sql").write_text(headers + text)
    exit_code, report = checked(capsys, example)
    errors = {view["view"]: view["error"] for view in report["views"]}
    assert (exit_code, report["ok"]) == (1, False)
    assert errors["own"]["code"] == code
    assert errors["sales"] is None
    assert execute(["check", "--project", str(example)]) == 1
    assert code in capsys.readouterr().out


def test_incremental_strict_refuses_what_would_be_computed_anew(example, capsys):
    total = "SELECT sum(CAST(o.quantity AS DOUBLE)) AS total FROM shop.orders o"
    (example / "views" / "total.sql").write_text(f"-- refresh: incremental-strict\n{total}")
    exit_code, report = checked(capsys, example)
    errors = {view["view"]: view["error"] for view in report["views"]}
    assert exit_code == 1
    assert "over doubles" in errors["total"]["detail"]
    (example / "views" / "total.sql").write_text(total)
    exit_code, report = checked(capsys, example)
    kept = {view["view"]: view for view in report["views"]}
    assert (exit_code, kept["total"]["protocol"]) == (0, "recompute")
