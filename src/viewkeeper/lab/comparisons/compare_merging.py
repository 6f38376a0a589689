"""MVC, section 7: what views lose in freshness by waiting for each other, and when the merge process is the bottleneck.

The paper plans to study both. They are measured on the engine in simulated time (`simulator.engine.timing`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from viewkeeper.lab.comparisons.section import Section, tell_numbers
from viewkeeper.simulator.engine.timing import Durations, Study, timed
from viewkeeper.simulator.plots import Panel, Points
from viewkeeper.terminal import write_line

VIEWS = (1, 2, 4, 8)
LOADS = (10, 20, 50, 100)
HEAVY_LOADS = (50, 100, 200, 400, 800)
SEEDS = (1, 2, 3)
# Managers and commits that cost so little that messages count.
CHEAP = Durations(job=2.0, commit=1.0, cuts=0.5)
BUSY = 0.9
ALONE, MERGED = "each view alone", "merged"
SINGLE, BATCHED = "one update a row (paper)", "as much as waits a row"

Lines = dict[str, Points]


@dataclass(frozen=True)
class MergingSection(Section):
    """Milliseconds and shares of time, by number of views and by load."""

    name = "merging"
    by_views: Lines
    by_load: Lines
    busy: Lines

    @classmethod
    def measured(cls) -> Self:
        kinds = {ALONE: False, MERGED: True}
        rows = {SINGLE: 1, BATCHED: 50_000}
        return cls(
            {
                name: tuple((n, _delay(Study(n, 20, is_merged))) for n in VIEWS)
                for name, is_merged in kinds.items()
            },
            {
                name: tuple((load, _delay(Study(4, load, is_merged))) for load in LOADS)
                for name, is_merged in kinds.items()
            },
            {
                name: tuple((load, _busy(load, most)) for load in HEAVY_LOADS)
                for name, most in rows.items()
            },
        )

    @property
    def is_good(self) -> bool:
        """One view waits for no other, and no view is fresher for waiting."""
        pairs = [
            (alone, merged)
            for lines in (self.by_views, self.by_load)
            for (_, alone), (_, merged) in zip(lines[ALONE], lines[MERGED], strict=True)
        ]
        return pairs[0][0] == pairs[0][1] and all(alone <= merged for alone, merged in pairs)

    def bottleneck(self, name: str) -> float | None:
        """The lowest load at which the merge process is busy nearly all the time."""
        return next((load for load, share in self.busy[name] if share >= BUSY), None)

    def tell(self) -> None:
        took = Durations()
        write_line(
            f"MVC, section 7: a message takes {took.message:g} ms, a job {took.job:g} ms in the mean, "
            f"a commit {took.commit:g} ms.",
            "dim",
        )
        shown = "Milliseconds until a transaction is shown, in the mean"
        views = [f"views={n}" for n in VIEWS]
        tell_numbers(f"{shown}; 20 transactions a second", views, _rows(self.by_views), "")
        loads = [f"load={n}" for n in LOADS]
        title = f"{shown}; 4 views, load in transactions a second"
        tell_numbers(title, loads, _rows(self.by_load), "")
        heavy = [f"load={n}" for n in HEAVY_LOADS]
        title = f"Share of time that the merge process is busy; 8 views, jobs of {CHEAP.job:g} ms"
        tell_numbers(title, heavy, _rows(self.busy), "")
        write_line()
        for name in self.busy:
            load = self.bottleneck(name)
            found = "at none of these loads" if load is None else f"from {load:g} a second on"
            write_line(f"The merge process is the bottleneck, {name}: {found}")

    def document(self) -> dict[str, Any]:
        return {
            "delay_ms_by_views": _as_dict(self.by_views),
            "delay_ms_by_load": _as_dict(self.by_load),
            "merge_busy_by_load": _as_dict(self.busy),
            "bottleneck_from": {name: self.bottleneck(name) for name in self.busy},
        }

    def panels(self) -> list[Panel]:
        return [
            Panel("MVC: views that share a relation", "views", "ms until shown", self.by_views),
            Panel("MVC: load", "transactions a second", "ms until shown", self.by_load),
            Panel("MVC: the merge process", "transactions a second", "share busy", self.busy),
        ]


def _delay(study: Study) -> float:
    """Over some seeds, in the mean."""
    return sum(timed(replace(study, seed=seed)).delay_ms for seed in SEEDS) / len(SEEDS)


def _busy(load: float, batch_max: int) -> float:
    return timed(Study(8, load, True, batch_max, durations=CHEAP)).merge_busy


def _rows(lines: Lines) -> list[tuple[str, list[float]]]:
    return [(name, [y for _, y in points]) for name, points in lines.items()]


def _as_dict(lines: Lines) -> dict[str, dict[str, float]]:
    return {name: {f"{x:g}": y for x, y in points} for name, points in lines.items()}
