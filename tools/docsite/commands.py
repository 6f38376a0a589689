"""The command line as it is: every command, argument and option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from viewkeeper.cli import app


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by the words that call it."""
    yield from _below("viewkeeper", typer.main.get_command(app))


def _below(words: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _below(f"{words} {name}", command)
        else:
            yield f"{words} {name}", command


def page() -> str:
    lines = [
        "# Commands\n",
        (
            "Made from the program by `make reference`. Every command has `--help` and `--json`. Exit codes: 0 good, "
            "1 a check failed, 2 usage, 3 undecided, 130 interrupted. `--verbose` may stand anywhere and shows "
            "tracebacks.\n"
        ),
        "| command | |\n|---|---|",
    ]
    found = list(commands())
    for words, command in found:
        anchor = words.replace(" ", "-")
        lines.append(f"| [`{words}`](#{anchor}) | {_first(command.help)} |")
    for words, command in found:
        lines += [f"\n## {words}\n", _told(command.help), *_parameters(command)]
    return "\n".join(lines) + "\n"


def _first(text: str) -> str:
    return _told(text).split("\n")[0]


def _told(text: str) -> str:
    return "\n".join(line.strip() for line in (text or "").strip().splitlines())


def _parameters(command: Any) -> list[str]:
    rows = []
    for parameter in command.params:
        if "--help" in parameter.opts:
            continue
        rows.append(f"| `{written(parameter)}` | {_cell(parameter)} |")
    return ["\n| | |\n|---|---|", *rows] if rows else []


def written(parameter: Any) -> str:
    """How one writes it."""
    kind = "" if parameter.param_type_name == "argument" else parameter.metavar
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
        return name if parameter.required else f"[{name}]"
    names = ", ".join(parameter.opts)
    if parameter.is_flag:
        return names
    kind = parameter.metavar or _kind(parameter.type_descriptor.annotation)
    return f"{names} {kind}"


def _kind(annotation: Any) -> str:
    values = getattr(annotation, "__args__", ())
    if values and all(isinstance(value, str) for value in values):
        return "\\|".join(values)
    return {"Path": "PATH", "int": "N", "float": "NUMBER"}.get(
        getattr(annotation, "__name__", ""), "TEXT"
    )


def _cell(parameter: Any) -> str:
    text = (parameter.help or "").replace("|", "\\|")
    default = parameter.default
    if parameter.required:
        text += " Required."
    elif default not in (None, False, (), []) and not callable(default):
        text += f" Default: `{default}`."
    return text
