"""Transactions that may have committed before the place where a feed starts, and are not visible yet.

A commit is in the log some time before queries see it: an instant, or as long as a synchronous standby
does not answer. A feed that starts behind such a commit does not deliver it, and a cut that is opened
meanwhile does not show it: it would be missing for ever. So when a feed's start is chosen, a *fence* is
drawn at the next xid, and no cut is opened before everything below the fence is visible, or surely still
at work, which means that its commit will come behind the feed's start.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from viewkeeper.errors import SourceError
from viewkeeper.sources.backoff import Backoff
from viewkeeper.sources.postgres.xid_snapshot import XidSnapshot

Ask = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

# A transaction between the log and visibility that waits for no standby is there for milliseconds.
PATIENCE = Backoff(first_seconds=0.005, most_seconds=0.2, patience_seconds=3.0)

# Its own transaction: when the next snapshot is taken, this xid has ended, and so none below it is
# beyond that snapshot's horizon.
_FENCE = """
SET synchronous_commit = local;
SELECT CASE WHEN pg_is_in_recovery() THEN '0' ELSE pg_current_xact_id()::text END
"""
_SNAPSHOT = "SELECT pg_current_snapshot()::text"
# Whether we would see who waits for a standby: without the right to, everybody's waits are NULL.
WOULD_SHOW = (
    "current_setting('synchronous_standby_names') = '' OR pg_has_role('pg_read_all_stats', 'USAGE')"
)
# Whether one of these (or of the two-phase commits, whose backend has no xid) does.
_WAITING = f"""
SELECT EXISTS (SELECT FROM pg_stat_activity s WHERE s.wait_event = 'SyncRep'
               AND (s.backend_xid IS NULL OR s.backend_xid::text::int8 = ANY(%s::int8[]))),
       {WOULD_SHOW}
"""


class Settling:
    """Of one source. May be used from several threads."""

    def __init__(self, source: str, ask: Ask) -> None:
        self._source, self._ask = source, ask
        self._lock = threading.Lock()
        # None: not drawn yet, and a feed may start where an earlier process of ours stopped.
        self._fence: int | None = None
        # Below a fence, but at work when it had been there for a while.
        self._working: frozenset[int] = frozenset()

    def draw_fence(self) -> None:
        """Call it after a feed's start was chosen, and before a cut is opened for that feed."""
        with self._lock:
            self._draw()

    def _draw(self) -> None:
        self._fence = int(self._ask(_FENCE, ())[0][0])

    def settle(self) -> None:
        """Until every cut shows what no feed delivers; raises SourceError when that may take long."""
        with self._lock:
            if self._fence is None:
                self._draw()
            started, delays = time.monotonic(), PATIENCE.delays(random.Random())
            while late := self._late():
                if time.monotonic() - started > PATIENCE.patience_seconds:
                    self._require_at_work(late)
                    self._working |= late
                    break
                time.sleep(next(delays))
            self._fence = 0

    def _late(self) -> frozenset[int]:
        if not self._fence:
            return frozenset()
        running = XidSnapshot.parsed(str(self._ask(_SNAPSHOT, ())[0][0])).running
        self._working &= running
        return frozenset(xid for xid in running if xid < self._fence) - self._working

    def _require_at_work(self, late: frozenset[int]) -> None:
        waits, would_show = self._ask(_WAITING, [[xid & 0xFFFFFFFF for xid in late]])[0]
        if waits or not would_show:
            raise SourceError(
                "source-busy",
                f"a cut of PostgreSQL source {self._source} would miss a transaction",
                source=self._source,
                retryable=True,
                detail="a commit waits for a synchronous standby"
                if waits
                else f"transactions {sorted(late)} may be waiting for a synchronous standby",
                hint="see to the standbys in synchronous_standby_names"
                if waits
                else "GRANT pg_read_all_stats to the source's user, so that it can tell",
            )
