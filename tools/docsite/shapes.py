"""What every command says with ``--json``: the commands are run on the example project, and looked at."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

from viewkeeper.cli import execute

# Run in this order, in the folder of a project that the first one makes.
RUNS = (
    "viewkeeper init shop",
    "viewkeeper check",
    "viewkeeper run --until-caught-up",
    "viewkeeper explain sales",
    "viewkeeper advise",
    "viewkeeper status",
    "viewkeeper query 'SELECT * FROM sales LIMIT 1'",
    "viewkeeper history --limit 1",
    "viewkeeper audit names",
    "viewkeeper wait --source shop",
    "viewkeeper evolve",
    "viewkeeper vacuum",
    "viewkeeper lab run --protocol sweep --transactions 3",
    "viewkeeper lab swarm --protocol sweep --seeds 3",
    "viewkeeper lab protocols",
    "viewkeeper lab show sweep-figure-5",
)


def page() -> str:
    """The page; starts Spark, and takes half a minute."""
    lines = [
        "# JSON\n",
        (
            "Made by `make reference`, which runs the commands on the example project. One document on stdout; `run` and "
            '`demo` write one per line. Errors are `{"error": {…}}` with the [fields of every error](errors.md), and the '
            "exit code is the same as with text. The [events](events.md) of `run` and `demo` have a page.\n"
        ),
        "Below, a value's type stands for it; of a list the first element is shown.",
    ]
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        for command in RUNS:
            words = shlex.split(command)[1:]
            told = _told(words)
            if words[0] == "init":
                os.chdir("shop")
            shown = json.dumps(shape(told), indent=2, ensure_ascii=False)
            lines.append(f"\n## {command}\n\n```json\n{shown}\n```")
    return "\n".join(lines) + "\n"


def shape(value: Any) -> Any:
    """A document with the names of types in place of values; keys that are data become one."""
    match value:
        case dict():
            shapes = {key: shape(inner) for key, inner in value.items()}
            texts = {json.dumps(inner, sort_keys=True) for inner in shapes.values()}
            if (
                len(shapes) > 1
                and len(texts) == 1
                and isinstance(next(iter(shapes.values())), dict)
            ):
                return {"NAME": next(iter(shapes.values()))}
            return shapes
        case list():
            return [shape(value[0])] if value else []
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case None:
            return "null"
        case _:
            return "text"


@contextlib.contextmanager
def _inside(folder: Path) -> Any:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _told(words: list[str]) -> Any:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        execute([*words, "--json"])
    documents = [json.loads(line) for line in output.getvalue().splitlines() if line.strip()]
    return documents[-1] if documents else None
