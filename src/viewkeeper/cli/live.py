"""The live table of ``viewkeeper run``: what the keeper is doing, at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.live import Live
from rich.table import Table

from viewkeeper.cli.output import console, write_line


class LiveTable:
    """Redrawn in place on a terminal; elsewhere one line per event."""

    def __init__(self, views: Mapping[str, Any]) -> None:
        self._views = {name: [0, 0] for name in views}
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._is_terminal = self._console.is_terminal
        self._totals = {"transactions": 0, "epochs": 0}
        self._last: Mapping[str, Any] = {}
        self._note = "loading"

    def __enter__(self) -> LiveTable:
        if self._is_terminal:
            self._live.__enter__()
            self._draw()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._is_terminal:
            self._live.__exit__(*error)

    def on_event(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "batch":
            self._totals["transactions"] += event["transactions"]
            self._totals["epochs"] += 1
            for view, changed in event["changed"].items():
                self._views.setdefault(view, [0, 0])
                self._views[view][0] += changed["inserted"]
                self._views[view][1] += changed["deleted"]
            self._last = event
        self._note = _sentence(event)
        if self._is_terminal:
            self._draw()
        else:
            write_line(self._note)

    def _draw(self) -> None:
        grid = Table(title="viewkeeper run", caption=self._note, title_justify="left")
        for column in ("view", "rows in", "rows out"):
            grid.add_column(column, justify="left" if column == "view" else "right")
        for view, (inserted, deleted) in self._views.items():
            grid.add_row(view, f"{inserted:,}", f"{deleted:,}")
        txn = self._last.get("txn", 0)
        grid.caption = (
            f"{self._totals['transactions']:,} transactions in {self._totals['epochs']:,} epochs, "
            f"now at {txn:,}\n{self._note}"
        )
        self._live.update(grid, refresh=True)


def _sentence(event: Mapping[str, Any]) -> str:
    match event["event"]:
        case "loading":
            return f"Loading {', '.join(event['views'])} …"
        case "relation_read":
            return f"Read {event['rows']:,} rows of {event['relation']}"
        case "loaded":
            return f"Loaded {', '.join(event['views'])} in {event['seconds']:.1f} s"
        case "batch":
            return (
                f"Epoch {event['epoch']}: {event['transactions']:,} transactions, "
                f"now at {event['txn']:,}, fresh to {event['freshness_seconds']:.2f} s"
            )
        case "source_waiting":
            return f"Waiting: {event['error']['message']}"
        case "caught_up":
            return (
                f"Caught up: {event['transactions']:,} transactions in {event['seconds']:.1f} s "
                f"({event['transactions_per_second']:,.0f}/s)"
            )
        case _:
            return f"Stopped after {event['transactions']:,} transactions"
