"""What all groups of views share: limits, the hand that commits, and whom to tell."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from viewkeeper.engine.integrator import Arrival, rows_in, transactions_in
from viewkeeper.engine.limits import Limits as Limits
from viewkeeper.engine.view import View
from viewkeeper.live.epochs import Epochs
from viewkeeper.live.evolution_log import EvolutionLog
from viewkeeper.live.questions.pacing import Pace
from viewkeeper.live.questions.source_queries import Asked
from viewkeeper.live.reading.bulk_reading import OnRows
from viewkeeper.run_events import BatchCommitted, OnEvent, Warned, ignore
from viewkeeper.sources.interface import Source
from viewkeeper.spark.session import Spark
from viewkeeper.warehouse.entries import Entry


@dataclass
class EpochReport:
    """One epoch: what it brought and how long each phase took."""

    entry: Entry
    batch: tuple[Arrival, ...]
    asked: dict[str, Asked]
    # The group's views, changed or not.
    views: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def transactions(self) -> int:
        return transactions_in(self.batch)

    @property
    def rows(self) -> int:
        return sum(arrival.rows for arrival in self.batch)

    @property
    def newest_commit(self) -> dt.datetime:
        """When the newest of the transactions was committed at its source."""
        return max(arrival.origin.committed_at for arrival in self.batch)

    @property
    def changed_rows(self) -> dict[str, int]:
        """How many rows the transactions put into each relation or took out of it."""
        found: Counter[str] = Counter()
        for arrival in self.batch:
            for name, change in arrival.transaction.changes:
                found[str(name)] += rows_in(change)
        return dict(found)

    def as_event(self, now: dt.datetime) -> BatchCommitted:
        changed = self.entry.shown_statistics.items()
        return BatchCommitted(
            epoch=self.entry.epoch,
            txn=self.entry.last_txn,
            transactions=self.transactions,
            rows=self.rows,
            freshness_seconds=round((now - self.newest_commit).total_seconds(), 3),
            seconds={phase: round(seconds, 4) for phase, seconds in self.seconds.items()},
            asked={source: asdict(asked) for source, asked in self.asked.items()},
            changes=self.changed_rows,
            changed={v: {"inserted": t.inserted, "deleted": t.deleted} for v, t in changed},
        )


@dataclass(frozen=True)
class Context:
    """What all groups share."""

    sources: Mapping[str, Source]
    spark: Spark
    epochs: Epochs
    limits: Limits
    paces: Mapping[str, Pace]
    # Gets epochs, errors (after those that pass, a group tries again), and what ended a group.
    report: Callable[[EpochReport | BaseException], None]
    on_rows: OnRows = lambda name, rows: None
    # Gets what happens, from any thread.
    tell: OnEvent = ignore
    log: EvolutionLog = field(default_factory=EvolutionLog)


def shortfall_event(view: View) -> Warned:
    """The view is kept at a lower level than it declares."""
    return Warned(view.shortfall or "", "level-not-reached", view=view.name)
