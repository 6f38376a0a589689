"""``lab show``: a scenario as a message sequence chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from viewkeeper.lab import tables
from viewkeeper.protocols.registry import protocol_named
from viewkeeper.simulator.charts import chart_lines, svg_chart
from viewkeeper.simulator.scenario_file import (
    Played,
    ScenarioFile,
    load_scenario,
    played,
    shipped_names,
)
from viewkeeper.terminal import (
    Grid,
    console,
    styled,
    write_file,
    write_json,
    write_line,
    write_lines,
)
from viewkeeper.views.level import Level

_STYLES = {
    "head": "bold",
    "start": "magenta",
    "commit": "blue",
    "reveal": "blue",
    "ask": "yellow",
    "answer": "green",
    "install": "bold magenta",
    "note": "italic dim",
}


def list_scenarios(*, as_json: bool) -> None:
    """The scenarios that come with Viewkeeper."""
    files = [load_scenario(name) for name in shipped_names()]
    examples = [tables.heading(name) for name in tables.SHOWN]
    if as_json:
        write_json([*(_heading(file) for file in files), *examples])
        return
    table = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("scenario", style="bold", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    table.add_column("what it shows", ratio=1)
    for file in files:
        table.add_row(file.name, file.protocol.name, file.title)
    for example in examples:
        table.add_row(example["scenario"], "", example["title"])
    console().print(table)
    write_line()
    write_line("Show one: viewkeeper lab show sweep-figure-5-concurrent")


def show(name: str, protocol: str | None, svg: Path | None, *, as_json: bool) -> None:
    """Play a scenario and draw what happened; that a scenario shows a failure is no failure."""
    file = load_scenario(name, tables.SHOWN)
    run = played(file, None if protocol is None else protocol_named(protocol))
    if svg is not None:
        write_file(
            svg,
            svg_chart(
                run.journal.entries, _title(file, run), _ending(run), is_good=run.outcome.is_good
            ),
        )
    if as_json:
        write_json(_document(file, run, svg))
        return
    _write_chart(file, run)
    if svg is not None:
        write_line(f"The chart is in {svg}")


def _write_chart(file: ScenarioFile, run: Played) -> None:
    write_line(_title(file, run), "bold")
    if file.text:
        write_lines(file.text)
    write_line()
    write_lines(file.view, "cyan")
    write_line()
    out = console()
    for line in chart_lines(run.journal.entries, out.width):
        style = _STYLES.get(line.kind, "")
        drawn = styled(line.lanes, style if line.kind == "head" else "default")
        drawn.append_text(styled(line.text, style))
        drawn.rstrip()
        out.print(drawn, soft_wrap=True)
    write_line()
    write_line(_ending(run), "green" if run.outcome.is_good else "bold red")
    if run.left_out:
        write_line(f"{run.left_out} steps of the schedule mean messages that it does not send.")
    if not run.outcome.is_good and run.outcome.problem:
        write_lines(run.outcome.problem, "red")


def _title(file: ScenarioFile, run: Played) -> str:
    paper = f" ({file.paper})" if file.paper else ""
    if run.outcome.protocol == file.protocol.name:
        return f"{file.title}{paper}"
    return f"{file.name} under {run.outcome.protocol}{paper}"


def _ending(run: Played) -> str:
    outcome = run.outcome
    queries = f"{outcome.messages['queries']} queries for {outcome.transactions} transactions"
    states = f"{outcome.states} states"
    level = outcome.verdict.level
    found = f"{level} consistency" if level > Level.NONE else "no level of consistency"
    expected = "" if outcome.is_good else f", expected {outcome.expected_level}"
    return f"{outcome.protocol} reached {found}{expected}: {states}, {queries}"


def _heading(file: ScenarioFile) -> dict[str, Any]:
    return {
        "scenario": file.name,
        "title": file.title,
        "paper": file.paper,
        "protocol": file.protocol.name,
        "text": file.text,
        "view": file.view,
    }


def _document(file: ScenarioFile, run: Played, svg: Path | None) -> dict[str, Any]:
    return {
        **_heading(file),
        **run.outcome.as_dict(),
        "is_good": run.outcome.is_good,
        "left_out": run.left_out,
        "svg": None if svg is None else str(svg),
        "entries": [entry.as_dict() for entry in run.journal.entries],
    }
