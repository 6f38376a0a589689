"""The newest entries of a ledger, followed: every entry is read once, and rows are counted once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.warehouse import Entry, Snapshot, Warehouse
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.one_cut import is_one_cut
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
class LedgerTail:
    """Entries of one warehouse, oldest first. Not thread-safe: its owner holds a lock."""

    storage: Storage
    entries: deque[Entry] = field(default_factory=lambda: deque(maxlen=ENTRIES_KEPT))
    # Views whose rows can't be counted because something of them is damaged, each with why.
    damages: dict[str, WarehouseError] = field(default_factory=dict)
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
            self._forget()  # the warehouse was made again
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
        self.damages.clear()
        return changed

    def rows(self, view: str) -> int | None:
        """How many rows the view has at the latest entry; None where counting would take long."""
        latest = self.latest
        if latest is None or view not in latest.views:
            return None
        count = self._counts.get(view)
        if count is None or count.incarnation != latest.views[view].incarnation:
            try:
                rows = counted_rows(self.storage, latest, view)
            except WarehouseError as error:
                self.damages[view] = error  # the other views can be looked at
                return None
            self.damages.pop(view, None)
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


def at_one_cut(
    storage: Storage, entry: Entry, counts: Mapping[str, int | None]
) -> dict[str, int | None]:
    """How many rows views have when they are read together, given how many they have at the entry."""
    found = dict(counts)
    if is_one_cut(entry, found):
        return found
    warehouse = Warehouse(storage)
    snapshot = warehouse.overview(entry.last_txn)
    for view, number in snapshot.older.items():
        count = found.get(view)
        if count is not None:
            found[view] = _count_at(warehouse, snapshot, view, count, number)
    return found


def _count_at(
    warehouse: Warehouse, snapshot: Snapshot, view: str, count: int, number: int
) -> int | None:
    oldest = snapshot.entries[0].entry
    try:
        parts = warehouse.change_parts(view, number, snapshot.txn, since_entry=oldest)
        return count - sum(int(pc.sum(part["_count"]).as_py() or 0) for part in parts)
    except UsageError:
        # Filled again in between: what it was before must be counted for itself.
        if snapshot.stored_rows(view) > ROWS_COUNTED_MAX:
            return None
        return int(pc.sum(snapshot.read_arrow(view, with_count=True)["_count"]).as_py() or 0)
