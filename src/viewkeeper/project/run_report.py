"""What a run did, added up."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.live.context import EpochReport
from viewkeeper.run_events import RunCaughtUp, RunStopped


@dataclass
class RunReport:
    """Totals over the epochs of a run."""

    transactions: int = 0
    rows: int = 0
    epochs: int = 0
    queries: int = 0
    rows_fetched: int = 0
    busy_seconds: float = 0.0
    # Whether a run that was to catch up has: one that was stopped before has not.
    is_caught_up: bool = False
    started: float = field(default_factory=time.monotonic)

    def add(self, epoch: EpochReport) -> None:
        self.transactions += epoch.transactions
        self.rows += epoch.rows
        self.epochs += 1
        self.queries += sum(asked.queries for asked in epoch.asked.values())
        self.rows_fetched += sum(asked.rows for asked in epoch.asked.values())
        self.busy_seconds += sum(epoch.seconds.values())

    def as_dict(self) -> dict[str, Any]:
        seconds = time.monotonic() - self.started
        return {
            "transactions": self.transactions,
            "rows": self.rows,
            "epochs": self.epochs,
            "queries": self.queries,
            "rows_fetched": self.rows_fetched,
            "seconds": round(seconds, 3),
            "busy_seconds": round(self.busy_seconds, 3),
            "transactions_per_second": round(self.transactions / seconds, 1) if seconds else 0.0,
        }

    def as_event(self) -> RunCaughtUp | RunStopped:
        """The last event of a run that ends in order."""
        return (RunCaughtUp if self.is_caught_up else RunStopped)(**self.as_dict())
