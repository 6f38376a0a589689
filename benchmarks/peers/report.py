"""From runs to what people read: medians with their spread, tables, plots, a part of a document.

Pure but for `into_document`. What was not measured has a dash, what could not run says why.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.bars import Bar, Panel, drawn

US = "viewkeeper"
BEGIN, END = "<!-- bench-peers: begin -->", "<!-- bench-peers: end -->"
TITLES = {"join": "Three-way join", "totals": "Sum and count per region over the join"}


@dataclass(frozen=True)
class Spread:
    """A median, and the smallest and the largest it was taken from."""

    median: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        found = sorted(values)
        return cls(statistics.median(found), found[0], found[-1]) if found else None

    def shown(self, digits: int = 2) -> str:
        def number(value: float) -> str:
            return f"{value:,.{digits}f}"

        if number(self.smallest) == number(self.largest):
            return number(self.median)
        return f"{number(self.median)} ({number(self.smallest)}–{number(self.largest)})"


@dataclass
class Line:
    """One system at one size over one view."""

    peer: str
    orders: int
    view: str
    version: str = ""
    load: Spread | None = None
    # By stream: seconds, and how many times as many updates per second we made in the same round.
    seconds: dict[str, Spread] = field(default_factory=dict)
    updates: dict[str, int] = field(default_factory=dict)
    ahead: dict[str, Spread] = field(default_factory=dict)
    asked_rows: dict[str, Spread] = field(default_factory=dict)
    asked_queries: dict[str, Spread] = field(default_factory=dict)
    memory: Spread | None = None
    databases: Spread | None = None
    fresh_p50: Spread | None = None
    fresh_p99: Spread | None = None
    right: bool | None = None
    failure: str = ""


@dataclass
class Summary:
    """All lines, in the order in which systems were named, and the verdicts on states."""

    lines: list[Line]
    states: Mapping[str, Mapping[str, Any]]
    results: Mapping[str, Any]

    def of(self, orders: int, view: str) -> list[Line]:
        return [line for line in self.lines if (line.orders, line.view) == (orders, view)]

    @property
    def cases(self) -> list[tuple[int, str]]:
        return list(dict.fromkeys((line.orders, line.view) for line in self.lines))

    @property
    def not_installed(self) -> dict[str, str]:
        return {r["peer"]: r["failure"] for r in self.results["runs"] if "view" not in r}


def summary(results: Mapping[str, Any]) -> Summary:
    """Medians over the rounds, for each system, size and view."""
    runs = [run for run in results["runs"] if "view" in run]
    cases = dict.fromkeys((run["orders"], run["view"], run["peer"]) for run in runs)
    lines = [_line(*case, runs) for case in sorted(cases, key=lambda c: (c[0], c[1], _rank(c[2])))]
    return Summary(lines, results.get("states", {}), results)


def _rank(peer: str) -> tuple[bool, str]:
    return (peer != US, peer)


def _line(orders: int, view: str, peer: str, runs: Sequence[Mapping[str, Any]]) -> Line:
    here = [run for run in runs if (run["orders"], run["view"]) == (orders, view)]
    mine = [run for run in here if run["peer"] == peer]
    good = [run for run in mine if "failure" not in run]
    line = Line(peer, orders, view)
    line.failure = next((run["failure"] for run in mine if "failure" in run), "")
    if not good:
        return line
    line.version = good[0]["version"]
    line.load = Spread.of(r["load_seconds"] for r in good if r["load_seconds"] is not None)
    line.memory = Spread.of(run["memory"]["system"] for run in good)
    line.databases = Spread.of(run["memory"]["databases"] for run in good)
    ours = {r["round"]: r for r in here if r["peer"] == US and "failure" not in r}
    names = [s["stream"] for s in good[0]["streams"] if s["stream"] != "warm"]
    for name in names:
        pairs = [(run["round"], _stream(run, name)) for run in good]
        line.updates[name] = pairs[0][1]["updates"]
        line.seconds[name] = _there(Spread.of(found["seconds"] for _, found in pairs))
        ahead = (
            found["seconds"] / _stream(ours[number], name)["seconds"]
            for number, found in pairs
            if number in ours
        )
        for kind, kept in (("asked_rows", line.asked_rows), ("asked_queries", line.asked_queries)):
            counts = Spread.of(f[kind] for _, f in pairs if f[kind] is not None)
            if counts is not None:
                kept[name] = counts
        times = Spread.of(ahead)
        if times is not None and peer != US:
            line.ahead[name] = times
    rights = [s["right"] for run in good for s in run["streams"] if s["right"] is not None]
    line.right = all(rights) if rights else None
    fresh = [run["freshness"] for run in good if run.get("freshness")]
    line.fresh_p50 = Spread.of(found["p50_seconds"] for found in fresh)
    line.fresh_p99 = Spread.of(found["p99_seconds"] for found in fresh)
    return line


def _stream(run: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(s for s in run["streams"] if s["stream"] == name)
    return found


def _there(spread: Spread | None) -> Spread:
    if spread is None:
        raise ValueError("no round measured this")
    return spread


# -- tables ---------------------------------------------------------------------------------------


def text_table(found: Summary) -> str:
    """Everything, as Markdown, which reads well enough in a terminal."""
    parts = [
        f"### {TITLES[view]}, {orders:,} orders\n\n{_table(found.of(orders, view))}"
        for orders, view in found.cases
    ]
    parts += ["### States that a consumer sees\n\n" + _state_table(found)]
    if found.not_installed:
        parts.append("\n".join(f"- {p}: {why}" for p, why in found.not_installed.items()))
    return "\n\n".join(parts)


def _table(lines: Sequence[Line]) -> str:
    streams = list(dict.fromkeys(name for line in lines for name in line.seconds))
    heads = ["system", "initial load, s"]
    for name in streams:
        heads += [f"{int(name):,} updates, s", "updates/s", "we are"]
    heads += ["rows asked per update", "queries", "memory, MB", "right at the end"]
    rows = []
    for line in lines:
        row = [_named(line), line.load.shown() if line.load else "–"]
        for name in streams:
            row += _stream_cells(line, name)
        last = streams[-1] if streams else ""
        rows.append([*row, *_asked_cells(line, last), _memory_cell(line), _right_cell(line)])
    return _markdown(heads, rows)


def _named(line: Line) -> str:
    if line.failure:
        return f"{line.peer}: {line.failure.splitlines()[0]}"
    return f"**{line.peer}** {line.version}" if line.peer == US else f"{line.peer}, {line.version}"


def _stream_cells(line: Line, name: str) -> list[str]:
    seconds = line.seconds.get(name)
    if seconds is None:
        return ["–", "–", "–"]
    ahead = line.ahead.get(name)
    words = "" if ahead is None else f"{ahead.shown()} ×"
    if ahead is not None and ahead.median < 1:
        words = f"**slower: {words}**"
    return [seconds.shown(), f"{line.updates[name] / seconds.median:,.0f}", words]


def _asked_cells(line: Line, name: str) -> list[str]:
    rows, queries = line.asked_rows.get(name), line.asked_queries.get(name)
    if rows is None or queries is None:
        return ["0, holds copies", "0"] if line.seconds else ["–", "–"]
    return [f"{rows.median / line.updates[name]:,.1f}", f"{queries.median:,.0f}"]


def _memory_cell(line: Line) -> str:
    if line.memory is None:
        return "–"
    apart = line.databases.median if line.databases else 0.0
    if line.peer.startswith("postgres"):
        return f"{apart:,.0f}"
    return line.memory.shown(0) + (f", databases {apart:,.0f}" if apart > 1 else "")


def _right_cell(line: Line) -> str:
    return (
        {True: "yes", False: "**no**", None: "not looked at"}[line.right] if line.seconds else "–"
    )


def _state_table(found: Summary) -> str:
    rows = []
    for peer, verdict in sorted(found.states.items(), key=lambda item: _rank(item[0])):
        if "failure" in verdict:
            rows.append([f"{peer}: {verdict['failure'].splitlines()[0]}", "–", "–", "–", "–"])
            continue
        shown = verdict["shown"]
        rows.append(
            [
                f"**{peer}**" if peer == US else peer,
                f"{shown:,}",
                _share(verdict["other_size"], shown),
                _share(verdict["never_true"], shown),
                "yes" if verdict["ends_right"] else "**no**",
            ]
        )
    heads = [
        "system",
        "states shown",
        "of another size",
        "that were never true",
        "right at the end",
    ]
    return _markdown(heads, rows)


def _share(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / of:.0f} %)" if count and of else f"{count:,}"


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def freshness_text(found: Summary) -> str:
    """How old our view is at the fixed rate, beside what one full refresh takes."""
    parts = []
    for orders, view in found.cases:
        lines = found.of(orders, view)
        ours = next((line for line in lines if line.peer == US), None)
        if ours is None or ours.fresh_p50 is None or ours.fresh_p99 is None:
            continue
        refreshes = ", ".join(
            f"{line.peer} {min(s.median for s in line.seconds.values()):.2f} s"
            for line in lines
            if line.peer in ("spark-refresh", "spark-pipelines", "postgres-refresh", "duckdb")
            and line.seconds
        )
        parts.append(
            f"- {orders:,} orders: p50 {ours.fresh_p50.shown()} s, p99 {ours.fresh_p99.shown()} s."
            + (f" One full refresh: {refreshes}." if refreshes else "")
        )
    return "\n".join(parts)


# -- plots and the document -----------------------------------------------------------------------


def plots(found: Summary) -> dict[str, str]:
    """SVG by file name: updates per second and memory, for each size and view."""
    pictures = {}
    for orders, view in found.cases:
        lines = [line for line in found.of(orders, view) if line.seconds]
        streams = list(dict.fromkeys(name for line in lines for name in line.seconds))
        panels = []
        for name in streams:
            bars = []
            for line in lines:
                if name in line.seconds:
                    seconds, updates = line.seconds[name], line.updates[name]
                    bars.append(
                        Bar(
                            line.peer,
                            updates / seconds.median,
                            smallest=updates / seconds.largest,
                            largest=updates / seconds.smallest,
                            is_ours=line.peer == US,
                        )
                    )
            panels.append(Panel(f"updates per second, {int(name):,} at once", tuple(bars)))
        memory = tuple(
            Bar(line.peer, m.median, m.smallest, m.largest, is_ours=line.peer == US)
            for line in lines
            if (m := line.databases if line.peer.startswith("postgres") else line.memory)
        )
        panels.append(Panel("memory at most, MB", memory))
        title = f"{TITLES[view]}, {orders:,} orders"
        pictures[f"performance-{view}-{orders}.svg"] = drawn(title, tuple(panels))
    return pictures


def into_document(results: Mapping[str, Any], document: Path) -> None:
    """Write the generated part of a document anew, and its plots beside it in ``images``."""
    found = summary(results)
    folder = document.parent / "images"
    folder.mkdir(exist_ok=True)
    pictures = plots(found)
    for name, picture in pictures.items():
        (folder / name).write_text(picture)
    images = "\n\n".join(f"![{name.removesuffix('.svg')}](images/{name})" for name in pictures)
    machine = results["machine"]
    intro = (
        f"Measured {results['when'][:10]} by `make bench-peers`: {results['rounds']} rounds, "
        f"{machine['processors']} processors, {machine['gigabytes']} GB, load {machine['load_before']} "
        'before it began. Medians (smallest–largest). "We are" is our updates/s over theirs in the '
        "same round."
    )
    parts = [intro, text_table(found), images]
    fresh = freshness_text(found)
    if fresh:
        parts.insert(2, "### Freshness at 100 transactions per second\n\n" + fresh)
    text = document.read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    document.write_text(before + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + after)
