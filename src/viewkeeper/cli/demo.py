"""``viewkeeper demo``: three databases, three views, a kill and an audit, on one's own machine."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from viewkeeper.demo.events import DemoEvent, DemoSummarized, OnDemoEvent
from viewkeeper.terminal import FAILED, GOOD, Json, console, write_json, write_line, write_lines

PREFACE = (
    "Viewkeeper demo: two PostgreSQL servers and a SQLite file play three autonomous databases of a "
    "small shop,\nand three views over them are kept right while everybody writes."
)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("demo")(demo)


def demo(
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, max=3600, help="How long to watch the live views.")
    ] = 14.0,
    headless: Annotated[
        bool, typer.Option("--headless", help="Plain lines instead of a live page.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the project in this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """See it work: live views over three databases, kill -9 in the middle, and an audit at the end.

    Needs no server of yours, ends by itself, and leaves nothing behind.
    """
    if not as_json:
        write_lines(PREFACE, "bold")
    from viewkeeper.spark.java import require_java

    require_java()  # said now, and not after the servers have been started in vain
    from viewkeeper.cli.demo_narration import Lines, Page
    from viewkeeper.demo.story import tell

    if as_json:
        good = tell(_as_json(keep), seconds=seconds, keep=keep)
    else:
        with Lines() if headless or not console().is_terminal else Page() as telling:
            good = tell(telling.on_event, seconds=seconds, keep=keep)
        _show_next(keep)
    raise typer.Exit(GOOD if good else FAILED)


def _as_json(keep: Path | None) -> OnDemoEvent:
    def on_event(event: DemoEvent) -> None:
        if isinstance(event, DemoSummarized):
            event = replace(event, next=tuple(next_commands(keep)))
        write_json(event.as_dict())

    return on_event


def _show_next(keep: Path | None) -> None:
    write_line()
    write_line("Next:", "bold")
    for command in next_commands(keep):
        write_line(f"  {command}")


def next_commands(keep: Path | None) -> list[str]:
    """Three to go on with."""
    if keep is None:
        return [
            "viewkeeper init example && cd example",
            "viewkeeper run --until-caught-up",
            "viewkeeper explain sales",
        ]
    folder = shlex.quote(str(keep))
    best = (
        "SELECT name, sum(amount) AS amount FROM sales GROUP BY name ORDER BY amount DESC LIMIT 5"
    )
    return [
        f'viewkeeper query "{best}" --project {folder}',
        f"viewkeeper history --project {folder}",
        "viewkeeper init example",
    ]
