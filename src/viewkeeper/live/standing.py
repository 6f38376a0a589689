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
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.definition import RelationName

# Older than this, what is not shown is worth telling; younger, it is on its way.
LATE_SECONDS = 1.0
# A source or a view without a target that is so far behind is not in order.
BEHIND_SECONDS = 60.0

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

    def as_dict(self) -> dict[str, Any]:
        return {
            "views": {n: None if at is None else at.isoformat() for n, at in self.views.items()},
            "sources": {name: at.isoformat() for name, at in self.sources.items()},
            "approvals": [dict(each) for each in self.approvals],
        }


def combined(parts: Iterable[Standing]) -> Standing:
    """What all groups say."""
    views: dict[str, dt.datetime | None] = {}
    sources: dict[str, dt.datetime] = {}
    approvals: list[Mapping[str, Any]] = []
    for part in parts:
        views |= part.views
        for name, at in part.sources.items():
            sources[name] = min(at, sources.get(name, at))
        approvals += part.approvals
    return Standing(views, sources, tuple(approvals))


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


def age_seconds(since: str | None, now: dt.datetime) -> float:
    """How old what is not shown is, from what a run wrote down; 0 when nothing waits."""
    if since is None:
        return 0.0
    return max(0.0, round((now - dt.datetime.fromisoformat(since)).total_seconds(), 3))


def allowances(run: Mapping[str, Any], reads: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """By source, for how long its newest may wait because a periodic view is not due yet.

    ``reads``: the sources of each view.
    """
    found: dict[str, float] = {}
    for view, sources in reads.items():
        period = float(run["views"].get(view, {}).get("period_seconds") or 0.0)
        for source in sources:
            found[source] = max(period, found.get(source, 0.0))
    return found


def reached_by(source: str, latest: Any, *, is_kept: bool) -> list[Any]:
    """The positions to count a source's own lag from: of all views that read it, the newest is good.

    While a run goes, it has all that lies before that in its hands, and says how old it is: views over
    other tables note their place now and then only. Without one, what the last one has not, none has.
    """
    if latest is None:
        return []
    if not is_kept:
        return [latest.positions[source]] if source in latest.positions else []
    views = (view for view in latest.views.values() if not view.definition.has_ended)
    return [view.positions[source] for view in views if source in view.positions]


def approval_of(standing: Mapping[str, Any], view: str) -> Mapping[str, Any] | None:
    """The schema change that holds a view up, from what a run wrote down."""
    held: Iterable[Mapping[str, Any]] = standing.get("approvals", ())
    return next((each for each in held if view in each["views"]), None)


def kept_state(run: Mapping[str, Any], view: str) -> str:
    """What the run's state means for one view: a change that waits holds up its own group alone."""
    standing = run.get("standing", {})
    if run["state"] != "waiting" or not standing.get("approvals"):
        return str(run["state"])
    return "running" if approval_of(standing, view) is None else "waits for approval"
