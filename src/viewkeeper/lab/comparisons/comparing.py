"""``lab compare``: what protocols cost, counted in runs, beside what their papers say."""

from __future__ import annotations

from pathlib import Path

import typer

from viewkeeper.lab.comparisons.compare_medwrap import MedwrapSection
from viewkeeper.lab.comparisons.compare_merging import MergingSection
from viewkeeper.lab.comparisons.compare_rings import RingSection
from viewkeeper.lab.comparisons.compare_sweep import SweepSection
from viewkeeper.lab.comparisons.section import Section
from viewkeeper.simulator.plots import small_multiples
from viewkeeper.terminal import FAILED, console, write_file, write_json, write_line

SECTIONS: dict[str, type[Section]] = {
    section.name: section for section in (SweepSection, RingSection, MedwrapSection, MergingSection)
}


def compare(plot: Path | None, only: str | None, *, as_json: bool) -> None:
    """Measure and tell; exit 1 when something that a paper promises was not found."""
    chosen = [section for name, section in SECTIONS.items() if only in (None, name)]
    with console(stderr=True).status("measuring …"):
        measured = [section.measured() for section in chosen]
    if plot is not None:
        write_file(plot, _plotted(measured))
    if as_json:
        documents = {section.name: section.document() for section in measured}
        write_json(documents | {"plot": None if plot is None else str(plot)})
    else:
        for index, section in enumerate(measured):
            if index:
                write_line()
            section.tell()
        if plot is not None:
            write_line(f"The charts are in {plot}")
    if not all(section.is_good for section in measured):
        raise typer.Exit(FAILED)


def _plotted(measured: list[Section]) -> str:
    """All measurements as small multiples."""
    panels = [panel for section in measured for panel in section.panels()]
    subtitle = "Counted in simulated runs; dashed: what the paper says, where it differs."
    return small_multiples("What protocols cost", subtitle, panels)
