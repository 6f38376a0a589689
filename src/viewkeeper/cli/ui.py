"""``viewkeeper ui``: the dashboard in a browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from viewkeeper.cli.run import Project
from viewkeeper.project.config import read_project
from viewkeeper.run_events import DashboardOpened
from viewkeeper.terminal import Json, write_json, write_line

TOKEN = "VIEWKEEPER_TOKEN"


def given_token(token: str | None) -> str | None:
    """As on the command line, or as the environment has it: also an empty one, which is then refused.

    The parser takes an empty variable for none, and the dashboard would be open to all.
    """
    return os.environ.get(TOKEN) if token is None else token


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("ui")(ui)


def ui(
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; off loopback with a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar=TOKEN, help="Ask for this token, on loopback too."),
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Serve the dashboard: sources, views, time travel, merging, the lab. Ctrl-C ends it."""
    config = read_project(project)
    from viewkeeper.dashboard.server import PORT, DashboardServer

    server = DashboardServer(config, host, PORT if port is None else port, given_token(token))
    if as_json:
        write_json(DashboardOpened(server.url).as_dict())
    else:
        write_line(f"The dashboard is at {server.url}   (Ctrl-C ends it)")
    if browse:
        webbrowser.open(server.url)
    server.run()
