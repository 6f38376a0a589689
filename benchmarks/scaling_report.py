"""What scaling found, for people: tables, line charts of measured beside expected, a part of a document."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from viewkeeper.simulator.plots import Panel, small_multiples

BEGIN, END = "<!-- bench-scaling: begin -->", "<!-- bench-scaling: end -->"
PICTURE = "scaling.svg"


@dataclass(frozen=True)
class Curve:
    """What was measured at some sizes, and what the law that we expect says there."""

    figure: str
    over: str
    sizes: Sequence[int]
    measured: Sequence[float]
    law: str
    expected: Sequence[float]

    @classmethod
    def linear(
        cls, figure: str, over: str, sizes: Sequence[int], measured: Sequence[float], law: str
    ) -> Curve:
        """Expected: the line through the first and the last point; those between are the test."""
        slope = (measured[-1] - measured[0]) / (sizes[-1] - sizes[0])
        expected = [measured[0] + slope * (size - sizes[0]) for size in sizes]
        return cls(figure, over, sizes, measured, law, expected)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def table(found: Mapping[str, Any]) -> str:
    parts = []
    if "workers" in found:
        parts.append(_workers(found["workers"]))
    for each in found.get("curves", ()):
        curve = Curve(**each)
        rows = (
            f"| {size:,} | {measured:,.4g} | {expected:,.4g} |"
            for size, measured, expected in zip(
                curve.sizes, curve.measured, curve.expected, strict=True
            )
        )
        head = f"| {curve.over} | {curve.figure} | expected: {curve.law} |\n|---:|---:|---:|"
        parts.append("\n".join([head, *rows]))
    return "\n\n".join(parts)


def _workers(runs: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| workers | initial load, s | CPU s of all workers | CPU s of the busiest worker | CPU s of the driver |",
        "|---:|---:|---:|---:|---:|",
    ]
    medians = {}
    for count in (1, 2):
        mine = [run for run in runs if run["workers"] == count]
        busy = [run["cpu_seconds_by_worker"] for run in mine]
        figures = [
            statistics.median(run["seconds"] for run in mine),
            statistics.median(sum(each) for each in busy),
            statistics.median(max(each) for each in busy),
            statistics.median(run["cpu_seconds_driver"] for run in mine),
        ]
        medians[count] = figures
        lines.append(f"| {count} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")
    elapsed = medians[1][0] / medians[2][0]
    by_cpu = medians[1][2] / medians[2][2]
    lines.append(
        f"\nTwo workers beside one: {elapsed:.2f} × by the clock, {by_cpu:.2f} × by the CPU seconds of the "
        "busiest worker, which is what the clock would show if the executors' work were all there is and "
        "every process had a processor."
    )
    return "\n".join(lines)


def into_document(found: Mapping[str, Any], document: Path) -> None:
    """Write the generated part anew, with the picture in ``images`` beside the document."""
    parts = [table(found)]
    panels = [_panel(Curve(**each)) for each in found.get("curves", ())]
    if panels:
        folder = document.parent / "images"
        folder.mkdir(exist_ok=True)
        subtitle = f"{found['processors']} processors, all databases on the same machine"
        picture = small_multiples("How cost grows", subtitle, panels)
        (folder / PICTURE).write_text(picture)
        parts.append(f"![how cost grows](images/{PICTURE})")
    before, rest = document.read_text().split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    document.write_text(before + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + after)


def _panel(curve: Curve) -> Panel:
    def points(values: Sequence[float]) -> tuple[tuple[float, float], ...]:
        return tuple((float(s), float(v)) for s, v in zip(curve.sizes, values, strict=True))

    lines = {"measured": points(curve.measured), f"expected ({curve.law})": points(curve.expected)}
    return Panel(f"{curve.figure} by {curve.over}", curve.over, curve.figure, lines)
