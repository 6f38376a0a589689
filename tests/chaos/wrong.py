"""Runs as somebody would build them who does not know better. Each must be caught; none is in the product.

| variant | what it does | what becomes of it |
|---|---|---|
| acknowledge-before-commit | tells the sources to forget, then commits | after a kill in between, a gap |
| ledger-before-tables | appends the ledger's row, then makes what it names | a kill in between leaves a row that names nothing |
| one-way-compensation | adds what a cut does not show, never takes out what it shows too early | joins see the future |
| ignore-restart-positions | reads on from now instead of from the ledger | what was committed in between is lost |
| batch-under-last-number | puts a whole batch under its last number | states in between show nothing, then all at once |
| held-back | shows each transaction two states later, within its batch | states that claim what they do not show |
| torn-transactions | takes what a transaction deletes for one of its own | states between that never were, and a feed that tells of them |
| one-state-early | shows each transaction with the one before it | states that show what they do not claim |
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from chaos.scenery import SHOP
from viewkeeper.engine import cuts
from viewkeeper.engine.batches import Batches
from viewkeeper.failpoints import failpoint
from viewkeeper.live import epochs
from viewkeeper.live.epochs import Epochs
from viewkeeper.live.feeds import Delivery, Message
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.protocols.messages import TXN, Reflected
from viewkeeper.sources.interface import FeedItem, SourceTransaction
from viewkeeper.sources.transaction_block import Numbers, one_by_one
from viewkeeper.warehouse.commits import EpochCommit, Extent, check, check_written, epoch_entry
from viewkeeper.warehouse.writer import Writer

# As `setattr`; a test hands in a monkeypatch's, which takes it back.
Set = Callable[[Any, str, Any], None]
TOLD_SECONDS = 3.0


def acknowledge_before_commit(put: Set) -> None:
    def committed(self: Epochs, **parts: Any) -> Any:
        everybody = self._earliest(parts.get("cuts", {}), parts.get("dropped", frozenset()))
        known = self.writer.latest.positions
        self._confirm(everybody)
        if everybody.get(SHOP) != known.get(SHOP):
            # The readers tell their sources with their next poll; a busy run takes as long by itself.
            threading.Event().wait(TOLD_SECONDS)
            # Only here a kill does harm: else another group is behind, and what it needs is kept.
            failpoint("acknowledged")
        return self.writer.commit(EpochCommit(positions=everybody, **parts))

    put(Epochs, "_commit", committed)


def ledger_before_tables(put: Set) -> None:
    right = Writer.commit

    def commit(self: Writer, epoch: EpochCommit) -> Any:
        if any(isinstance(change, Extent) for change in epoch.views.values()):
            return right(self, epoch)
        with self.lock:
            check(epoch, self.settled())
            written = {view: self._write(epoch, view) for view in sorted(epoch.views)}
            for view, files in written.items():
                check_written(epoch, view, files)
            versions = {v: self._tables[v].version + 1 for v, w in written.items() if w.files}
            entry = epoch_entry(epoch, self._latest, written, versions, self.clock())
            self.append(entry)
            if versions:  # positions alone name no table: a kill does no harm there
                failpoint("between-ledger-and-tables")
            self._commit_tables(epoch, written)
            return entry

    put(Writer, "commit", commit)


def one_way_compensation(put: Set) -> None:
    def reflected_by(cut: object, applied: int, waiting: object) -> Reflected:
        return Reflected(applied)

    def visible(self: Batches, known: object) -> dict[str, None]:
        return dict.fromkeys(self._state.scope.sources)

    put(cuts, "reflected_by", reflected_by)
    put(Batches, "_visible", visible)


def ignore_restart_positions(put: Set) -> None:
    known: dict[str, Any] = {}

    def position(self: Pipeline, view: str, source: str) -> Any:
        if source not in known:
            known[source] = self.sources[source].start_position()
        return known[source]

    put(Pipeline, "_position", position)


def torn_transactions(put: Set) -> None:
    right = Pipeline._deliver

    def torn(transaction: FeedItem) -> list[FeedItem]:
        if not isinstance(transaction, SourceTransaction):
            return [transaction]
        changes = transaction.changes
        gone = tuple(change._replace(inserted=()) for change in changes if change.deleted)
        come = tuple(change._replace(deleted=()) for change in changes if change.inserted)
        return [transaction._replace(changes=part) for part in (gone, come) if part]

    def deliver(self: Pipeline, message: Message) -> None:
        if isinstance(message, Delivery):
            items = (piece for item in one_by_one(message.items) for piece in torn(item))
            message = replace(message, items=tuple(items))
        right(self, message)

    put(Pipeline, "_deliver", deliver)


def renumbering(moved: Callable[[np.ndarray], np.ndarray]) -> Callable[[Set], None]:
    """A run that shows the transactions of an epoch in other states than their own."""

    def variant(put: Set) -> None:
        def renumbered(
            table: pa.Table, numbers: Numbers, states: Sequence[int], first: int
        ) -> pa.Table:
            place = table.schema.get_field_index(TXN)
            which = np.searchsorted(numbers, table.column(place).to_numpy())
            shown = moved(np.asarray(states, np.int64))[which] + first
            return table.set_column(place, table.schema.field(place), pa.array(shown, pa.int64()))

        put(epochs, "_renumbered", renumbered)

    return variant


# Which state of its epoch each transaction is shown in, instead of its own.
MOVED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "batch-under-last-number": lambda states: np.full_like(states, states[-1]),
    "held-back": lambda states: np.minimum(states + 2, states[-1]),
    "one-state-early": lambda states: np.maximum(states - 1, states[0]),
}
# Where a kill does the harm that a variant invites.
POINTS = {
    "acknowledge-before-commit": ("acknowledged",),
    "ledger-before-tables": ("between-ledger-and-tables",),
}
VARIANTS: dict[str, Callable[[Set], None]] = {
    "acknowledge-before-commit": acknowledge_before_commit,
    "ledger-before-tables": ledger_before_tables,
    "one-way-compensation": one_way_compensation,
    "ignore-restart-positions": ignore_restart_positions,
    "torn-transactions": torn_transactions,
    **{name: renumbering(moved) for name, moved in MOVED.items()},
}


def until(holds: Callable[[], bool], seconds_max: float = 60.0) -> None:
    """Ask again and again: what is waited for happens in another process and tells nobody."""
    deadline = time.monotonic() + seconds_max
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come in {seconds_max} s")
        time.sleep(0.05)
