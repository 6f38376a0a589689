"""What a batch may be, and for how long the engine waits for what."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.merging.commit_order import DependentOnly


@dataclass(frozen=True)
class Limits:
    """What one batch may be; a batch is as large as what waits, within these."""

    batch_transactions_max: int = 50_000
    # Changed rows, each of them counted for as many rows of a view as it may be in.
    batch_rows_max: int = 1_000_000
    # From this many waiting transactions on there is a backlog: then it is worth asking how large the
    # relations are.
    backlog_from: int = 1_000
    # Up to this many changed rows a batch goes through the session for small data.
    tiny_rows_max: int = 5_000
    # Jobs that a view has at work at a time: one is computed while the next one asks.
    jobs_max: int = 2
    # Batches that are kept for a view that none of them concerns, before it gets them.
    kept_batches_max: int = 64
    # Rows that wait before the feeds are made to wait.
    backlog_rows_max: int = 500_000
    # For how long a feed may stand still before a cut's bound.
    bound_wait_seconds: float = 30.0
    # How often positions are noted while nothing happens.
    idle_seconds: float = 30.0
    # Whether what a periodic view reads waits until its period is over, and the beginning of a block for its end.
    heeds_periods: bool = True
    # How long nothing arrives before a block is shown that has fewer transactions than it could.
    block_seconds: float = 1.0
    # In which order what is ready is handed to the warehouse: `merging.commit_order` has the policies.
    commits: str = DependentOnly.name
    # How long a group waits before it tries again after a source's error, and before it looks again whether
    # somebody has decided about a schema change.
    retry_seconds: float = 1.0
    # Before new cuts are opened where an owner's change overtook some: the feed is about to tell of it.
    overtaken_seconds: float = 0.05
    decision_seconds: float = 1.0
    # How soon to look again when a transaction has arrived that no cut shows yet.
    invisible_seconds: float = 0.02
    # A feed that keeps up passes a cut in less; else its questions are asked in advance.
    soon_seconds: float = 0.02
    # Older cuts are asked nothing new.
    cut_seconds_max: float = 10.0
    # For how long the sizes of relations are believed.
    weighed_seconds: float = 600.0
