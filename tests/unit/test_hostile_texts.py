"""Texts made to hold readers up: each is read in time that grows with its length, or refused by name."""

from __future__ import annotations

import contextlib
import io
import sqlite3
from pathlib import Path

import pytest

from viewkeeper.cli import execute
from viewkeeper.errors import UsageError
from viewkeeper.importing.dbt_models import translated
from viewkeeper.sources.mariadb import ddl
from viewkeeper.sql.headers import read_headers
from viewkeeper.sql.sqltext import SqlText

LONG = 300_000


@pytest.mark.parametrize(
    "value",
    [" ()x" * LONG, " " * LONG + "x", " (" * LONG, "(" * LONG + ")"],
    ids=["remarks", "blanks", "opened", "closed once"],
)
def test_a_long_header(value: str) -> None:
    with pytest.raises(UsageError):
        read_headers(SqlText("v", f"-- refresh: auto{value}\nSELECT 1"))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("-- publish: no", "no"),
        ("-- publish: no (said so)", "no"),
        ("-- publish: no  (one) (two) ", "no"),
        ("-- every: 5 s (x)y", "5 s (x)y"),
        ("-- every: f(x)", "f(x)"),
    ],
)
def test_a_remark_behind_a_header_is_left_out(written: str, value: str) -> None:
    assert dict(read_headers(SqlText("v", f"{written}\nSELECT 1")).settings).popitem()[1] == value


@pytest.mark.parametrize("opened", ["{#", "{{", "{%"])
def test_templates_that_are_never_closed(opened: str) -> None:
    found = translated("m", f"SELECT 1\n{opened * LONG}", frozenset(), {})
    (refusal,) = found.refusals
    assert str(refusal).startswith(f"m, line 2: {opened} is never closed")


def test_comments_and_templates_that_are_closed_are_as_before() -> None:
    found = translated(
        "m", "{# a\nb #}SELECT {{ ref('o') }} {{- config(x) -}}", frozenset({"o"}), {}
    )
    assert (found.text, found.models, found.refusals) == ("SELECT o\n", ("o",), ())


@pytest.mark.parametrize("opened", ["'\\", "/* ", '"\\', "`x``"])
def test_a_statement_with_texts_that_are_never_closed(
    opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = "ALTER TABLE shop.orders COMMENT " + opened * 50_000
    assert isinstance(ddl.judged(statement, "shop"), ddl.ChangesTables)


DEEP = {
    "parentheses": "SELECT " + "(" * 3_000 + "1" + ")" * 3_000 + " FROM s.t",
    "signs": "SELECT " + "- " * 3_000 + "1 FROM s.t",
    "denials": "SELECT 1 FROM s.t WHERE " + "NOT " * 3_000 + "true",
    "sums": "SELECT " + "1 + " * 5_000 + "1 FROM s.t",
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 1_000 + "s.t" + ")" * 1_000,
    "cases": "SELECT " + "CASE WHEN true THEN " * 1_000 + "1" + " END" * 1_000 + " FROM s.t",
    "unions": " UNION ALL ".join(["SELECT id FROM s.t"] * 2_000),
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("command", [["check"], ["explain", "v"], ["advise"], ["status"]])
@pytest.mark.thorough
def test_a_view_that_is_nested_too_deeply(tmp_path: Path, kind: str, command: list[str]) -> None:
    database = sqlite3.connect(tmp_path / "s.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    database.close()
    (tmp_path / "viewkeeper.toml").write_text('[sources.s]\nurl = "sqlite:///s.db"\n')
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "v.sql").write_text(DEEP[kind])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = execute([*command, "--json", "--project", str(tmp_path)])
    told = out.getvalue() + err.getvalue()
    assert code in (0, 1, 2)
    assert "invariant-violated" not in told
    assert "Traceback" not in told
    if command[0] in ("explain", "advise"):  # the others look at views once their source is set up
        assert "too-deep" in told or "too-many-terms" in told
