"""``viewkeeper status`` and ``wait``: where everything stands, and whether a write is in."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.check import show_security
from viewkeeper.cli.run import Project
from viewkeeper.errors import UsageError
from viewkeeper.terminal import FAILED, GOOD, Grid, Json, console, write_json, write_line


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("status")(status)
    app.command("wait")(wait)


def status(
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 unless a run is going and all is well.")
    ] = False,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Where the warehouse, the views and the sources stand."""
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.project.security import warnings_in
    from viewkeeper.reports.status import status_document

    with Keeper.open(project) as keeper:
        found = status_document(keeper)
    if as_json:
        write_json(found)
    else:
        _show(found)
        for problem in found["problems"]:
            write_line(problem)
        show_security(warnings_in(found["security"]) or found["security"])
    raise typer.Exit(FAILED if check and not found["ok"] else GOOD)


def _show(found: dict[str, Any]) -> None:
    write_line(
        f"run: {found['state']}, at transaction {found['frontier']:,}, epoch {found['epoch']:,}"
    )
    grid = Grid("source", "state", "log kept", "behind")
    for name, source in found["sources"].items():
        retained, lag = source.get("retained_bytes"), source.get("lag_bytes")
        grid.add_row(name, source["state"], _bytes(retained), _behind(lag, source))
    console().print(grid)
    if not found["views"]:
        write_line("There are no views in the warehouse yet: viewkeeper run loads them.")
        return
    grid = Grid("view", "state", "level", "protocol", "rows", "behind", "last change")
    for name, view in found["views"].items():
        grid.add_row(
            name,
            view["state"],
            _level(view),
            view["protocol"] or "?",
            "many" if view["rows"] is None else f"{view['rows']:,}",
            _seconds(view["freshness_seconds"]),
            f"{view['lag_seconds']:,.0f} s ago",
        )
    console().print(grid)
    for name, view in found["views"].items():
        if view["differs"]:
            write_line(f"{name}: the audit at transaction {view['audit'].get('txn')} differs")
            for kind in ("missing", "extra"):
                for row in view["audit"].get(kind, ())[:3]:
                    write_line(f"    {kind} {tuple(row['row'])!r} × {row['count']}")
            write_line(f"    viewkeeper rebuild {name}")
        if view["error"]:
            write_line(f"{name}: {view['error']['message']} [{view['error']['code']}]")
            write_line(f"    {view['error']['hint']}")


def _level(view: dict[str, Any]) -> str:
    level, declared = view["level"] or "?", view["declared"]
    return level if declared in (None, level) else f"{level} (declared {declared})"


def _behind(lag_bytes: int | None, source: dict[str, Any]) -> str:
    parts = [_bytes(lag_bytes)] if lag_bytes is not None else []
    if source["behind_seconds"] is not None:
        parts.append(_seconds(source["behind_seconds"]))
    return ", ".join(parts) or "–"


def _seconds(number: float | None) -> str:
    return "–" if number is None else f"{number:,.1f} s"


def _bytes(number: int | None) -> str:
    if number is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}"
        number //= 1024
    return f"{number:,.0f} GiB"


def wait(
    source: Annotated[str, typer.Option("--source", help="The source that was written to.")],
    position: Annotated[
        str | None,
        typer.Option("--position", help="Its position as JSON; what is committed now without it."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Give up after so long.")
    ] = 60.0,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Wait until the warehouse includes a source up to a position: is my write in?"""
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.reports.run_state import NOBODY_KEEPS, read_run_state

    with Keeper.open(project) as keeper:
        target = _target(keeper, source, position)
        started = time.monotonic()
        included = keeper.await_included(source, target, timeout_seconds=timeout)
        run = read_run_state(keeper.config.folder)["state"]
    seconds = round(time.monotonic() - started, 3)
    if as_json:
        write_json({"included": included, "source": source, "position": target, "seconds": seconds})
    else:
        write_line(f"{source}: {'included' if included else 'not included'} after {seconds:.1f} s")
        if not included and run in NOBODY_KEEPS:
            write_line("no run keeps the views now: viewkeeper run")
    raise typer.Exit(GOOD if included else FAILED)


def _target(keeper: Any, source: str, position: str | None) -> Any:
    if position is None:
        with keeper.source(source).cut(()) as cut:
            return cut.bound
    try:
        return json.loads(position)
    except ValueError:
        raise UsageError(
            "bad-position",
            f"--position is not JSON: {position}",
            hint="take it from `viewkeeper status --json`",
        ) from None
