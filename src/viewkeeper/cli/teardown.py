"""``viewkeeper teardown``: take away at the sources what their feeds needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viewkeeper.cli.run import Project
from viewkeeper.errors import UsageError
from viewkeeper.project.config import ProjectConfig, read_project
from viewkeeper.terminal import Json, write_json, write_line


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("teardown")(teardown)


def teardown(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", help="At these sources.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="At all sources of the project.")
    ] = False,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Remove what was set up at sources: slots, publications, triggers. Views stay as they are.

    For a project that is given up, or a source that leaves it: a slot without a reader keeps the
    server's log from being removed. A view is kept again after `rebuild --source … --allow-setup`.
    """
    from viewkeeper.project.open_project import opened_source

    config = read_project(project)
    named = tuple(config.sources) if everywhere else tuple(dict.fromkeys(sources or ()))
    if bool(sources) == everywhere:
        raise UsageError(
            "teardown-what",
            "name the sources, or all of them with --all",
            hint="viewkeeper teardown SOURCE, or viewkeeper teardown --all",
        )
    chosen = [config.source(name) for name in named]
    _require_rest(config)
    for each in chosen:
        with opened_source(each, allow_setup=True) as source:
            source.teardown()
        if not as_json:
            write_line(f"Nothing of ours is left at source {each.name}")
    if as_json:
        write_json({"ok": True, "sources": list(named)})


def _require_rest(config: ProjectConfig) -> None:
    """A run would lose its feeds: a user who means that stops it first."""
    import datetime as dt

    from viewkeeper.project.settings import storage_of
    from viewkeeper.warehouse import lease

    lease.check_free(storage_of(config), dt.datetime.now(dt.UTC))
