"""``viewkeeper evolve``: schema changes at the sources, what they do to every view, and your word on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.run import Project
from viewkeeper.errors import UsageError
from viewkeeper.terminal import FAILED, GOOD, Json, write_json, write_line, write_lines


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("evolve")(evolve)


def evolve(
    approve: Annotated[
        str | None, typer.Option("--approve", metavar="ID", help="Let a change go on.")
    ] = None,
    reject: Annotated[
        str | None,
        typer.Option(
            "--reject", metavar="ID", help="Leave the views as they are: they stay frozen."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that are applied.")] = False,
    write: Annotated[
        bool,
        typer.Option("--write", help="Bring the files of views that have followed up to date."),
    ] = False,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """List schema changes that wait, with their effect on every view; approve or reject one.

    With --write, files that lag behind their views get the names that the sources have now.
    """
    from viewkeeper.live.evolution_log import APPLIED, EvolutionLog
    from viewkeeper.project.config import read_project

    if (approve is not None) + (reject is not None) + write > 1:
        raise UsageError(
            "two-decisions", "only one of --approve, --reject and --write can be given at once"
        )
    if write:
        _write(project, as_json)
    log = EvolutionLog(read_project(project).folder)
    if approve is not None or reject is not None:
        decided = approve or reject or ""
        made = log.decide(decided, "approve" if approve is not None else "reject")
        if as_json:
            write_json(made)
        else:
            write_line(f"{made['decision']} noted; a running keeper takes it up within seconds")
        return
    changes = [c for c in log.changes() if every or c["status"] != APPLIED]
    if as_json:
        write_json({"changes": changes})
        return
    if not changes:
        write_line("No schema change waits." if not every else "No schema change so far.")
    for change in changes:
        _show(change)


def _write(project: Path, as_json: bool) -> None:
    """Bring lagging files up to date, showing what changes; ends with 1 when some can't be."""
    from viewkeeper.project.file_updates import updated_files
    from viewkeeper.project.keeper import Keeper

    with Keeper.open(project) as keeper:
        updates, left = updated_files(keeper)
    for update in updates:
        update.file.write_text(update.text, encoding="utf-8")
    if as_json:
        written = [{"view": u.view, "file": str(u.file), "diff": u.diff} for u in updates]
        errors = {name: error.as_dict() for name, error in left.items()}
        write_json({"ok": not left, "written": written, "left": errors})
    else:
        for update in updates:
            write_lines(update.diff.rstrip())
        for error in left.values():
            write_line(f"✗ {error.message} [{error.code}]", "bold red")
            write_line(f"    {error.hint}")
        if not updates and not left:
            write_line("Every file says what its view is.")
    raise typer.Exit(FAILED if left else GOOD)


def _show(change: dict[str, Any]) -> None:
    decided = change["decision"]
    state = change["status"] + (f", decided: {decided['decision']}" if decided else "")
    write_line(f"{change['id']}  {change['source']}.{change['relation']}  ({state})", "bold")
    write_line(f"    {change['statement']}")
    for effect in change["effects"]:
        write_line(f"    {effect['view']}: {effect['effect']}")
        for line in (effect["reason"], *effect["mapping"]):
            if line:
                write_line(f"        {line}")
        if effect["adaptation"]:
            why = f" ({effect['adaptation_reason']})" if effect["adaptation_reason"] else ""
            write_line(f"        extent: {effect['adaptation']}{why}")
    if not change["effects"]:
        write_line("    no view is affected")
    if change["status"] == "pending" and not decided:
        write_line(f"    viewkeeper evolve --approve {change['id']}   or   --reject {change['id']}")
