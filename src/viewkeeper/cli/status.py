"""``viewkeeper status`` and ``wait``: where everything stands, and whether a write is in."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from viewkeeper.cli.output import FAILED, GOOD, Json, console, write_json, write_line
from viewkeeper.cli.run import Project
from viewkeeper.errors import SourceError, UsageError

POLL_SECONDS = 0.2


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
    from viewkeeper.runtime.keeper import Keeper

    with Keeper.open(project) as keeper:
        found = _status(keeper)
    good = (
        found["state"] == "running"
        and all(source["state"] == "ok" for source in found["sources"].values())
        and not any(view["error"] or view["differs"] for view in found["views"].values())
    )
    if as_json:
        write_json(found | {"ok": good})
    else:
        _show(found)
    raise typer.Exit(GOOD if good or not check else FAILED)


def _status(keeper: Any) -> dict[str, Any]:
    from viewkeeper.dashboard.chronicle import counted_rows
    from viewkeeper.runtime.run_state import read_run_state

    run = read_run_state(keeper.config.folder)
    try:
        warehouse = keeper.warehouse(with_spark=False)
        latest = warehouse.latest()
    except UsageError:
        warehouse = latest = None
    now = dt.datetime.now(dt.UTC)
    age = None if latest is None else round((now - latest.committed_at).total_seconds(), 1)
    known = {} if latest is None else latest.shown_views
    positions = {} if latest is None else latest.positions
    return {
        "state": run["state"],
        "frontier": 0 if latest is None else latest.last_txn,
        "epoch": 0 if latest is None else latest.epoch,
        "sources": {
            name: _source_status(keeper, name, positions.get(name))
            for name in keeper.config.sources
        },
        "views": {
            name: {
                "state": _view_state(view, run, name),
                "error": run.get("stopped_views", {}).get(name),
                "audit": run.get("audits", {}).get(name),
                "differs": run.get("audits", {}).get(name, {}).get("verdict") == "different",
                "rebuilt": view.definition.rebuilt,
                "level": run["views"].get(name, {}).get("level"),
                "protocol": run["views"].get(name, {}).get("protocol"),
                "why": run["views"].get(name, {}).get("why", []),
                "rows": counted_rows(warehouse.storage, latest, name),
                "epoch": latest.epoch if latest else 0,
                "definition_version": view.definition_version,
                "lag_seconds": age,
            }
            for name, view in known.items()
        },
        "last_batch": run.get("batch"),
    }


def _view_state(view: Any, run: dict[str, Any], name: str) -> str:
    if view.definition.is_retired:
        return "retired"
    # Whoever can't go on stays so until a run has done something about it, also when none goes.
    return "stopped by its source" if name in run.get("stopped_views", {}) else str(run["state"])


def _source_status(keeper: Any, name: str, position: Any) -> dict[str, Any]:
    try:
        health = keeper.source(name).health()
    except (SourceError, UsageError) as error:
        return {
            "state": "unreachable",
            "position": position,
            "lag_seconds": None,
            "error": error.as_dict(),
        }
    return {
        "state": health.state,
        "position": position,
        "lag_seconds": health.lag_seconds,
        "lag_bytes": health.lag_bytes,
        "retained_bytes": health.retained_bytes,
        "detail": health.detail,
    }


def _show(found: dict[str, Any]) -> None:
    write_line(
        f"run: {found['state']}, at transaction {found['frontier']:,}, epoch {found['epoch']:,}"
    )
    grid = Table("source", "state", "log kept", "behind")
    for name, source in found["sources"].items():
        retained, lag = source.get("retained_bytes"), source.get("lag_bytes")
        grid.add_row(name, source["state"], _bytes(retained), _bytes(lag))
    console().print(grid)
    if not found["views"]:
        write_line("There are no views in the warehouse yet: viewkeeper run loads them.")
        return
    grid = Table("view", "state", "level", "protocol", "rows", "last change")
    for name, view in found["views"].items():
        grid.add_row(
            name,
            view["state"],
            view["level"] or "?",
            view["protocol"] or "?",
            "many" if view["rows"] is None else f"{view['rows']:,}",
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
    from viewkeeper.runtime.keeper import Keeper

    with Keeper.open(project) as keeper:
        target = _target(keeper, source, position)
        started = time.monotonic()
        included = keeper.is_included(source, target)
        while not included and time.monotonic() - started < timeout:
            time.sleep(POLL_SECONDS)
            included = keeper.is_included(source, target)
    seconds = round(time.monotonic() - started, 3)
    if as_json:
        write_json({"included": included, "source": source, "position": target, "seconds": seconds})
    else:
        write_line(f"{source}: {'included' if included else 'not included'} after {seconds:.1f} s")
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
