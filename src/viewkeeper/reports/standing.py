"""What a run's last words mean now: how far views and sources are behind, and what waits for somebody.

One function for each figure. ``status``, the dashboard's overview and the metrics all call these, so that they can't
disagree. Pure: ``standing`` is what `live.standing` measured, as it is written; moments in it become ages here, at the time of
the one who asks. Unknown is what no feed has brought: how far a feed is behind, its source says.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from viewkeeper.reports.run_state import NOBODY_KEEPS

# A source or a view without a target that is so far behind is not in order.
BEHIND_SECONDS = 60.0
# The state of a source that answers well, and whose changes are not in the views for long.
BEHIND = "behind"

Document = Mapping[str, Any]


def standing_in(run: Document) -> Document:
    """What a run that goes does not show; empty where none goes, for then nothing can be late."""
    found: Document = {} if run["state"] in NOBODY_KEEPS else run.get("standing", {})
    return found


def approvals_of(standing: Document) -> list[Document]:
    """The schema changes that wait for somebody's word."""
    return list(standing.get("approvals", ()))


def approval_of(standing: Document, view: str) -> Document | None:
    """The one that holds a view up."""
    return next((each for each in approvals_of(standing) if view in each["views"]), None)


def age_seconds(since: str | None, now: dt.datetime) -> float:
    """How old what is not shown is; 0 when nothing waits."""
    if since is None:
        return 0.0
    return max(0.0, round((now - dt.datetime.fromisoformat(since)).total_seconds(), 3))


def behind_seconds(
    standing: Document, source: str, lag_seconds: float | None, now: dt.datetime
) -> float | None:
    """How far the views are behind a source, as it says itself or as the run knows; None if neither does."""
    since = standing.get("sources", {}).get(source)
    known = [] if since is None else [age_seconds(since, now)]
    known += [] if lag_seconds is None else [lag_seconds]
    return max(known, default=None)


def freshness_seconds(
    standing: Document, view: str, now: dt.datetime, lags: Iterable[float | None] = ()
) -> float | None:
    """How old the oldest is that a view is known not to show; None while no run keeps it.

    What the run has and does not show of it; or what has not reached the run, as the ``lags`` of its sources say. What other
    views of a source do not show is no lag of this one.
    """
    if view not in standing.get("views", {}):
        return None
    ages = (age_seconds(standing["views"][view], now), *lags)
    return max(float(seconds) for seconds in ages if seconds is not None)


def allowances(run: Document, reads: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """By source, for how long its newest may wait because a periodic view is not due yet.

    ``reads``: the sources of each view.
    """
    found: dict[str, float] = {}
    for view, sources in reads.items():
        for source in sources:
            found[source] = max(period_of(run, view), found.get(source, 0.0))
    return found


def period_of(run: Document, view: str) -> float:
    """For how long a periodic view may not show what there is; 0 for others."""
    return float(run["views"].get(view, {}).get("period_seconds") or 0.0)


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


def kept_state(run: Document, view: str) -> str:
    """What the run's state means for one view: a change that waits holds up its own group alone."""
    standing = standing_in(run)
    if run["state"] != "waiting" or not approvals_of(standing):
        return str(run["state"])
    return "running" if approval_of(standing, view) is None else "waits for approval"
