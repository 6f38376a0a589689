"""The live table of ``viewkeeper run``: what the keeper is doing, at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar

from viewkeeper import run_events as ev
from viewkeeper.terminal import Grid, console, styled, write_line
from viewkeeper.visible import visible


class LiveTable:
    """Redrawn in place on a terminal; elsewhere one line per event."""

    def __init__(self, views: Mapping[str, Any]) -> None:
        self._views = {name: [0, 0] for name in views}
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._is_terminal = self._console.is_terminal
        self._totals = {"transactions": 0, "epochs": 0}
        self._txn = 0
        # Relations that are being read for new views, with what was last heard of each.
        self._reading: dict[str, ev.RelationRead] = {}
        self._note = "loading"

    def __enter__(self) -> LiveTable:
        if self._is_terminal:
            self._live.__enter__()
            self._draw()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._is_terminal:
            self._live.__exit__(*error)

    def on_event(self, event: ev.RunEvent) -> None:
        match event:
            case ev.BatchCommitted():
                self._totals["transactions"] += event.transactions
                self._totals["epochs"] += 1
                for view, changed in event.changed.items():
                    self._views.setdefault(view, [0, 0])
                    self._views[view][0] += changed["inserted"]
                    self._views[view][1] += changed["deleted"]
                self._txn = event.txn
            case ev.RelationRead(relation):
                self._reading[relation] = event
            case ev.ViewsLoaded():
                self._reading = {}
        self._note = sentence(event)
        if self._is_terminal and isinstance(event, ev.Warned):
            # Above the table, where the next event does not cover it.
            self._console.print(styled(self._note, "yellow"))
        if self._is_terminal:
            self._draw()
        else:
            write_line(self._note)

    def _draw(self) -> None:
        grid = Grid(title="viewkeeper run", title_justify="left")
        for column in ("view", "rows in", "rows out"):
            grid.add_column(column, justify="left" if column == "view" else "right")
        for view, (inserted, deleted) in self._views.items():
            grid.add_row(view, f"{inserted:,}", f"{deleted:,}")
        grid.caption = (
            f"{self._totals['transactions']:,} transactions in {self._totals['epochs']:,} epochs, "
            f"now at {self._txn:,}\n{visible(self._note)}"
        )
        self._live.update(Group(grid, self._reading_table()), refresh=True)

    def _reading_table(self) -> Grid:
        """A bar for each relation; it has no end where the source can't tell how much there is."""
        grid = Grid(box=None, show_header=False, padding=(0, 2, 0, 0))
        for justify in ("left", "left", "right", "right", "right"):
            grid.add_column(justify=justify)
        for relation, event in self._reading.items():
            percent = event.percent
            grid.add_row(
                relation,
                ProgressBar(
                    total=None if percent is None else 100, completed=percent or 0, width=30
                ),
                "" if percent is None else f"{percent} %",
                f"{event.rows:,} rows",
                f"{event.rows_per_second:,}/s",
            )
        return grid


def sentence(event: ev.RunEvent) -> str:
    match event:
        case ev.LoadingStarted(views):
            return f"Loading {', '.join(views)} …"
        case ev.RelationRead():
            percent = "" if event.percent is None else f" ({event.percent} %)"
            speed = f"{event.rows_per_second:,} rows/s"
            return f"Read {event.rows:,} rows of {event.relation}{percent}, {speed}"
        case ev.ViewsLoaded():
            return f"Loaded {', '.join(event.views)} in {event.seconds:.1f} s"
        case ev.ViewsResumed(views, txn):
            return f"Keeping {', '.join(views)} from {txn:,} on"
        case ev.BatchCommitted():
            return (
                f"Epoch {event.epoch}: {event.transactions:,} transactions, "
                f"now at {event.txn:,}, fresh to {event.freshness_seconds:.2f} s"
            )
        case ev.SourceWentAway(error):
            return f"Waiting: {error['message']}"
        case ev.ViewAudited(view, verdict):
            return f"Audit of {view}: {verdict}"
        case ev.ViewsStopped(views, error):
            source = error.get("source")
            way = (
                f"viewkeeper rebuild --source {source}" if source else "viewkeeper check says more"
            )
            stopped = ", ".join(views) or "no view"
            return f"Stopped {stopped}: {error['message']}; {error.get('hint') or way}"
        case ev.ViewsRebuilt():
            return f"Rebuilt {', '.join(event.views)}, now at {event.txn:,}"
        case ev.ViewsReloaded(views):
            return f"Keeping {', '.join(views)} now"
        case ev.SourceCameBack(source):
            return f"Source {source} is back"
        case ev.Warned(message):
            return f"Warning: {message}"
        case ev.SchemaChangeApplied():
            effects = ", ".join(f"{e['view']} {e['effect']}" for e in event.effects)
            return f"{event.source}: {event.statement} ({effects or 'no view is affected'})"
        case ev.ViewEvolved():
            read = f"{event.rows_read or 0:,} rows read"
            return f"View {event.view} goes on: {event.method}, {read}: {event.reason}"
        case ev.SchemaChangeHeld():
            return (
                f"{event.source}: {event.statement} is {event.status}; "
                f"see viewkeeper evolve, then --approve {event.id}"
            )
        case ev.RunCaughtUp():
            return (
                f"Caught up: {event.transactions:,} transactions in {event.seconds:.1f} s "
                f"({event.transactions_per_second:,.0f}/s)"
            )
        case ev.RunInterrupted():
            return "Interrupted: what was at hand is given up, and done again by the next run"
        case ev.RunStopped():
            return f"Stopped after {event.transactions:,} transactions"
        case _:
            return event.name
