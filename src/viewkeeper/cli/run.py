"""``viewkeeper run`` and ``audit``: keep the views, and check them against their sources."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.cli.output import FAILED, GOOD, Json, console, styled, write_json, write_line
from viewkeeper.project import ProjectConfig

if TYPE_CHECKING:
    from viewkeeper.runtime.keeper import Keeper

Project = Annotated[
    Path, typer.Option("--project", help="The project's folder, with its viewkeeper.toml.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("run")(run)
    app.command("audit")(audit)


def run(
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Stop when all that is committed now is in.")
    ] = False,
    for_seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", help="Stop after so many seconds.")
    ] = None,
    allow_setup: Annotated[
        bool, typer.Option("--allow-setup", help="Set the sources up first, where that is missing.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", help="Serve /metrics for Prometheus on this loopback port."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Log JSON lines there (rotating); - is stderr."),
    ] = None,
    ui: Annotated[
        bool, typer.Option("--ui", help="Serve the dashboard on loopback beside the run.")
    ] = False,
    ui_port: Annotated[
        int | None, typer.Option("--ui-port", min=0, max=65535, help="On this port; 0 takes any.")
    ] = None,
    ui_token: Annotated[
        str | None,
        typer.Option(
            "--ui-token", envvar="VIEWKEEPER_TOKEN", help="The dashboard asks for this token."
        ),
    ] = None,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Keep the project's views. Goes on from where it stopped; Ctrl-C ends it in order."""
    from viewkeeper.cli.live import LiveTable
    from viewkeeper.runtime.keeper import Keeper
    from viewkeeper.runtime.metrics import Metrics, MetricsServer
    from viewkeeper.runtime.run_log import RunLog, secrets_of
    from viewkeeper.runtime.run_state import RunState
    from viewkeeper.spark.java import require_java

    require_java()  # said now, and not after every source has been asked
    stop = threading.Event()
    with Keeper.open(project, allow_setup=allow_setup) as keeper, contextlib.ExitStack() as stack:
        listeners: list[Callable[[dict[str, Any]], None]] = []
        if log is not None:
            written = stack.enter_context(RunLog(log, secrets_of(keeper.config)))
            listeners.append(written.on_event)
        if ui or ui_port is not None:
            _serve_dashboard(keeper.config, ui_port, ui_token, stack, as_json=as_json)
        if not as_json:
            write_line("Connecting to the sources …", stderr=True)
        _await_sources(keeper, listeners, 0.0 if until_caught_up else for_seconds, as_json=as_json)
        views = dict(keeper.views)
        metrics = Metrics()
        state = RunState(keeper.config.folder, views)
        table = None if as_json else LiveTable(views)
        listeners += [state.on_event, metrics.on_event]
        listeners.append(write_json if table is None else table.on_event)

        telling = threading.Lock()

        def on_event(event: dict[str, Any]) -> None:
            # Groups tell from their own threads: nobody's line may stand in another's.
            with telling:
                # The view update table and what is not shown change all the time: they are for those
                # who look, no message.
                match event["event"]:
                    case "merge":
                        state.on_event(event)
                    case "standing":
                        state.on_event(event)
                        metrics.on_event(event)
                    case _:
                        for listener in listeners:
                            listener(event)

        # Spark takes Ctrl-C for itself when it starts, so we ask for it afterwards.
        keeper.spark  # noqa: B018
        _end_in_order(stop)
        stack.enter_context(state)
        if metrics_port is not None:
            stack.enter_context(MetricsServer(metrics, metrics_port))
        if table is not None:
            stack.enter_context(table)
        keeper.run(
            until_caught_up=until_caught_up,
            for_seconds=for_seconds,
            on_event=on_event,
            stop=stop,
        )


def _await_sources(
    keeper: Keeper,
    listeners: Sequence[Callable[[dict[str, Any]], None]],
    seconds_max: float | None,
    *,
    as_json: bool,
) -> None:
    """Until the views can be read; Ctrl-C ends it as usual. What is waited for is said once."""
    from viewkeeper.cli.live import sentence

    told: set[str] = set()

    def on_event(event: dict[str, Any]) -> None:
        for listener in (*listeners, *([write_json] if as_json else [])):
            listener(event)
        detail = event["error"]["detail"]
        line = f"{sentence(event)} ({detail})" if detail else sentence(event)
        if not as_json and line not in told:
            told.add(line)
            write_line(line, stderr=True)

    keeper.await_views(on_event, threading.Event(), seconds_max)


def _serve_dashboard(
    config: ProjectConfig,
    port: int | None,
    token: str | None,
    stack: contextlib.ExitStack,
    *,
    as_json: bool,
) -> None:
    """Up before the sources are asked: a page that says what is missing is worth most then."""
    from viewkeeper.cli.ui import given_token
    from viewkeeper.dashboard.server import PORT, DashboardServer

    made = DashboardServer(config, port=PORT if port is None else port, token=given_token(token))
    server = stack.enter_context(made)
    if as_json:
        write_json({"event": "dashboard", "url": server.url})
    else:
        write_line(f"The dashboard is at {server.url}", stderr=True)


def _end_in_order(stop: threading.Event) -> None:
    """The first Ctrl-C (or SIGTERM) finishes the batch at hand; the second one ends at once."""

    def handle(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)


def audit(
    view: Annotated[str | None, typer.Argument(help="One view; all of them without it.")] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer for a run.")
    ] = 3600.0,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Recompute views at an exact cut of the sources and compare them row by row.

    Beside a run, the run does it, at the state that it stands at.
    """
    from viewkeeper.cli.rebuild import beside_a_run
    from viewkeeper.project import read_project
    from viewkeeper.runtime.keeper import Keeper
    from viewkeeper.runtime.requests import AUDIT, Request

    request = Request(AUDIT, () if view is None else (view,))
    told = beside_a_run(read_project(project), request, timeout)
    if told is not None:
        views = list(told["views"])
    else:
        with Keeper.open(project) as keeper:
            views = [audit.as_dict() for audit in keeper.audit(view)]
    good = all(found["verdict"] == "equal" for found in views)
    if as_json:
        write_json({"ok": good, "views": views})
    else:
        for each in views:
            _show_audit(each)
    raise typer.Exit(GOOD if good else FAILED)


def _show_audit(found: dict[str, Any]) -> None:
    mark, style = ("✓", "green") if found["verdict"] == "equal" else ("✗", "bold red")
    told = (
        f"{found['view']}: {found['verdict']}, {found['rows']} rows at transaction {found['txn']}"
    )
    console().print(styled(mark, style).append_text(styled(f" {told}", "default")), soft_wrap=True)
    for kind in ("missing", "extra"):
        for row in found[kind]:
            write_line(f"    {kind} {tuple(row['row'])!r} × {row['count']}")
