"""``viewkeeper init``: a project that works, to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from viewkeeper.terminal import Json, write_json, write_line


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("init")(init)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made if it is not there.")],
    example: Annotated[
        str | None,
        typer.Option(
            "--example", metavar="NAME", help="A numbered example instead, by its number."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write an example project: two small SQLite files as sources, and three views over them.

    With --example one of the numbered examples of the documentation, whose README tells what to do.
    """
    from viewkeeper.demo.example_project import write_example

    files = write_example(folder, example)
    commands = next_commands(folder) if example is None else _to_its_readme(folder)
    if as_json:
        write_json({"folder": str(folder), "files": list(files), "next": commands})
        return
    write_line(f"A project is in {folder}:", "bold")
    for name in files:
        write_line(f"  {name}")
    write_line()
    write_line("Next:", "bold")
    for command in commands:
        write_line(f"  {command}")


def _to_its_readme(folder: Path) -> list[str]:
    return [*_to(folder), "cat README.md"]


def _to(folder: Path) -> list[str]:
    here = folder.resolve() == Path.cwd()
    return [] if here else [f"cd {shlex.quote(str(folder))}"]


def next_commands(folder: Path) -> list[str]:
    """What to type now."""
    return [
        *_to(folder),
        "viewkeeper run --until-caught-up",
        'viewkeeper query "SELECT region, sum(amount) AS amount FROM sales GROUP BY region"',
        "viewkeeper explain sales",
    ]
