"""What a run has not shown yet: how old it is, by view and by source, and what waits for somebody's word.

Moments stand here, not ages: a reader works the age out later, also when the run has
said nothing since. Unknown is what no feed has brought: how far a feed is behind, its source's health says.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.live.feeds import Delivery
from viewkeeper.run_events import StandingChanged
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.definition import RelationName

# Older than this, what is not shown is worth telling; younger, it is on its way.
LATE_SECONDS = 1.0

Since = Mapping[str, dt.datetime]


@dataclass(frozen=True)
class Standing:
    """Since when the oldest that a view, or a source, has and does not show is committed."""

    # All that are kept; None where nothing waits.
    views: Mapping[str, dt.datetime | None] = field(default_factory=dict)
    sources: Since = field(default_factory=dict)
    # Schema changes that wait for somebody's word, as they were told, with the views that they hold up.
    approvals: tuple[Mapping[str, Any], ...] = ()

    def late(self, now: dt.datetime) -> Standing:
        """Without what is only on its way."""
        edge = now - dt.timedelta(seconds=LATE_SECONDS)
        views = {n: at if at is not None and at < edge else None for n, at in self.views.items()}
        sources = {name: at for name, at in self.sources.items() if at < edge}
        return Standing(views, sources, self.approvals)

    def as_event(self) -> StandingChanged:
        return StandingChanged(
            {n: None if at is None else at.isoformat() for n, at in self.views.items()},
            {name: at.isoformat() for name, at in self.sources.items()},
            tuple(dict(each) for each in self.approvals),
        )


def combined(parts: Iterable[Standing]) -> Standing:
    """What all groups say."""
    found = tuple(parts)
    return Standing(
        {name: at for part in found for name, at in part.views.items()},
        oldest(*(part.sources for part in found)),
        tuple(each for part in found for each in part.approvals),
    )


def oldest(*moments: Since) -> dict[str, dt.datetime]:
    """By source, the earliest of some moments."""
    found: dict[str, dt.datetime] = {}
    for each in moments:
        for name, at in each.items():
            found[name] = min(at, found.get(name, at))
    return found


def committed_in(message: Any, relations: Iterable[RelationName]) -> dict[str, dt.datetime]:
    """When the oldest transaction of a message to a group was committed, by source."""
    items: tuple[Any, ...] = ()
    match message:
        case Delivery():
            items = message.items
        case Unit():
            items = tuple(message.items)
    wanted = set(relations)
    return oldest(
        *(
            {item.source: oldest_commit(item)}
            for item in items
            if isinstance(item, SourceTransaction | TransactionBlock) and _changes_any(item, wanted)
        )
    )


def oldest_commit(origin: SourceTransaction | TransactionBlock) -> dt.datetime:
    """When the first of it was committed."""
    return origin.began_at if isinstance(origin, TransactionBlock) else origin.committed_at


def _changes_any(item: SourceTransaction | TransactionBlock, wanted: set[RelationName]) -> bool:
    names = (
        item.changes if isinstance(item, TransactionBlock) else (c.relation for c in item.changes)
    )
    return any(RelationName(item.source, name) in wanted for name in names)
