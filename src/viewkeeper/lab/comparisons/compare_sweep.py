"""SWEEP's Table 1, measured, beside what the paper says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from viewkeeper.lab.comparisons.section import Section, new_table, tell_numbers
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.comparison import (
    CLAIMS,
    CONCURRENT,
    SOURCES,
    SOURCES_FIXED,
    Cost,
    Measured,
    compared,
)
from viewkeeper.simulator.plots import Panel, Points, merged
from viewkeeper.terminal import console, write_line


@dataclass(frozen=True)
class SweepSection(Section):
    """One update, and those that arrive before its first answer."""

    name = "sweep"
    found: Measured

    @classmethod
    def measured(cls) -> Self:
        return cls(compared())

    @property
    def is_good(self) -> bool:
        """No protocol missed its level."""
        levels = self.found.levels.items()
        return all(level >= PROTOCOLS[name].level for name, level in levels)

    def tell(self) -> None:
        measured = self.found
        write_line("Levels: the lowest that the checker found in random runs.", "dim")
        table = new_table("level", "paper: level", "messages", "remarks")
        for name, level in measured.levels.items():
            claim = CLAIMS.get(name)
            claimed = (
                ("", "", "not in the table")
                if claim is None
                else (str(claim.level), claim.messages, claim.remark)
            )
            table.add_row(name, str(level), *claimed)
        console().print(table)
        _tell_costs(
            "Queries per update, nothing interferes; by number of sources",
            measured.alone,
            [f"n={n}" for n in SOURCES],
            lambda c: c.queries_per_update,
        )
        _tell_costs(
            "Queries per update, while every other source deletes a row it would have met",
            measured.by_sources,
            [f"n={n}" for n in SOURCES],
            lambda c: c.queries_per_update,
        )
        heads = [f"c={c}" for c in CONCURRENT]
        _tell_costs(
            f"Queries per update, {SOURCES_FIXED} sources; by number of concurrent deletions",
            measured.by_deletions,
            heads,
            lambda c: c.queries_per_update,
        )
        _tell_costs(
            f"Queries per update, {SOURCES_FIXED} sources; by number of concurrent insertions",
            measured.by_insertions,
            heads,
            lambda c: c.queries_per_update,
        )
        _tell_costs(
            "Products asked for in all queries together, concurrent insertions in two of three relations",
            measured.two_relations,
            heads,
            lambda c: c.parts,
        )
        _tell_costs(
            "States that a reader sees, for 1 + c updates",
            measured.by_deletions,
            heads,
            lambda c: c.states,
        )

    def document(self) -> dict[str, Any]:
        measured = self.found
        return {
            "levels": {
                name: {
                    "measured": str(level),
                    "paper": str(CLAIMS[name].level) if name in CLAIMS else None,
                    "messages": CLAIMS[name].messages if name in CLAIMS else None,
                }
                for name, level in measured.levels.items()
            },
            "alone": _costs(measured.alone),
            "by_sources": _costs(measured.by_sources),
            "by_deletions": _costs(measured.by_deletions),
            "by_insertions": _costs(measured.by_insertions),
            "two_relations": _costs(measured.two_relations),
        }

    def panels(self) -> list[Panel]:
        measured = self.found
        queries = "queries per update"
        by_n, by_c = "sources", f"concurrent updates, {SOURCES_FIXED} sources"

        def per_update(cost: Cost) -> float:
            return cost.queries_per_update

        return [
            Panel("Nothing interferes", by_n, queries, _lines(measured.alone, _n, per_update)),
            Panel(
                "Every other source deletes meanwhile",
                by_n,
                queries,
                _lines(measured.by_sources, _n, per_update),
                logarithmic=True,
            ),
            Panel(
                "Deletions meanwhile", by_c, queries, _lines(measured.by_deletions, _c, per_update)
            ),
            Panel(
                "Insertions meanwhile",
                by_c,
                queries,
                _lines(measured.by_insertions, _c, per_update),
            ),
            Panel(
                "How large the questions are",
                "concurrent insertions in two of three relations",
                "products asked for, all queries together",
                _lines(measured.two_relations, _c, lambda cost: cost.parts),
            ),
            Panel(
                "What a reader sees",
                by_c,
                "states for 1 + c updates",
                _lines(measured.by_deletions, _c, lambda cost: cost.states),
            ),
        ]


def _tell_costs(
    title: str, costs: Sequence[Cost], heads: Sequence[str], value: Callable[[Cost], float]
) -> None:
    names = dict.fromkeys(cost.protocol for cost in costs)
    rows = [(name, [value(c) for c in costs if c.protocol == name]) for name in names]
    tell_numbers(title, heads, rows)


def _costs(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    return [
        vars(cost)
        | {"interference": cost.interference.value, "queries_per_update": cost.queries_per_update}
        for cost in costs
    ]


def _n(cost: Cost) -> int:
    return cost.sources


def _c(cost: Cost) -> int:
    return cost.concurrent


def _lines(
    costs: Sequence[Cost], x: Callable[[Cost], int], y: Callable[[Cost], float]
) -> dict[str, Points]:
    names = dict.fromkeys(cost.protocol for cost in costs)
    return merged(
        {name: tuple((x(c), y(c)) for c in costs if c.protocol == name) for name in names}
    )
