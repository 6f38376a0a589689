"""The demo's live figures, added up from the events of a run and from the ledger."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.run_events import BatchCommitted

FRESHNESS_KEPT = 20


@dataclass
class Figures:
    """Over all runs of the demo. Rows come from the ledger when a run begins, then from its events."""

    sources: tuple[str, ...]
    txn: int = 0
    epochs: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    queries: dict[str, int] = field(init=False)
    rows_fetched: dict[str, int] = field(init=False)
    freshness_seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queries = dict.fromkeys(self.sources, 0)
        self.rows_fetched = dict.fromkeys(self.sources, 0)

    def take_stock(self, warehouse: Path) -> None:
        """What the ledger says: the only truth after a kill."""
        from viewkeeper.warehouse import Warehouse

        try:
            entries = [e for e in Warehouse.open(str(warehouse)).history() if e.kind == "epoch"]
        except UsageError:
            return  # there is no warehouse yet
        self.rows = {}
        for entry in entries:
            for view, tally in entry.statistics.items():
                self.rows[view] = self.rows.get(view, 0) + tally.inserted - tally.deleted
            self.txn, self.epochs = entry.last_txn, entry.epoch

    def add_batch(self, batch: BatchCommitted) -> None:
        """A batch that a run says it committed."""
        if batch.epoch > self.epochs:
            for view, changed in batch.changed.items():
                self.rows[view] = self.rows.get(view, 0) + changed["inserted"] - changed["deleted"]
            self.txn, self.epochs = batch.txn, batch.epoch
        for source, asked in batch.asked.items():
            self.queries[source] += asked["queries"]
            self.rows_fetched[source] += asked["rows"]
        self.freshness_seconds.append(batch.freshness_seconds)
        del self.freshness_seconds[:-FRESHNESS_KEPT]

    def as_dict(self, committed: Mapping[str, int]) -> dict[str, Any]:
        """``freshness_seconds``: the median age of the newest transaction of the last batches."""
        fresh = self.freshness_seconds
        return {
            "committed": dict(committed),
            "transactions": self.txn,
            "epochs": self.epochs,
            "rows": dict(self.rows),
            "queries": dict(self.queries),
            "rows_fetched": dict(self.rows_fetched),
            "freshness_seconds": round(statistics.median(fresh), 2) if fresh else None,
        }
