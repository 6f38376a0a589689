"""How the demo is told: as plain lines, or as a page of live figures in a terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from viewkeeper.demo import events as ev
from viewkeeper.run_events import DashboardOpened
from viewkeeper.terminal import Grid, console, styled, write_line

REFRESHES_PER_SECOND = 4
LINES_SHOWN_SECONDS = 2.0
WIDTH_SIDE_BY_SIDE = 112

# What is being waited for after an event, for the line under the page.
_NEXT: dict[type[ev.DemoEvent], str] = {
    ev.DemoBegan: "The servers are starting",
    ev.AnomalyPlayed: "The servers are being filled",
    ev.SourcesReady: "Viewkeeper is starting",
    ev.RunStarted: "Spark is starting and the feeds are being opened",
    ev.DemoLoadingStarted: "The views are being loaded, each source at one cut, while everybody writes",
    ev.DemoRelationRead: "The views are being computed",
    ev.DemoLoaded: "Everybody writes; every transaction becomes a state of the views",
    ev.RunResumed: "It went on from the ledger; everybody still writes",
    ev.WritersStopped: "The last transactions come in",
    ev.AuditStarted: "Every view is computed again from the sources and compared row by row",
    ev.RunStopping: "The run is stopped in order, and everything put away",
}


def sentence(event: ev.DemoEvent) -> str:
    """An event in words; empty for those that only move figures."""
    match event:
        case ev.SourcesReady(sources):
            return f"The sources are there: {', '.join(sources)}."
        case DashboardOpened(url):
            return f"The dashboard is at {url} as long as the demo runs."
        case ev.RunStarted(pid):
            return f"viewkeeper run is process {pid}."
        case ev.DemoLoaded():
            rows = ", ".join(f"{view} {count:,}" for view, count in event.rows.items())
            return f"The views have appeared, {event.seconds:.1f} s: {rows} rows."
        case ev.RunKilled():
            return (
                f"kill -9 {event.pid}: the run and its JVM are gone, "
                f"{event.transactions:,} transactions are in the warehouse."
            )
        case ev.RunResumed():
            return (
                f"Resumed after {event.seconds:.1f} s, behind transaction "
                f"{event.goes_on_after:,}, with {event.transactions:,} at once."
            )
        case ev.WritersStopped():
            return f"The writers have stopped: {event.total:,} transactions committed."
        case ev.DemoSettled():
            verdict = "nothing lost, nothing doubled" if event.ok else "THAT IS WRONG"
            return (
                f"{event.committed:,} committed at the sources, {event.transactions:,} "
                f"states in the warehouse: {verdict}."
            )
        case ev.ViewsAudited():
            found = (f"{v['view']} {v['verdict']} ({v['rows']:,} rows)" for v in event.views)
            return f"Audit: {', '.join(found)}."
        case _:
            return ""


def style_of(event: ev.DemoEvent) -> str:
    match event:
        case ev.RunKilled() | ev.DemoSettled(ok=False) | ev.ViewsAudited(ok=False):
            return "bold red"
        case ev.DemoLoaded() | ev.RunResumed() | ev.DemoSettled() | ev.ViewsAudited():
            return "green"
        case _:
            return ""


def anomaly_table(event: ev.AnomalyPlayed) -> Grid:
    """The same updates under two protocols, in two columns."""
    table = Grid(title=f"Why it is hard: three updates meet in {event.view}", title_justify="left")
    table.add_column("concurrent update")
    for protocol in event.protocols:
        table.add_column(f"the view by {protocol['protocol']}")
    for number, update in enumerate(event.updates):
        states = (protocol["states"][number] for protocol in event.protocols)
        table.add_row(update, *(_marked(state) for state in states))
    table.add_section()
    levels = (
        styled(f"{p['level']} consistency" if p["is_good"] else "wrong for good")
        for p in event.protocols
    )
    table.add_row("the verdict", *levels, style="bold")
    return table


def _marked(state: Mapping[str, Any]) -> Text:
    mark, style = ("✓", "green") if state["right"] else ("✗", "bold red")
    return styled(f"{mark} {state['view']}", style)


def summary_lines(event: ev.DemoSummarized) -> list[str]:
    equal = [view for view, verdict in event.audits.items() if verdict == "equal"]
    fresh = event.freshness_seconds
    return [
        f"{len(equal)} of {len(event.audits)} views equal to their sources after a kill -9, "
        f"{event.transactions:,} transactions in {event.epochs:,} commits, "
        f"{sum(event.queries.values()):,} questions to the sources"
        + (f", fresh to {fresh:.2f} s." if fresh is not None else "."),
        f"Done in {event.seconds:.0f} s; "
        + (f"the project is in {event.kept}." if event.kept else "nothing was left behind."),
    ]


class Lines:
    """One line per thing worth telling, and the figures every other second."""

    def __init__(self) -> None:
        self._told_at = float("-inf")

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def on_event(self, event: ev.DemoEvent) -> None:
        match event:
            case ev.AnomalyPlayed():
                console().print(anomaly_table(event))
            case ev.FiguresChanged():
                now = time.monotonic()
                if now - self._told_at >= LINES_SHOWN_SECONDS:
                    self._told_at = now
                    write_line(_figures_line(event))
            case ev.DemoRelationRead(relation, rows):
                write_line(f"Read {rows:,} rows of {relation}.")
                return
            case ev.DemoSummarized():
                for line in summary_lines(event):
                    write_line(line, "bold" if event.ok else "bold red")
            case _ if sentence(event):
                write_line(sentence(event), style_of(event))
        if type(event) in _NEXT:
            write_line(f"{_NEXT[type(event)]} …", "dim")


def _figures_line(event: ev.FiguresChanged) -> str:
    rows = ", ".join(f"{view} {count:,}" for view, count in event.rows.items())
    return (
        f"{sum(event.committed.values()):,} committed, {event.transactions:,} in the views "
        f"({event.epochs:,} commits), fresh to {event.freshness_seconds:.2f} s; rows: {rows}; "
        f"questions: {', '.join(f'{s} {n:,}' for s, n in event.queries.items())}"
    )


@dataclass
class _Loading:
    """The bar of the initial load."""

    expected: int
    began: float
    rows: int = 0
    seconds: float = 0.0

    def read(self, rows: int) -> None:
        """So many rows in all, now. The writers are at work: there may be more than expected."""
        self.rows, self.expected = rows, max(rows, self.expected)
        self.seconds = time.monotonic() - self.began

    def drawn(self) -> Text:
        share = self.rows / self.expected
        rate = self.rows / self.seconds if self.seconds else 0
        bar = "█" * round(share * 30)
        text = f"{self.rows:,} of {self.expected:,} rows read, {share:.0%}, {rate:,.0f} rows/s"
        return styled(f"{bar:░<30} {text}", "cyan")


class Page:
    """A page that is redrawn in place; what is worth keeping stays above it."""

    def __init__(self) -> None:
        self._console: Console = console()
        self._figures: ev.FiguresChanged | None = None
        self._loading: _Loading | None = None
        self._waiting = Spinner("dots", text="")
        self._live = Live(
            get_renderable=self._drawn,
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Page:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def on_event(self, event: ev.DemoEvent) -> None:
        match event:
            case ev.AnomalyPlayed():
                self._console.print(anomaly_table(event))
            case ev.DemoLoadingStarted():
                self._loading = _Loading(event.rows_expected, time.monotonic())
            case ev.DemoRelationRead() if self._loading is not None:
                self._loading.read(event.total)
            case ev.DemoLoaded():
                self._loading = None
            case ev.FiguresChanged():
                self._figures = event
            case ev.DemoSummarized():
                self._live.stop()
                if self._figures is not None:
                    self._console.print(_figures_grid(self._figures, self._console.width))
                for line in summary_lines(event):
                    write_line(line, "bold" if event.ok else "bold red")
        if said := sentence(event):
            self._console.print(styled(said, style_of(event)))
        if type(event) in _NEXT:
            self._waiting.update(text=f"{_NEXT[type(event)]} …")

    def _drawn(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._figures is not None:
            parts.append(_figures_grid(self._figures, self._console.width))
        if self._loading is not None:
            parts.append(self._loading.drawn())
        parts.append(self._waiting)
        return Group(*parts)


def _figures_grid(event: ev.FiguresChanged, width: int) -> RenderableType:
    tables = (_views_table(event), _sources_table(event), _warehouse_table(event))
    if width < WIDTH_SIDE_BY_SIDE:
        return Group(*tables)
    grid = Grid.grid(padding=(0, 2))
    grid.add_row(*tables)
    return grid


def _views_table(event: ev.FiguresChanged) -> Grid:
    table = Grid(title="views", title_justify="left")
    table.add_column("view")
    table.add_column("rows", justify="right")
    for view, rows in event.rows.items():
        table.add_row(view, f"{rows:,}")
    return table


def _sources_table(event: ev.FiguresChanged) -> Grid:
    table = Grid(title="sources", title_justify="left")
    table.add_column("source")
    for heading in ("committed", "questions", "rows fetched"):
        table.add_column(heading, justify="right")
    for source, committed in event.committed.items():
        asked, fetched = event.queries[source], event.rows_fetched[source]
        table.add_row(source, f"{committed:,}", f"{asked:,}", f"{fetched:,}")
    return table


def _warehouse_table(event: ev.FiguresChanged) -> Grid:
    table = Grid(title="warehouse", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("transactions committed", f"{sum(event.committed.values()):,}")
    table.add_row("states of the views", f"{event.transactions:,}")
    table.add_row("commits", f"{event.epochs:,}")
    table.add_row("fresh to", f"{event.freshness_seconds:.2f} s")
    return table
