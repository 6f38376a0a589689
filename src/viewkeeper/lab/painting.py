"""The view update table, message by message: the paper's examples, and seeded runs of the engine."""

from __future__ import annotations

from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.merging.drawing import Drawing
from viewkeeper.simulator.merging.examples import EXAMPLES, played_example
from viewkeeper.simulator.merging.journal import MergeJournal
from viewkeeper.simulator.merging.run import MergeOptions, Painting, simulated_merge

VIEWS_MAX = 8


def painted_example(name: str) -> dict[str, Any]:
    """One of the paper's worked examples."""
    if name not in EXAMPLES:
        raise UsageError(
            "unknown-example",
            f"there is no example {name}",
            detail=f"the examples are {', '.join(EXAMPLES)}",
        )
    example = EXAMPLES[name]
    return {
        "example": name,
        "title": example.title,
        "views": {view: list(relations) for view, relations in example.views.items()},
        "level": str(example.level),
        "is_good": True,
        "steps": _steps(played_example(example)),
    }


def painted_run(painting: str, seed: int, views: int) -> dict[str, Any]:
    """Several views over random sources, judged by the checker."""
    known = [each.value for each in Painting]
    if painting not in known:
        raise UsageError(
            "unknown-painting", f"there is no painting {painting}", detail=f"known: {known}"
        )
    journal = MergeJournal()
    options = MergeOptions(Painting(painting), min(max(views, 2), VIEWS_MAX))
    outcome = simulated_merge(seed, options, journal)
    verdict = outcome.verdict
    return {
        "example": None,
        "title": f"{painting}, seed {seed}: {verdict.counts['transactions']} transactions",
        "views": {view: [manager] for view, manager in outcome.views.items()},
        "level": ", ".join(dict.fromkeys(str(level) for level, _ in verdict.levels.values())),
        "is_good": outcome.is_good,
        "steps": _steps(journal),
    }


def _steps(journal: MergeJournal) -> list[dict[str, Any]]:
    return [
        {
            "message": entry.message,
            "tables": [_table(heading, drawing) for heading, drawing in entry.drawings],
            "commits": list(entry.commits),
        }
        for entry in journal.entries
    ]


def _table(heading: str, drawing: Drawing) -> dict[str, Any]:
    return {
        "heading": heading,
        "views": list(drawing.views),
        "rows": [
            {
                "row": row.number,
                "cells": [
                    {"colour": colour.name.lower(), "text": text} for colour, text in row.cells
                ],
                "lists": list(row.lists),
            }
            for row in drawing.rows
        ],
        "early": list(drawing.early),
    }
