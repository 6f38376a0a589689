"""``viewkeeper completion``: what makes a shell complete commands and options."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from viewkeeper.terminal import Json, write_json

_VARIABLE = "_VIEWKEEPER_COMPLETE"

_PLACES = {
    "bash": "~/.local/share/bash-completion/completions/viewkeeper",
    "zsh": "a folder of $fpath, as _viewkeeper",
    "fish": "~/.config/fish/completions/viewkeeper.fish",
}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("completion")(completion)


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Which shell.")],
    as_json: Json = False,
) -> None:
    """Print the script that makes a shell complete viewkeeper's commands and options.

    bash: eval "$(viewkeeper completion bash)"; fish: viewkeeper completion fish | source.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="viewkeeper", complete_var=_VARIABLE, shell=shell)
    if as_json:
        write_json({"shell": shell, "script": script, "place": _PLACES[shell]})
    else:
        typer.echo(script)


def prepare() -> None:
    """Teach the parser our shells, if a shell is asking; costs nothing otherwise."""
    if _VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
