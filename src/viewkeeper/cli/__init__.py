"""The command line: for people text, for programs ``--json``.

One duty: to turn words into calls and results into output. It must not know protocol internals. Exit
codes everywhere: 0 good, 1 a check failed, 2 usage, 3 undecided, 130 interrupted.

Commands import what they do only when they run, so that ``--help`` is there at once. Begin with `run`;
each command is a module of its name; all write with `viewkeeper.terminal`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from viewkeeper import __version__
from viewkeeper.cli import (
    advise,
    check,
    completion,
    demo,
    evolve,
    explain,
    import_dbt,
    init,
    lab,
    rebuild,
    run,
    status,
    teardown,
    ui,
    verify,
    warehouse,
)
from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.terminal import (
    FAILED,
    GOOD,
    INTERRUPTED,
    exit_code_of,
    help_if_alone,
    unexpected,
    write_error,
    write_line,
    write_traceback,
)

app = typer.Typer(
    name="viewkeeper",
    help="Materialized views over several autonomous databases: always right, soon fresh.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        write_line(f"viewkeeper {__version__}")
        raise typer.Exit(GOOD)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show tracebacks (may stand anywhere).")
    ] = False,
) -> None:
    help_if_alone(context)


for part in (
    demo, init, check, explain, advise, run, status, rebuild, teardown, evolve, warehouse, verify, lab,
    ui, import_dbt, completion,
):  # fmt: skip
    part.register(app)


def main() -> NoReturn:
    """The console script. What it and its Spark write is its user's alone, unless the project says else."""
    os.umask(0o077)
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is reported, none gets out."""
    # Looked for among the words: they must count also when the words can't be parsed.
    as_json, verbose = "--json" in arguments, "--verbose" in arguments
    try:
        code = _invoked(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has seen enough (`| head`). Python would complain again when it
        # flushes at its end: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except ViewkeeperError as error:
        if verbose:
            write_traceback()
        write_error(error, as_json=as_json)
        return exit_code_of(error)
    except Exception as error:
        if verbose:
            write_traceback()
        write_error(unexpected(error), as_json=as_json)
        return FAILED
    if code == INTERRUPTED:
        write_line("Interrupted.", stderr=True)
    return code


def _invoked(arguments: Sequence[str]) -> int:
    words = [word for word in arguments if word != "--verbose"]
    completion.prepare()
    try:
        # Not standalone: exit codes come back as values, and Ctrl-C as 130.
        code: Any = app(args=words, prog_name="viewkeeper", standalone_mode=False)
    except typer.TyperException as error:
        raise _usage_error(error) from None
    except SystemExit as stopped:
        code = stopped.code
    return code if isinstance(code, int) else GOOD


def _usage_error(error: typer.TyperException) -> UsageError:
    """What the parser of the command line has to say, in the form of all our errors."""
    told = getattr(error, "format_message", None)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "viewkeeper"
    message = (told() if told is not None else str(error)).rstrip(".")
    return UsageError("command-line", message, hint=f"see `{command} --help`")
