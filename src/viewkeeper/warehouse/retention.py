"""Which states are promised, and which table versions that takes. Pure.

A state is promised when it is among the newest ``transactions`` ones OR was current within the last
``seconds``: both promises are kept. What is stored beyond them is dropped by vacuum, never sooner
than ``grace_seconds`` after it stopped being the newest, for readers that are under way.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.errors import UsageError
from viewkeeper.warehouse.entries import Entry

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Retention:
    """How long states stay readable. ``math.inf`` keeps them for ever."""

    transactions: float = 10_000
    seconds: float = 7 * DAY_SECONDS
    grace_seconds: float = 600

    def __post_init__(self) -> None:
        if min(self.transactions, self.seconds, self.grace_seconds) < 0:
            raise UsageError(
                "bad-retention",
                "retention can't be negative",
                detail=f"transactions {self.transactions}, seconds {self.seconds}, "
                f"grace_seconds {self.grace_seconds}",
                hint="0 promises nothing, inf keeps everything",
            )


@dataclass(frozen=True)
class VacuumPlan:
    """The oldest state that stays, the entries that stay, and each view's versions to protect."""

    oldest_txn: int
    kept: tuple[Entry, ...]
    protected: dict[str, tuple[int, ...]]
    protected_published: dict[str, tuple[int, ...]]


def horizon(entries: Sequence[Entry], retention: Retention, now: dt.datetime) -> int:
    """The oldest promised state; never older than what is still there, never newer than the newest."""
    last = entries[-1]
    by_count = max(last.last_txn - retention.transactions, last.oldest_txn)
    by_time: float = last.oldest_txn
    current = _current_at(entries, now, retention.seconds)
    if current is not None:
        by_time = entries[current].last_txn
    return max(last.oldest_txn, int(min(by_count, by_time)))


def _current_at(entries: Sequence[Entry], now: dt.datetime, seconds_ago: float) -> int | None:
    """Where the entry stands that was the newest that long ago; None when all are younger."""
    if seconds_ago > (now - entries[0].committed_at).total_seconds():
        return None
    moment = now - dt.timedelta(seconds=seconds_ago)
    # A clock set back may have made times go back: the running maximum is what had been shown.
    newest = entries[0].committed_at
    shown = [newest := max(newest, entry.committed_at) for entry in entries]
    position = bisect_right(shown, moment) - 1
    return position if position >= 0 else None


def vacuum_plan(entries: Sequence[Entry], retention: Retention, now: dt.datetime) -> VacuumPlan:
    """What to keep. Whatever is not in it may be deleted."""
    oldest = horizon(entries, retention, now)
    covering = bisect_right(entries, oldest, key=lambda entry: entry.serves_from) - 1
    # History goes back to the epoch that made the oldest state, not to a later rearrangement of it.
    while covering > 0 and entries[covering].kind != "epoch":
        covering -= 1
    recent = _current_at(entries, now, retention.grace_seconds) or 0
    kept = tuple(entries[max(0, min(covering, recent)) :])
    return VacuumPlan(
        oldest,
        kept,
        _protected(kept, oldest, entries[recent:]),
        _published(entries[recent:]),
    )


def _protected(
    kept: Sequence[Entry], oldest: int, recent: Sequence[Entry]
) -> dict[str, tuple[int, ...]]:
    """For each view: the last version of each base that a promised state needs, and recent ones."""
    versions: dict[str, set[int]] = {}
    for view, bases in bases_of(kept).items():
        for base, following in zip(bases, [*bases[1:], None], strict=True):
            same = following is not None and following.incarnation == base.incarnation
            # From the next base on, states are read from there.
            end = following.base_txn - 1 if same and following is not None else base.reached
            if end >= oldest:
                versions.setdefault(view, set()).add(base.version)
    for entry in recent:
        for view, state in entry.views.items():
            versions.setdefault(view, set()).add(state.version)
    return {view: tuple(sorted(found)) for view, found in sorted(versions.items())}


@dataclass(frozen=True)
class Base:
    """The last version that rests on one base, and the newest transaction it heard of."""

    incarnation: int
    base_txn: int
    version: int
    reached: int


def bases_of(entries: Sequence[Entry]) -> dict[str, list[Base]]:
    """Each view's bases in order of time."""
    found: dict[str, dict[tuple[int, int], Base]] = {}
    for entry in entries:
        for view, state in entry.views.items():
            key = (state.incarnation, state.base_txn)
            found.setdefault(view, {})[key] = Base(*key, state.version, entry.last_txn)
    return {view: list(bases.values()) for view, bases in found.items()}


def _published(recent: Sequence[Entry]) -> dict[str, tuple[int, ...]]:
    versions: dict[str, set[int]] = {}
    for entry in recent:
        for view, state in entry.views.items():
            if state.published is not None:
                versions.setdefault(view, set()).add(state.published.version)
    return {view: tuple(sorted(found)) for view, found in sorted(versions.items())}
