"""``viewkeeper run`` and ``audit``: keep the views, and check them against their sources."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper import run_events as ev
from viewkeeper.cli.ending import GRACE_SECONDS, Ending
from viewkeeper.errors import ViewkeeperError
from viewkeeper.project.config import ProjectConfig
from viewkeeper.terminal import (
    FAILED,
    GOOD,
    INTERRUPTED,
    Json,
    console,
    styled,
    write_json,
    write_line,
)

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper

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
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0,
            help="After Ctrl-C or SIGTERM, end in order for so long, then at once.",
        ),
    ] = GRACE_SECONDS,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Keep the project's views. Goes on from where it stopped; Ctrl-C ends it in order."""
    from viewkeeper.cli.live import LiveTable
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.project.secrets import secrets_of
    from viewkeeper.reports.metrics import Metrics, MetricsServer
    from viewkeeper.reports.run_log import RunLog
    from viewkeeper.reports.run_state import RunState
    from viewkeeper.spark.java import require_java

    require_java()  # said now, and not after every source has been asked
    with (
        Ending(grace) as ending,
        Keeper.open(project, allow_setup=allow_setup) as keeper,
        contextlib.ExitStack() as stack,
    ):
        telling = Telling()
        if log is not None:
            written = stack.enter_context(RunLog(log, secrets_of(keeper.config)))
            telling.listeners.append(written.on_event)
        if ui or ui_port is not None:
            _serve_dashboard(
                keeper.config, ui_port, telling, stack, as_json=as_json, token=ui_token
            )
        if not as_json:
            write_line("Connecting to the sources …", stderr=True)
        wait_seconds = 0.0 if until_caught_up else for_seconds
        _await_sources(keeper, telling, ending.stop, wait_seconds, as_json=as_json)
        if ending.stop.is_set():
            raise KeyboardInterrupt
        views = dict(keeper.views)
        metrics = Metrics()
        state = RunState(keeper.config.folder, views)
        table = None if as_json else LiveTable(views)
        telling.silent[ev.PaintingChanged] = [state.on_event]
        telling.silent[ev.StandingChanged] = [state.on_event, metrics.on_event]
        if until_caught_up:
            telling.silent[ev.ViewsResumed] = [state.on_event]
        telling.listeners += [state.on_event, metrics.on_event]
        telling.listeners.append(_write_event if table is None else table.on_event)
        # Spark takes Ctrl-C for itself when it starts, so we ask for it afterwards.
        keeper.spark  # noqa: B018
        ending.heed()
        stack.enter_context(state)
        if metrics_port is not None:
            stack.enter_context(MetricsServer(metrics, metrics_port))
        if table is not None:
            stack.enter_context(table)
            ending.last_words.append(table.__exit__)
        ending.last_words += [state.__exit__, lambda: telling.on_event(ev.RunInterrupted())]
        report = keeper.run(
            until_caught_up=until_caught_up,
            for_seconds=for_seconds,
            on_event=telling.on_event,
            stop=ending.stop,
        )
        code = INTERRUPTED if until_caught_up and not report.is_caught_up else GOOD
        # What is left is to let go: whoever is in a hurry may cut that short.
        ending.code, ending.last_words = code, []
        if code != GOOD and not ending.stop.is_set():
            raise _not_caught_up(for_seconds)
    raise typer.Exit(code)


def _not_caught_up(seconds: float | None) -> ViewkeeperError:
    return ViewkeeperError(
        "not-caught-up",
        f"the views have not caught up within the {seconds:g} s of --for",
        detail="what was applied until then is in the warehouse",
        hint="run it again, it goes on from there; without --for it takes the time that it needs",
    )


class Telling:
    """Passes the events of a run on, one at a time: groups tell from their own threads."""

    def __init__(self) -> None:
        self.listeners: list[ev.OnEvent] = []
        # Events that are for those who look, no message; and who looks.
        self.silent: dict[type, list[ev.OnEvent]] = {}
        self._lock = threading.Lock()
        self._is_warned = False

    def on_event(self, event: ev.RunEvent) -> None:
        with self._lock:
            for listener in self.silent.get(type(event), self.listeners):
                try:
                    listener(event)
                except BrokenPipeError:
                    raise  # whoever read our output has seen enough
                except OSError as error:
                    self._warn(error)

    def _warn(self, error: OSError) -> None:
        """Output that can't be written, on a full disk say, is no reason to end a run."""
        if not self._is_warned:
            self._is_warned = True
            with contextlib.suppress(OSError):
                write_line(f"Warning: can't write what the run tells: {error}", stderr=True)


def _write_event(event: ev.RunEvent) -> None:
    write_json(event.as_dict())


def _await_sources(
    keeper: Keeper,
    telling: Telling,
    stop: threading.Event,
    seconds_max: float | None,
    *,
    as_json: bool,
) -> None:
    """Until the views can be read, or it is to stop. What is waited for is said once."""
    from viewkeeper.cli.live import sentence

    told: set[str] = set()

    def on_event(event: ev.RunEvent) -> None:
        telling.on_event(event)
        if as_json:
            _write_event(event)
            return
        detail = event.error["detail"] if isinstance(event, ev.SourceWentAway) else ""
        line = f"{sentence(event)} ({detail})" if detail else sentence(event)
        if line not in told:
            told.add(line)
            write_line(line, stderr=True)

    keeper.await_views(on_event, stop, seconds_max)


def _serve_dashboard(
    config: ProjectConfig,
    port: int | None,
    telling: Telling,
    stack: contextlib.ExitStack,
    *,
    as_json: bool,
    token: str | None = None,
) -> None:
    """Up before the sources are asked: a page that says what is missing is worth most then."""
    from viewkeeper.cli.ui import given_token
    from viewkeeper.dashboard.beside import DashboardProcess

    made = DashboardProcess(config.folder, port, given_token(token), telling.on_event)
    server = stack.enter_context(made)
    if as_json:
        _write_event(ev.DashboardOpened(server.url))
    else:
        write_line(f"The dashboard is at {server.url}", stderr=True)


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
    from viewkeeper.project.config import read_project
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.project.requests import AUDIT, Request

    request = Request(AUDIT, () if view is None else (view,))
    told = beside_a_run(read_project(project), request, timeout)
    if told is not None:
        views = list(told["views"])
    else:
        with Ending(raises=True), Keeper.open(project) as keeper:
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
