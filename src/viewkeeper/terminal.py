"""Everything the command line writes: text for people, JSON for programs, errors for both.

Programs get exactly one JSON document on stdout (long-running commands: one per line); people get text
there, and errors on stderr. Knows no command.

Most of what is written came from databases. So nothing is taken for markup, and whatever would steer a
terminal is shown as a visible escape: commands write through here, with `write_line`, `Grid` and `styled`.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from viewkeeper.errors import InvariantViolated, UsageError, ViewkeeperError
from viewkeeper.visible import json_text, visible, visible_lines

GOOD, FAILED, USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130

# Wide enough for tables and charts where the real width is not known (a pipe, a file).
WIDTH_WITHOUT_TERMINAL = 100

# The option that every command has.
Json = Annotated[bool, typer.Option("--json", help="Write one JSON document instead of text.")]


def console(*, stderr: bool = False) -> Console:
    """Where text for people goes. Colours only on a terminal, and not with NO_COLOR."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_WITHOUT_TERMINAL
    return PlainConsole(
        stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


class PlainConsole(Console):
    """Takes no text for markup, and lets no character through that would steer the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible_lines(text), **options)


class Grid(Table):
    """A table whose cells and headings may be anything: each text is shown as it is, on one line."""

    def add_column(self, header: RenderableType = "", *more: Any, **options: Any) -> None:
        super().add_column(_shown(header), *more, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(_shown(cell) for cell in cells), **options)


def _shown(cell: Any) -> Any:
    return Text(visible(cell)) if isinstance(cell, str) else cell


def styled(text: str, style: str = "") -> Text:
    """A text in a style, for a cell or a page that is drawn."""
    return Text(visible(text), style)


def write_json(document: Any) -> None:
    """One JSON document on stdout, on one line: NDJSON if it is called again."""
    sys.stdout.write(json_text(document) + "\n")
    sys.stdout.flush()


def write_line(text: str = "", style: str = "", *, stderr: bool = False) -> None:
    """A line of text exactly as it is: never wrapped or cut, no markup, so that it can be copied."""
    console(stderr=stderr).print(styled(text, style), soft_wrap=True)


def write_lines(text: str, style: str = "", *, stderr: bool = False) -> None:
    """The same for a text that may have several lines."""
    console(stderr=stderr).print(Text(visible_lines(text), style), soft_wrap=True)


def write_file(path: Path, text: str) -> None:
    """A file that the user asked for; raises UsageError where it can't be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "can-not-write",
            f"can't write {path}",
            detail=error.strerror or str(error),
            hint="choose a file in a folder that exists and that you may write to",
        ) from None


def help_if_alone(context: typer.Context) -> None:
    """For groups of commands: without a command, help, and that is no error."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def write_error(error: ViewkeeperError, *, as_json: bool) -> None:
    """An error, with the same fields for people and programs."""
    if as_json:
        write_json({"error": error.as_dict()})
        return
    write_line(f"Error: {error.message} [{error.code}]", "bold red", stderr=True)
    for word, text in (("Detail", error.detail), ("Hint", error.hint)):
        if text:
            # Lines that follow are indented: none of a foreign text can pass for one of ours.
            write_lines(f"{word}: {text}".replace("\n", "\n    "), stderr=True)


def exit_code_of(error: ViewkeeperError) -> int:
    """2 when the user must act, 3 when nothing could be decided, 1 for all that went wrong."""
    # By its code: loading the checker for its class would slow every command down.
    if error.code == "too-many-cuts":
        return UNDECIDED
    return USAGE if isinstance(error, UsageError) else FAILED


def unexpected(error: Exception) -> ViewkeeperError:
    """A foreign exception that was not translated: a defect of ours, said without a traceback."""
    return InvariantViolated(
        "Viewkeeper stopped because of a defect", detail=f"{type(error).__name__}: {error}"
    )


def write_traceback() -> None:
    """The traceback of the exception being handled, for --verbose."""
    sys.stderr.write(visible_lines(traceback.format_exc()))
