"""Keeps the load that we put on a source within what its owner allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SourceLimits:
    """How much may be asked of one source; None: as much as is needed."""

    queries_per_second: float | None = None
    rows_per_second: float | None = None


@dataclass
class Pace:
    """Waits so long that, over time, the limits hold. Clock and sleep are handed in for tests.

    What was spent is paid for before the next question: an answer's size is known only when it came.
    """

    limits: SourceLimits
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = field(default=0.0)

    def before_question(self) -> None:
        """Wait until the source may be asked again."""
        wait = self._free_at - self.clock()
        if wait > 0:
            self.sleep(wait)

    def asked(self, rows: int) -> None:
        """A question was answered with this number of rows."""
        cost = 0.0
        if self.limits.queries_per_second:
            cost = max(cost, 1.0 / self.limits.queries_per_second)
        if self.limits.rows_per_second:
            cost = max(cost, rows / self.limits.rows_per_second)
        self._free_at = max(self._free_at, self.clock()) + cost
