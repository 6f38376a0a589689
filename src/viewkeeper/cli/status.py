"""``viewkeeper status`` and ``wait``: where everything stands, and whether a write is in."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.check import show_security
from viewkeeper.cli.run import Project
from viewkeeper.errors import SourceError, UsageError, WarehouseError
from viewkeeper.terminal import FAILED, GOOD, Grid, Json, console, write_json, write_line

# The state of a source that answers well, and whose changes are not in the views for long.
BEHIND = "behind"


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
    from viewkeeper.project.security import security_of, warnings_in

    with Keeper.open(project) as keeper:
        found = _status(keeper) | {"security": security_of(keeper)}
    problems = problems_of(found)
    if as_json:
        write_json(found | {"ok": not problems, "problems": problems})
    else:
        _show(found)
        for problem in problems:
            write_line(problem)
        show_security(warnings_in(found["security"]) or found["security"])
    raise typer.Exit(FAILED if problems and check else GOOD)


def problems_of(found: dict[str, Any]) -> list[str]:
    """Why not all is well, each in a sentence; empty when it is. Pure."""
    told = []
    if found["state"] not in ("running", "waiting") or (
        found["state"] == "waiting" and not found["approvals"]
    ):
        told.append(f"the run is not running: {found['state']}")
    for change in found["approvals"]:
        told.append(
            f"a change of {change['source']}.{change['relation']} waits for your word "
            f"({change['status']}), and {', '.join(change['views'])} with it: "
            f"viewkeeper evolve shows it, then --approve {change['id']}"
        )
    for name, source in found["sources"].items():
        if source["state"] == BEHIND:
            told.append(f"source {name} is {source['behind_seconds']:,.0f} s behind")
        elif source["state"] != "ok":
            told.append(f"source {name} is not in order: {source['state']}")
    if found.get("warehouse_error"):
        told.append(found["warehouse_error"]["message"])
    for name, view in found["views"].items():
        if view.get("damage"):
            told.append(
                f"{name} is damaged: {view['damage']['message']}: viewkeeper rebuild {name}"
            )
        elif view["error"]:
            told.append(f"{name} is stopped: {view['error']['message']}")
        if view["differs"]:
            told.append(f"{name} differs from its sources, as its audit found")
        if view["is_late"] and view["waits_for"] is None:
            told.append(f"{name} is {view['freshness_seconds']:,.0f} s behind its sources")
    return told


def _status(keeper: Any) -> dict[str, Any]:
    from viewkeeper.dashboard.ledger_tail import at_one_cut, counted_rows
    from viewkeeper.live.standing import BEHIND_SECONDS, allowances, reached_by
    from viewkeeper.reports.run_state import NOBODY_KEEPS, read_run_state
    from viewkeeper.warehouse.recovery import damages_of

    run = read_run_state(keeper.config.folder)
    warehouse, older = _opened(keeper)
    latest = None if warehouse is None else warehouse.latest()
    now = dt.datetime.now(dt.UTC)
    age = None if latest is None else round((now - latest.committed_at).total_seconds(), 1)
    known = {} if latest is None else latest.shown_views
    positions = {} if latest is None else latest.positions
    standing = run.get("standing", {}) if run["state"] not in NOBODY_KEEPS else {}
    allowed = allowances(run, {name: view.positions or positions for name, view in known.items()})
    rows: dict[str, int | None] = {}
    damages: dict[str, Any] = {}
    if warehouse is not None and latest is not None:
        damages = damages_of(warehouse.storage, latest)
        counts = {}
        for name in known:
            try:
                counts[name] = counted_rows(warehouse.storage, latest, name)
            except WarehouseError as error:
                counts[name] = None
                damages.setdefault(name, error)
        rows = at_one_cut(warehouse.storage, latest, counts)
    return {
        "state": run["state"],
        "warehouse_error": older,
        "approvals": standing.get("approvals", []),
        "frontier": 0 if latest is None else latest.last_txn,
        "epoch": 0 if latest is None else latest.epoch,
        "sources": {
            name: _judged(
                _source_status(
                    keeper,
                    name,
                    positions.get(name),
                    reached_by(name, latest, is_kept=run["state"] not in NOBODY_KEEPS),
                ),
                standing.get("sources", {}).get(name),
                BEHIND_SECONDS + allowed.get(name, 0.0),
                now,
            )
            for name in keeper.config.sources
        },
        "views": {
            name: {
                "state": _view_state(view, run, name),
                **_freshness(view, run, standing, name, now),
                "error": run.get("stopped_views", {}).get(name),
                "damage": damages[name].as_dict() if name in damages else None,
                "audit": run.get("audits", {}).get(name),
                "differs": run.get("audits", {}).get(name, {}).get("verdict") == "different",
                "rebuilt": view.definition.rebuilt,
                "level": run["views"].get(name, {}).get("level"),
                "declared": run["views"].get(name, {}).get("declared"),
                "protocol": run["views"].get(name, {}).get("protocol"),
                "why": run["views"].get(name, {}).get("why", []),
                "rows": rows.get(name),
                "epoch": latest.epoch if latest else 0,
                "definition_version": view.definition_version,
                "lag_seconds": age,
            }
            for name, view in known.items()
        },
        "last_batch": run.get("batch"),
    }


def _opened(keeper: Any) -> tuple[Any, dict[str, Any] | None]:
    """The warehouse, if there is one; and what there is to say when it is an older copy."""
    from viewkeeper.project.settings import storage_of
    from viewkeeper.warehouse import Warehouse
    from viewkeeper.warehouse.head import OLDER

    try:
        return keeper.warehouse(with_spark=False), None
    except UsageError:
        return None, None
    except WarehouseError as error:
        if error.code != OLDER:
            raise
        return Warehouse(storage_of(keeper.config)), error.as_dict()


def _freshness(
    view: Any, run: dict[str, Any], standing: dict[str, Any], name: str, now: dt.datetime
) -> dict[str, Any]:
    """How old what the view does not show is, and whether a schema change holds it up."""
    from viewkeeper.live.standing import BEHIND_SECONDS, age_seconds, approval_of

    if view.definition.has_ended or name not in standing.get("views", {}):
        return {"freshness_seconds": None, "is_late": False, "waits_for": None}
    age = age_seconds(standing["views"][name], now)
    period = run["views"].get(name, {}).get("period_seconds") or 0.0
    change = approval_of(standing, name)
    return {
        "freshness_seconds": age,
        "is_late": age > BEHIND_SECONDS + period,
        "waits_for": None if change is None else change["id"],
    }


def _judged(
    source: dict[str, Any], since: str | None, allowed_seconds: float, now: dt.datetime
) -> dict[str, Any]:
    """A source with how far the views are behind it, as it says itself or as the run knows."""
    from viewkeeper.live.standing import age_seconds

    known = [] if since is None else [age_seconds(since, now)]
    known += [] if source["lag_seconds"] is None else [source["lag_seconds"]]
    behind = max(known, default=None)
    is_behind = behind is not None and behind > allowed_seconds and source["state"] == "ok"
    return source | {"behind_seconds": behind} | ({"state": BEHIND} if is_behind else {})


def _view_state(view: Any, run: dict[str, Any], name: str) -> str:
    from viewkeeper.live.standing import kept_state

    if view.definition.has_ended:
        return str(view.definition.ending)
    # A source that can't go on stays so until a run has done something about it, also when none goes.
    return (
        "stopped by its source" if name in run.get("stopped_views", {}) else kept_state(run, name)
    )


def _source_status(keeper: Any, name: str, position: Any, reached: list[Any]) -> dict[str, Any]:
    from viewkeeper.sources.interface import newest_of

    try:
        source = keeper.source(name)
        health = source.health(newest_of(source, reached))
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
