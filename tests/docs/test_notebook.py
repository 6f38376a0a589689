"""The notebook runs, and its pictures show what its words say. `make notebook` puts them into it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

NOTEBOOK = Path(__file__).parents[2] / "src/viewkeeper/examples/staleness-and-messages.ipynb"
REWRITING = os.environ.get("VIEWKEEPER_REWRITE_DOCS") == "1"

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def ran(source: str, names: dict[str, object]) -> tuple[object, str]:
    """Run a cell as a notebook does: the value of its last line, and what it printed."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value, printed.getvalue()


def outputs(value: object, printed: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    if printed:
        found.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(True)})
    if value is not None:
        svg = value._repr_svg_()
        data = {"image/svg+xml": svg.splitlines(True), "text/plain": ["a picture"]}
        found.append({"output_type": "display_data", "data": data, "metadata": {}})
    return found


def test_every_cell_runs_and_the_pictures_hold_what_they_should(running_spark) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "__notebook__"}
    pictures = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            value, printed = ran("".join(cell["source"]), names)
            cell["outputs"] = outputs(value, printed)
            if value is not None:
                pictures.append(value._repr_svg_())
    assert names["report"].transactions == names["TRANSACTIONS"]
    assert all(seconds >= 0 for _, seconds in names["freshness"])
    # Fewer questions than one for each transaction and source: batches share them.
    assert sum(asked for _, asked in names["each"]) < names["TRANSACTIONS"]
    sweep, c_strobe = names["disturbed"]["sweep"], names["disturbed"]["c-strobe"]
    assert len({questions for _, questions in sweep}) == 1
    assert c_strobe[-1][1] > 2 * sweep[-1][1]
    assert len(pictures) == 2
    for picture in pictures:
        ElementTree.fromstring(picture)
    if REWRITING:
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        NOTEBOOK.write_text(text, encoding="utf-8")


def test_its_pictures_are_in_it() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    data = [o.get("data", {}) for c in notebook["cells"] for o in c.get("outputs", ())]
    assert sum("image/svg+xml" in each for each in data) == 2, "run make notebook"
