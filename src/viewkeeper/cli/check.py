"""``viewkeeper check``: whether every source can be read exactly, and what its owner must do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.run import Project
from viewkeeper.project.config import read_project
from viewkeeper.terminal import FAILED, GOOD, Json, write_json, write_line, write_lines

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "refused": ("✗", "bold red")}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("check")(check)


def check(
    setup_sql: Annotated[
        str | None,
        typer.Option(
            "--setup-sql", metavar="SOURCE", help="Print the script that this source's owner runs."
        ),
    ] = None,
    allow_setup: Annotated[
        bool,
        typer.Option("--allow-setup", help="Set the sources up first, where something is missing."),
    ] = False,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Check that every source can be read exactly and is not harmed. Creates nothing by itself."""
    from viewkeeper.reports.check import can_be_read, check_document, setup_script

    config = read_project(project)
    if setup_sql is not None:
        script = setup_script(config, setup_sql)
        if as_json:
            write_json({"source": setup_sql, "setup_sql": script})
        else:
            write_lines(script.rstrip())
        return
    found = check_document(config, allow_setup=allow_setup)
    if as_json:
        write_json(found)
    else:
        _show(found["sources"], can_be_read(found["sources"]))
        show_security(found["security"])
        _show_views(found["views"])
        for note in found["notes"]:
            write_line(f"  ! {note}", "yellow")
    raise typer.Exit(GOOD if found["ok"] else FAILED)


def show_security(items: Sequence[dict[str, Any]]) -> None:
    """Links, rights, tokens and permissions, each with a mark, and what mends a warning."""
    write_line("Security", "bold")
    for item in items:
        _show_finding(item, f"{item['subject']}: ")


def _show_finding(finding: dict[str, Any], subject: str = "") -> None:
    mark, style = _MARKS[finding["severity"]]
    write_line(f"  {mark} {subject}{finding['message']} [{finding['code']}]", style)
    if finding["fix"] and finding["severity"] != "ok":
        write_line(f"      fix: {finding['fix']}")


def _show_views(views: Sequence[dict[str, Any]]) -> None:
    for view in views:
        if (error := view["error"]) is not None:
            write_line(f"  ✗ {error['message']} [{error['code']}]", "bold red")
            for text in (error["detail"], error["hint"]):
                if text:
                    write_line(f"      {text}")
    for view in views:
        if view["warning"] is not None:
            write_line(f"  ! {view['warning']} [level-not-reached]", "yellow")


def _show(reports: Sequence[dict[str, Any]], good: bool) -> None:
    for report in reports:
        kind = f" ({report['kind']})" if report["kind"] else ""
        write_line(f"{report['source']}{kind}", "bold")
        for finding in report["findings"]:
            _show_finding(finding)
    write_line()
    if good:
        write_line("Every source can be read exactly.", "green")
    else:
        write_line("Some source can't be read exactly yet: see the lines marked ✗.", "bold red")
