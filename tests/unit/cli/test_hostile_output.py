"""Names and values that look like markup or steer terminals: shown as they are, by every command."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import pty
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from event_samples import run_event
from viewkeeper import cli
from viewkeeper.algebra.types import INTEGER, STRING, Field, Schema
from viewkeeper.cli import execute
from viewkeeper.cli.live import LiveTable
from viewkeeper.cli.warehouse import _show_answer
from viewkeeper.project.querying import Answer
from viewkeeper.run_events import RunEvent
from viewkeeper.terminal import Grid, console, styled, write_line
from viewkeeper.visible import visible
from viewkeeper.warehouse.commits import EpochCommit, Extent
from viewkeeper.warehouse.entries import Definition
from viewkeeper.warehouse.warehouse import Warehouse

HOSTILE = [
    "[urgent] fix",
    "[/x]",
    "[bold",
    "[link=http://x.test]y[/link]",
    "[@click=exit]x[/]",
    "\\[x]",
    ":smile:",
    "{x} %s",
    "\x1b[2Jgone",
    "\x1b]0;title\x07",
    "\x9b31mred",
    "over\rwritten",
    "a\nok: all equal",
    "back\x08space",
    "tab\tbed",
    "\u202ereversed",
    "zero\u200bwidth",
    "half \udc80",
    "nul\x00",
    "del\x7f",
    "line\u2028end",
]
# What no output may hold, terminal or not.
STEERING = [
    "\x1b[2J",
    "\x1b]0;",
    "\x9b",
    "\u202e",
    "\u200b",
    "\x00",
    "\x7f",
    "\x08",
    "\u2028",
    "\x07",
]


def squeezed(text: str) -> str:
    """Without the breaks and boxes of a table that had to fold a value."""
    return "".join(text.split()).replace("│", "")


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is written inside arrives at a terminal; then it is in the list."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                seen.append(part)

    told: list[str] = []
    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patched, open(theirs, "w", encoding="utf-8") as stream:
        patched.setenv("COLUMNS", "200")
        patched.setenv("TERM", "xterm")
        patched.delenv("NO_COLOR", raising=False)
        patched.setattr(sys, "stdout", stream)
        yield told
        stream.flush()
    reader.join()
    os.close(ours)
    told.append(b"".join(seen).decode())


def test_a_line_shows_every_text_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        write_line(f"before {text} after", "bold")
        assert capsys.readouterr().out == f"before {visible(text)} after\n"


def test_a_table_shows_every_text_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        grid = Grid(text, "other", title=text, caption=text)
        grid.add_row(text, styled(text, "red"))
        console().print(grid)
        out = capsys.readouterr().out
        assert out.count(visible(text)) >= 3, out
        assert not [each for each in STEERING if each in out]


def test_query_shows_every_value_and_column_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    values = [text for text in HOSTILE if "\udc80" not in text]
    long = "x" * 300 + "!"
    table = pa.table({name: [name, long] for name in values})
    answer = Answer(table, tuple((n, "string") for n in values), 1, {"v": 1}, False)
    _show_answer(answer, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert [row[0] for row in zip(*document["rows"], strict=True)] == values
    for name in values:
        one = Answer(table.select([name]), ((name, "string"),), 1, {"v": 1}, False)
        _show_answer(one, as_json=False)
        out = capsys.readouterr().out
        assert squeezed(out).count(squeezed(visible(name))) >= 2, out
        assert long in squeezed(out)
        assert not [each for each in STEERING if each in out]


def events(text: str) -> list[RunEvent]:
    """One of each that the terminal shows, with the text wherever a source or a user may have written it."""
    views, error = [text], {"message": text, "hint": text}
    told = {"source": text, "statement": text}
    effects = [{"view": text, "effect": "evolved"}]
    return [
        run_event("loading", views=views),
        run_event("relation_read", relation=text),
        run_event("loaded", views=views),
        run_event("ready", views=views),
        run_event("batch", changed={text: {"inserted": 1, "deleted": 1}}),
        run_event("source_waiting", error=error),
        run_event("audited", view=text, verdict="equal"),
        run_event("views_stopped", views=views, error=error),
        run_event("rebuilt", views=views),
        run_event("reloaded", views=views),
        run_event("source_back", source=text),
        run_event("warning", message=text),
        run_event("schema_changed", **told, effects=effects),
        run_event("evolved", view=text, reason=text),
        run_event("schema_waits", **told),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_run_on_a_terminal_survives_and_shows_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for event in events(text):
        with terminal(monkeypatch) as told, LiveTable({text: None}) as table:
            table.on_event(event)
        assert visible(text) in told[0].replace("\r\n", "\n"), event
        assert not [each for each in STEERING if each in told[0]]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_run_elsewhere_shows_it_on_one_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for event in events(text):
        with LiveTable({text: None}) as table:
            table.on_event(event)
        assert len(capsys.readouterr().out.splitlines()) == 1


# -- commands over a project whose every name and value is hostile ----------------------------------

COLUMNS = [name for name in HOSTILE if not set(name) & set(" ,;{}()\n\r\t=\udc80\x00")]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    database = sqlite3.connect(tmp_path / "geo.db")
    database.execute("PRAGMA journal_mode = WAL")
    columns = ", ".join(f"{quoted(name)} TEXT" for name in COLUMNS)
    database.execute(f"CREATE TABLE regions (id INTEGER PRIMARY KEY, {columns})")
    database.execute(f"CREATE TABLE {quoted('[/x]')} (id INTEGER PRIMARY KEY)")
    database.commit()
    database.close()
    (tmp_path / "viewkeeper.toml").write_text('[sources.geo]\nurl = "sqlite:///geo.db"\n')
    (tmp_path / "views").mkdir()
    wanted = ", ".join(f"`{name}`" for name in COLUMNS)
    text = f"SELECT id, {wanted} FROM geo.regions WHERE `[/x]` = '[bold] \x1b[2J'"
    (tmp_path / "views" / "regions.sql").write_text(text)
    (tmp_path / "views" / "bad.sql").write_text("SELECT `[/y]\x1b[2J` FROM geo.regions")
    schema = Schema((Field("id", INTEGER), *(Field(name, STRING) for name in COLUMNS)))
    rows = pa.table({"id": [1], **{name: [name] for name in COLUMNS}, "_count": [1]})
    story = {
        "effect": "evolved",
        "statement": "\x1b[2J[/x]",
        "reason": "[/x]\x1b[2J",
        "method": "[x]",
    }
    with Warehouse.create(tmp_path / "warehouse").writer() as writer:
        defined = Definition(schema, text, evolved=story)
        views = {"regions": Extent(rows)}
        position = {"geo": {"seq": "[/x]\x1b[2J"}}
        writer.commit(EpochCommit(1, 1, views, position, definitions={"regions": defined}))
    (tmp_path / ".viewkeeper").mkdir(exist_ok=True)
    effect = {
        "view": "[/x]", "effect": "[/x]\x1b[2J", "reason": "[/x]\x1b[2J", "mapping": ["[/x]\x1b[2J"],
        "adaptation": "[/x]\x1b[2J", "adaptation_reason": "[/x]\x1b[2J",
    }  # fmt: skip
    change = {
        "id": "1", "at": "now", "source": "geo", "relation": "[/x]\x1b[2J", "effects": [effect],
        "statement": "ALTER TABLE t ADD COLUMN [/x]\x1b[2J", "changes": [], "status": "pending",
    }  # fmt: skip
    (tmp_path / ".viewkeeper" / "evolution.json").write_text(json.dumps({"changes": [change]}))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["history"],
        ["history", "--schema"],
        ["history", "--all"],
        ["explain"],
        ["explain", "regions"],
        ["explain", "[/x]\x1b[2J"],
        ["check"],
        ["check", "--setup-sql", "geo"],
        ["evolve"],
        ["evolve", "--approve", "[/x]\x1b[2J"],
        ["advise"],
        ["rebuild", "[/x]\x1b[2J"],
        ["[/x]\x1b[2J"],
        ["query", "[/x]\x1b[2J"],
    ],
    ids=lambda words: visible(" ".join(words)),
)
@pytest.mark.parametrize("on_terminal", [False, True])
def test_no_command_falls_over_hostile_names(
    project: Path, words: list[str], on_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    err, out = io.StringIO(), io.StringIO()
    known = words if words[0].startswith("[") else [*words, "--project", str(project)]
    with contextlib.redirect_stderr(err):
        if on_terminal:
            with terminal(monkeypatch) as told:
                code = execute(known)
            text = told[0]
        else:
            with contextlib.redirect_stdout(out):
                code = execute(known)
            text = out.getvalue()
    text += err.getvalue()
    assert code in (0, 1, 2), text
    assert "invariant-violated" not in text
    assert "Traceback" not in text
    assert not [each for each in STEERING if each in text], text
    shown = squeezed(text)
    if words in (["evolve"], ["history", "--schema"]):
        assert squeezed(r"[/x]\x1b[2J") in shown
    if words == ["explain", "regions"]:
        assert [name for name in COLUMNS if squeezed(visible(name)) not in shown] == []


def test_a_file_of_a_hostile_name_is_told(project: Path) -> None:
    (project / "views" / "[b]\x1b[2J.sql").write_text("SELECT id FROM geo.regions")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        assert execute(["explain", "--project", str(project)]) == 1
    assert r"a view can't be named [b]\x1b[2J [bad-view-name]" in out.getvalue()


def test_json_of_the_same_commands_is_exact(project: Path) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert execute(["evolve", "--json", "--project", str(project)]) == 0
    (change,) = json.loads(out.getvalue())["changes"]
    assert change["relation"] == "[/x]\x1b[2J"
    assert "\x1b" not in out.getvalue()


def test_commands_write_through_the_one_renderer_alone() -> None:
    """No command makes its own console, table or text, and none prints past them."""
    folder = Path(cli.__file__).parent
    wrong = []
    for file in sorted(folder.rglob("*.py")):
        if file.name == "output.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            name = f"{file.relative_to(folder)}:{getattr(node, 'lineno', 0)}"
            match node:
                case ast.Call(func=ast.Name(id="print" | "Console" | "Table" | "Text" as called)):
                    wrong.append(f"{name} calls {called}")
                case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"):
                    wrong.append(f"{name} writes past it")
                case ast.keyword(arg="markup") if file.name != "several_views.py":
                    wrong.append(f"{name} has markup")
    assert [each for each in wrong if not each.startswith("__init__.py")] == []
