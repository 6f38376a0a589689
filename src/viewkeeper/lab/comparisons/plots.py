"""Comparison plots: what ``lab compare`` measures, and how far behind its sources a reader's view is.

Measured once per process: it takes some seconds, and always gives the same.
"""

from __future__ import annotations

import functools
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.lab.comparisons.comparing import SECTIONS
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.plots import Panel
from viewkeeper.simulator.run import simulated

STALENESS = "staleness"
# Protocols whose staleness is compared, by number of sources, over these seeds.
COMPARED = ("sweep", "parallel-sweep", "nested-sweep", "strobe", "c-strobe", "eca", "recompute")
SOURCES = (2, 3, 4, 5)
SEEDS = range(1, 7)
TRANSACTIONS = 8


def plot_names() -> list[str]:
    return [*SECTIONS, STALENESS]


@functools.cache
def plotted(name: str) -> list[dict[str, Any]]:
    """The panels of one comparison; raises UsageError on a name that is none."""
    if name == STALENESS:
        return [_panel(_staleness_panel())]
    if name not in SECTIONS:
        known = ", ".join(plot_names())
        raise UsageError("unknown-plot", f"there is no comparison {name}", detail=f"known: {known}")
    return [_panel(panel) for panel in SECTIONS[name].measured().panels()]


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "x": panel.x_label,
        "y": panel.y_label,
        "logarithmic": panel.logarithmic,
        "lines": [
            {"name": name, "points": [list(point) for point in points]}
            for name, points in panel.lines.items()
        ],
    }


def _staleness_panel() -> Panel:
    lines = {name: tuple((n, staleness(PROTOCOLS[name], n)) for n in SOURCES) for name in COMPARED}
    return Panel(
        "How far behind a reader's view is",
        "sources",
        "transactions committed and not yet shown, in the mean",
        lines,
    )


def staleness(protocol: type[Protocol], sources: int) -> float:
    """Over all steps of some runs: how many committed transactions the view does not show yet."""
    assumes = protocol.assumes
    size = Size(sources, TRANSACTIONS, Shape.CHAIN, assumes.keys, assumes.one_source)
    behind: list[int] = []
    for seed in SEEDS:
        journal = Journal()
        simulated(protocol, seed, size, journal=journal)
        behind += _behind(journal)
    return sum(behind) / len(behind)


def _behind(journal: Journal) -> list[int]:
    committed = shown = 0
    found = []
    for entry in journal.entries:
        committed += entry.kind == "commit"
        if "cut" in entry.facts:
            shown = sum(dict(entry.facts["cut"]).values())
        found.append(committed - shown)
    return found
