"""The batches that a run told of while the dashboard watched: their phases and their freshness.

The ledger has no stopwatch, so these figures begin when the dashboard does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from viewkeeper.run_events import BatchCommitted, event_from_dict

BATCHES_KEPT = 600
# What the charts of a view's page draw of each.
CHARTED = ("epoch", "freshness_seconds", "transactions", "seconds")


class Batches:
    """The newest batches, and what was asked of each source in all that were seen. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: deque[dict[str, Any]] = deque(maxlen=BATCHES_KEPT)
        self._asked: dict[str, dict[str, int]] = {}

    def saw(self, batch: Mapping[str, Any] | None, at: str | None) -> None:
        """A batch as the run state has it; the same one may be seen again."""
        event = event_from_dict(batch)
        if not isinstance(event, BatchCommitted):
            return
        with self._lock:
            if self._batches and self._batches[-1]["epoch"] == event.epoch:
                return
            self._batches.append({"at": at} | {name: getattr(event, name) for name in CHARTED})
            for source, asked in event.asked.items():
                total = self._asked.setdefault(source, {"queries": 0, "rows": 0})
                for figure in total:
                    total[figure] += asked.get(figure, 0)

    def asked(self, source: str) -> dict[str, int]:
        with self._lock:
            return dict(self._asked.get(source, {"queries": 0, "rows": 0}))

    def all(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._batches)
