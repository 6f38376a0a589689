"""What all groups of views share: limits, the hand that commits, and whom to tell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.engine.integrator import Arrival, transactions_in
from viewkeeper.engine.limits import Limits as Limits
from viewkeeper.live.epochs import Epochs
from viewkeeper.live.evolution_log import EvolutionLog
from viewkeeper.live.questions.pacing import Pace
from viewkeeper.live.questions.source_queries import Asked
from viewkeeper.live.reading.bulk_reading import OnRows
from viewkeeper.sources.interface import Source
from viewkeeper.spark.session import Spark
from viewkeeper.warehouse.entries import Entry


@dataclass
class Cycle:
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


@dataclass(frozen=True)
class Context:
    """What all groups share."""

    sources: Mapping[str, Source]
    spark: Spark
    epochs: Epochs
    limits: Limits
    paces: Mapping[str, Pace]
    # Gets epochs, errors (after those that pass, a group tries again), and what ended a group.
    report: Callable[[Cycle | BaseException], None]
    on_rows: OnRows = lambda name, rows: None
    # Gets what happens, in the form of the command line's events.
    tell: Callable[[dict[str, Any]], None] = lambda event: None
    log: EvolutionLog = field(default_factory=EvolutionLog)
