"""Everything the command line writes: text for people, JSON for programs, errors for both.

Programs get exactly one JSON document on stdout (long-running commands: one per line); people get text
there, and errors on stderr. Knows no command.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from viewkeeper.errors import InvariantViolated, UsageError, ViewkeeperError

GOOD, FAILED, USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130

# Wide enough for tables and charts where nobody can tell us the real width (a pipe, a file).
WIDTH_WITHOUT_TERMINAL = 100

# The option that every command has.
Json = Annotated[bool, typer.Option("--json", help="Write one JSON document instead of text.")]


def console(*, stderr: bool = False) -> Console:
    """Where text for people goes. Colours only on a terminal, and not with NO_COLOR."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_WITHOUT_TERMINAL
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def write_json(document: Any) -> None:
    """One JSON document on stdout, on one line: NDJSON if it is called again."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def write_line(text: str = "", style: str = "", *, stderr: bool = False) -> None:
    """A line of text exactly as it is: never wrapped or cut, no markup, so that it can be copied."""
    console(stderr=stderr).print(Text(text, style=style), soft_wrap=True)


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
    if error.detail:
        write_line(f"Detail: {error.detail}", stderr=True)
    if error.hint:
        write_line(f"Hint: {error.hint}", stderr=True)


def exit_code_of(error: ViewkeeperError) -> int:
    """2 when the user must act, 3 when nothing could be decided, 1 for all that went wrong."""
    # By its code: loading the checker for its class would slow every command down.
    if error.code == "too-many-cuts":
        return UNDECIDED
    return USAGE if isinstance(error, UsageError) else FAILED


def unexpected(error: Exception) -> ViewkeeperError:
    """A foreign exception that nobody translated: a defect of ours, said without a traceback."""
    return InvariantViolated(
        "Viewkeeper stopped because of a defect", detail=f"{type(error).__name__}: {error}"
    )


def write_traceback() -> None:
    """The traceback of the exception being handled, for --verbose."""
    sys.stderr.write(traceback.format_exc())
