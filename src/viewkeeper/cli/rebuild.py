"""``viewkeeper rebuild`` and ``reload``: views refilled, or taken as they are written now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.run import Project
from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.project.config import ProjectConfig, read_project
from viewkeeper.terminal import Json, write_json, write_line

Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer for a run.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("rebuild")(rebuild)
    app.command("reload")(reload)


def rebuild(
    views: Annotated[
        list[str] | None, typer.Argument(metavar="VIEW...", help="These views.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="All views over this source, from where it is now."),
    ] = None,
    allow_setup: Annotated[
        bool,
        typer.Option(
            "--allow-setup", help="Make again at the source what its feed needs (a slot …)."
        ),
    ] = False,
    timeout: Timeout = 3600.0,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Fill views again from their sources. Readers see the old state until the new one is whole.

    Also brings back a view that was retired, or that stopped because its text did not fit. Beside a run,
    the run does it; its other views go on meanwhile.
    """
    from viewkeeper.project.requests import REBUILD, Request

    config = read_project(project)
    named = tuple(dict.fromkeys(views or ()))
    if bool(named) == (source is not None):
        raise UsageError(
            "rebuild-what",
            "name the views to rebuild, or a source with --source",
            hint="viewkeeper rebuild VIEW, or viewkeeper rebuild --source SOURCE",
        )
    _require_known(config, named, source)
    request = Request(REBUILD, named, source, allow_setup)
    told = beside_a_run(config, request, timeout)
    if told is None:
        told = _alone(project, request)
    if as_json:
        write_json({"ok": True, **told})
        return
    names = ", ".join(told["views"]) or "no view"
    write_line(f"Rebuilt {names}: shown from transaction {told['txn']} on, {told['seconds']:.1f} s")


def reload(timeout: Timeout = 600.0, project: Project = Path("."), as_json: Json = False) -> None:
    """Have a run take the views and the knowledge as they are written now.

    New views are filled, others dropped. Where something does not fit, nothing changes.
    """
    from viewkeeper.project.requests import RELOAD, Request

    config = read_project(project)
    told = beside_a_run(config, Request(RELOAD), timeout)
    if told is None:
        raise UsageError(
            "no-run",
            "no run keeps this project now",
            hint="viewkeeper run takes the views as they are written when it starts",
        )
    if as_json:
        write_json({"ok": True, **told})
    else:
        write_line(f"The run keeps {', '.join(told['views'])} now, {told['seconds']:.1f} s")


def _require_known(config: ProjectConfig, views: tuple[str, ...], source: str | None) -> None:
    """What is spelled wrong is said at once, and by nobody else."""
    from viewkeeper.project.open_project import unknown_view
    from viewkeeper.project.views_folder import view_texts

    if source is not None:
        config.source(source)
    written = view_texts(config.views_folder)
    known = [*written.texts, *written.bad]
    for view in views:
        if view not in known and not written.hides:
            raise unknown_view(view, known)


def beside_a_run(
    config: ProjectConfig, request: Any, timeout_seconds: float
) -> Mapping[str, Any] | None:
    """The answer of the run that holds the warehouse; None when none does."""
    import datetime as dt

    from viewkeeper.project.requests import Requests
    from viewkeeper.project.settings import storage_of
    from viewkeeper.warehouse import lease

    try:
        lease.check_free(storage_of(config), dt.datetime.now(dt.UTC))
    except WarehouseError as error:
        if error.code != "warehouse-held":
            raise
        return Requests(config.folder).ask_and_wait(request, timeout_seconds=timeout_seconds)
    return None


def _alone(project: Path, request: Any) -> Mapping[str, Any]:
    from viewkeeper.cli.ending import Ending
    from viewkeeper.project.keeper import Keeper

    with Ending(raises=True), Keeper.open(project) as keeper:
        return keeper.rebuild(request)
