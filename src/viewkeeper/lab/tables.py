"""``lab show`` of several views: the view update table after each message, in its colours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.lab.several_views import ViewsTrial, run_views, write_tables
from viewkeeper.merging.drawing import Drawing
from viewkeeper.simulator.merging.examples import EXAMPLES, MergeExample, played_example
from viewkeeper.simulator.merging.journal import MergeEntry, MergeJournal
from viewkeeper.simulator.merging.pictures import tables_svg
from viewkeeper.terminal import write_file, write_json, write_line

PAPER = "MVC"
# The paper's examples by the names that they have beside other scenarios.
SHOWN: dict[str, MergeExample] = {f"mvc-{name}": example for name, example in EXAMPLES.items()}


def show_example(name: str, protocol: str | None, svg: Path | None, *, as_json: bool) -> None:
    """Let an example's messages arrive, and draw the table after each."""
    if protocol is not None:
        raise UsageError(
            "does-not-apply",
            f"{name} can not be played under a protocol",
            detail="its messages are what arrives at the merge process, whoever maintains the views",
            hint=f"leave out --protocol {protocol}",
        )
    example = SHOWN[name]
    journal = played_example(example)
    _draw(example.title, journal, svg)
    if as_json:
        drawn = {"svg": svg and str(svg), "entries": entry_documents(journal.entries)}
        write_json(heading(name) | drawn)
        return
    write_line(f"{example.title} ({PAPER})", "bold")
    write_line()
    write_tables(journal)
    _tell_file(svg)


def show_seed(
    trial: ViewsTrial, seed: int, scenario: str | None, svg: Path | None, *, as_json: bool
) -> None:
    """Run a seed and draw the tables; exit 1, as ``lab run`` does, when a group misses its level."""
    if scenario is not None:
        raise UsageError(
            "does-not-apply",
            f"the views and the painting of {scenario} can not be chosen",
            hint="leave out the scenario, and a seed makes one; or leave out --views and --painting",
        )

    def draw(journal: MergeJournal) -> dict[str, Any]:
        _draw(f"{trial.options.painting.value}, seed {seed}", journal, svg)
        if not as_json:
            write_tables(journal)
            _tell_file(svg)
            write_line()
        return {"svg": svg and str(svg), "entries": entry_documents(journal.entries)}

    run_views(trial, seed, draw, as_json=as_json)


def heading(name: str) -> dict[str, Any]:
    """What the list of scenarios says of an example."""
    example = SHOWN[name]
    views = {view: list(relations) for view, relations in example.views.items()}
    return {"scenario": name, "title": example.title, "paper": PAPER, "views": views}


def entry_documents(entries: Sequence[MergeEntry]) -> list[dict[str, Any]]:
    """Each message and the tables after it, for JSON."""
    return [
        {
            "message": entry.message,
            "tables": [{"group": group} | _document(drawing) for group, drawing in entry.drawings],
            "commits": list(entry.commits),
        }
        for entry in entries
    ]


def _document(drawing: Drawing) -> dict[str, Any]:
    rows = [
        {
            "update": row.number,
            "colours": [colour.name.lower() for colour, _ in row.cells],
            "cells": [text for _, text in row.cells],
            "waiting": list(row.lists),
        }
        for row in drawing.rows
    ]
    return {"views": list(drawing.views), "rows": rows, "early": list(drawing.early)}


def _draw(title: str, journal: MergeJournal, svg: Path | None) -> None:
    if svg is not None:
        write_file(svg, tables_svg(title, journal.entries))


def _tell_file(svg: Path | None) -> None:
    if svg is not None:
        write_line(f"The tables are in {svg}")
