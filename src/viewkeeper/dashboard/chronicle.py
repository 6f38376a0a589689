"""The ledger as the dashboard follows it: every entry is read once, and rows are counted once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from viewkeeper.errors import UsageError
from viewkeeper.warehouse import Entry, Snapshot
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.storage import Storage

# How many entries are kept for charts and lists; the ledger itself has all of them.
ENTRIES_KEPT = 5_000
# A larger view is not read only to count it.
ROWS_COUNTED_MAX = 500_000


@dataclass
class _Count:
    incarnation: int
    entry: int
    rows: int | None


@dataclass
class Chronicle:
    """Entries of one warehouse, oldest first. Not thread-safe: its owner holds a lock."""

    storage: Storage
    entries: deque[Entry] = field(default_factory=lambda: deque(maxlen=ENTRIES_KEPT))
    _counts: dict[str, _Count] = field(default_factory=dict)

    @property
    def latest(self) -> Entry | None:
        return self.entries[-1] if self.entries else None

    def refresh(self) -> bool:
        """Take in what is new; says whether something was. No warehouse yet is no error."""
        try:
            ledger = Ledger.open(self.storage)
        except UsageError:
            return self._forget()
        newest = ledger.latest()
        known = self.latest
        if known is not None and known.entry == newest.entry:
            return False
        if known is not None and newest.entry < known.entry:
            self._forget()  # the warehouse was made anew
        oldest = newest.entry - ENTRIES_KEPT
        fresh = ledger.entries(oldest if self.latest is None else max(self.latest.entry, oldest))
        if self.latest is not None and fresh[0].entry > self.latest.entry + 1:
            self._forget()  # away for so long that some entries were never read
        self.entries.extend(fresh)
        self._count(fresh)
        return bool(fresh)

    def _forget(self) -> bool:
        changed = bool(self.entries)
        self.entries.clear()
        self._counts.clear()
        return changed

    def rows(self, view: str) -> int | None:
        """How many rows the view has at the latest entry; None where counting would take long."""
        latest = self.latest
        if latest is None or view not in latest.views:
            return None
        count = self._counts.get(view)
        if count is None or count.incarnation != latest.views[view].incarnation:
            rows = counted_rows(self.storage, latest, view)
            count = _Count(latest.views[view].incarnation, latest.entry, rows)
            self._counts[view] = count
        return count.rows

    def _count(self, fresh: Sequence[Entry]) -> None:
        """What epochs brought and took is in their tallies: nothing need be read again."""
        for entry in fresh:
            for view, count in list(self._counts.items()):
                tally = entry.statistics.get(view)
                state = entry.views.get(view) if tally is not None else None
                if tally is None or count.rows is None or entry.entry <= count.entry:
                    continue
                if state is None or state.incarnation != count.incarnation:
                    del self._counts[view]
                    continue
                count.rows += tally.inserted - tally.deleted
                count.entry = entry.entry


def counted_rows(storage: Storage, entry: Entry, view: str) -> int | None:
    """How many rows a view has at one entry of the ledger; None where counting would take long."""
    state = entry.views[view]
    if state.base_rows + state.log_rows > ROWS_COUNTED_MAX:
        return None
    # At this very entry: a newer one would tell of another moment.
    table = Snapshot(storage, entry.last_txn, (entry,)).read_arrow(view, with_count=True)
    return int(pc.sum(table["_count"]).as_py() or 0)
