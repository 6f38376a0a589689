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
    assert {view["view"]: view["protocol"] for view in report["views"]}["sales"] == "batched-sweep"


BAD = {
    "slip.sql": ("SELECT nothing FROM shop.orders", "unknown-column"),
    "gone.sql": ("SELECT a FROM shop.nothing", "unknown-relation"),
    "syntax.sql": ("SELECT FROM WHERE", "syntax-error"),
    "more.py": ("1 / 0", "bad-view-file"),
}


def test_a_bad_file_is_wrong_for_its_own_view_alone(example, capsys):
    for command in ("check", "explain", "advise"):
        words = [command, "--json", "--project", str(example)]
        assert execute(words) == 0, command
    capsys.readouterr()
    for name, (text, _) in BAD.items():
        (example / "views" / name).write_text(text)
    codes = {name.removesuffix(".sql"): code for name, (_, code) in BAD.items()}
    exit_code, report = checked(capsys, example)
    told = {view["view"]: view["error"] and view["error"]["code"] for view in report["views"]}
    assert (exit_code, report["ok"]) == (1, False)
    assert told["sales"] is None
    assert {name: code for name, code in told.items() if code} == codes
    for command in ("explain", "advise"):
        assert execute([command, "--json", "--project", str(example)]) == 1
        document = json.loads(capsys.readouterr().out)
        assert "sales" in [view.get("name", view.get("view")) for view in document["views"]]
        assert {name: error["code"] for name, error in document["bad"].items()} == codes
        # Of one view that is well, nothing is said of the others.
        assert execute([command, "sales", "--project", str(example)]) == 0
        assert execute([command, "slip", "--project", str(example)]) != 0
        told = capsys.readouterr()
        assert "unknown-column" in told.out + told.err


def test_what_the_knowledge_names_and_is_not_there_is_a_note(example, capsys):
    file = example / "viewkeeper.toml"
    file.write_text(
        file.read_text()
        + """
[[knowledge.replacements]]
relation = "crm.customers"
by = "shop.parties"
attributes = { customer_id = "id" }
"""
    )
    exit_code, report = checked(capsys, example)
    assert (exit_code, report["ok"]) == (0, True)
    (note,) = report["notes"]
    assert "replacement 1 in [knowledge] can't be used now" in note
    assert "shop.parties" in note
    assert execute(["check", "--project", str(example)]) == 0
    assert "can't be used now" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ("-- protocol: strobe\n", "protocol-below-level"),
        ("-- consistency: strong\n-- protocol: eca\n", "protocol-not-applicable"),
        ("-- consistency: strong\n-- protocol: periodic\n", "bad-period"),
        ("-- protocol: batched-sweep\n-- refresh: full\n", "protocol-not-applicable"),
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


def test_a_view_that_does_not_reach_its_level_is_said_to(example, capsys):
    """Declared complete (as every view is that says nothing); a sum over doubles is computed anew."""
    total = "-- consistency: complete\nSELECT sum(o.quantity / 3) AS total FROM shop.orders o"
    (example / "views" / "total.sql").write_text(total)
    exit_code, report = checked(capsys, example)
    kept = {view["view"]: view for view in report["views"]}
    assert (exit_code, kept["total"]["level"]) == (0, "strong")
    assert "declared complete, kept at strong by recompute" in kept["total"]["warning"]
    assert kept["sales"]["warning"] is None
    assert execute(["check", "--project", str(example)]) == 0
    assert "level-not-reached" in capsys.readouterr().out
    (example / "views" / "total.sql").write_text(f"-- refresh: incremental-strict\n{total}")
    exit_code, report = checked(capsys, example)
    kept = {view["view"]: view for view in report["views"]}
    assert (exit_code, kept["total"]["error"]["code"]) == (1, "not-incremental")
    (example / "views" / "total.sql").write_text(total.replace("complete", "strong"))
    exit_code, report = checked(capsys, example)
    assert [view["warning"] for view in report["views"]] == [None] * len(report["views"])
