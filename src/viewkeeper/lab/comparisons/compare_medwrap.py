"""MEDWRAP's tables of time and space, with the number of sources, relations and conflicts varied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from viewkeeper.lab.comparisons.section import PAPER, Section, tell_numbers
from viewkeeper.simulator.medwrap.costs import MedwrapCost, medwrap_costs
from viewkeeper.simulator.plots import Panel, Points, merged
from viewkeeper.terminal import write_line

# What each varies around: the number of sources, of relations at each, of conflicts at each.
SOURCES_FIXED, RELATIONS_PER_SOURCE_FIXED, CONFLICTS_FIXED = 3, 3, 1
SOURCES = (2, 3, 4, 5)
RELATIONS_PER_SOURCE = (1, 2, 3, 4)
CONFLICTS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Measure:
    """A figure of the paper's tables, counted and by its formula where it gives one."""

    title: str
    counted: Callable[[MedwrapCost], int]
    paper: Callable[[MedwrapCost], int] | None


MEASURES = (
    Measure(
        "Questions that sources answer for one update",
        lambda cost: cost.counted.source_reads,
        lambda cost: cost.paper_source_reads,
    ),
    Measure(
        "Messages that wrappers take in for one update",
        lambda cost: cost.counted.wrapper_delays,
        lambda cost: cost.paper_wrapper_delays,
    ),
    Measure(
        "Messages at the mediator for one update",
        lambda cost: cost.counted.mediator_delays,
        lambda cost: cost.paper_mediator_delays,
    ),
    Measure(
        "Rows stored at wrappers (paper: one source view for each source of mre, none else)",
        lambda cost: cost.counted.stored_rows,
        None,
    ),
)
READS, WRAPPERS, MEDIATOR, STORED = MEASURES


@dataclass(frozen=True)
class MedwrapSection(Section):
    """One update, with conflicts at every source that is asked on its behalf."""

    name = "medwrap"
    by_sources: tuple[MedwrapCost, ...]
    by_relations: tuple[MedwrapCost, ...]
    by_conflicts: tuple[MedwrapCost, ...]

    @classmethod
    def measured(cls) -> Self:
        n, m, x = (SOURCES_FIXED,), (RELATIONS_PER_SOURCE_FIXED,), (CONFLICTS_FIXED,)
        return cls(
            tuple(medwrap_costs(SOURCES, m, x)),
            tuple(medwrap_costs(n, RELATIONS_PER_SOURCE, x)),
            tuple(medwrap_costs(n, m, CONFLICTS)),
        )

    @property
    def is_good(self) -> bool:
        """Only MRE stores anything, and the mediator's work does not depend on conflicts."""
        all_costs = (*self.by_sources, *self.by_relations, *self.by_conflicts)
        return all(
            (cost.counted.stored_rows > 0) == (cost.approach == "mre")
            and MEDIATOR.counted(cost) == cost.paper_mediator_delays
            for cost in all_costs
        )

    def tell(self) -> None:
        m = RELATIONS_PER_SOURCE_FIXED
        write_line(
            "MEDWRAP: N sources, Z relations in all, X conflicts at each source that is asked; "
            f"where they don't vary, N={SOURCES_FIXED}, Z={m}N, X={CONFLICTS_FIXED}.",
            "dim",
        )
        heads = [f"N={n}" for n in SOURCES]
        heads += [f"Z={SOURCES_FIXED * per}" for per in RELATIONS_PER_SOURCE]
        heads += [f"X={x}" for x in CONFLICTS]
        costs = (*self.by_sources, *self.by_relations, *self.by_conflicts)
        for measure in MEASURES:
            lines = _lines(costs, measure, lambda cost: 0)
            rows = [(name, [y for _, y in points]) for name, points in lines.items()]
            tell_numbers(measure.title, heads, rows)

    def document(self) -> dict[str, Any]:
        return {
            "by_sources": [cost.as_dict() for cost in self.by_sources],
            "by_relations": [cost.as_dict() for cost in self.by_relations],
            "by_conflicts": [cost.as_dict() for cost in self.by_conflicts],
        }

    def panels(self) -> list[Panel]:
        n = f"sources N, {RELATIONS_PER_SOURCE_FIXED} relations and {CONFLICTS_FIXED} conflict each"
        z = f"relations Z at {SOURCES_FIXED} sources, {CONFLICTS_FIXED} conflict each"
        x = f"conflicts X, {SOURCES_FIXED} sources with {RELATIONS_PER_SOURCE_FIXED} relations"
        by_n, by_z, by_x = self.by_sources, self.by_relations, self.by_conflicts
        reads, wrappers = "questions to sources", "messages at wrappers"
        return [
            _panel("MEDWRAP: sources", n, reads, _lines(by_n, READS, lambda c: c.sources)),
            _panel("MEDWRAP: relations", z, reads, _lines(by_z, READS, lambda c: c.relations)),
            _panel("MEDWRAP: conflicts", x, reads, _lines(by_x, READS, lambda c: c.conflicts)),
            _panel(
                "MEDWRAP: conflicts", x, wrappers, _lines(by_x, WRAPPERS, lambda c: c.conflicts)
            ),
            _panel(
                "MEDWRAP: relations",
                z,
                "messages at the mediator",
                _lines(by_z, MEDIATOR, lambda c: c.relations),
            ),
            _panel(
                "MEDWRAP: space",
                n,
                "rows stored at wrappers",
                _lines(by_n, STORED, lambda c: c.sources),
            ),
        ]


def _lines(
    costs: tuple[MedwrapCost, ...], measure: Measure, x: Callable[[MedwrapCost], int]
) -> dict[str, Points]:
    """For each approach what was counted, and what the paper says."""
    lines: dict[str, Points] = {}
    for approach in dict.fromkeys(cost.approach for cost in costs):
        own = [cost for cost in costs if cost.approach == approach]
        lines[approach] = tuple((x(cost), measure.counted(cost)) for cost in own)
        if measure.paper is not None:
            lines[approach + PAPER] = tuple((x(cost), measure.paper(cost)) for cost in own)
    return lines


def _panel(title: str, x_label: str, y_label: str, lines: dict[str, Points]) -> Panel:
    return Panel(title, x_label, y_label, merged(lines))
