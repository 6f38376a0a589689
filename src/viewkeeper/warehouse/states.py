"""Which version of which table holds the state asked for. Pure functions over ledger entries.

The extent of a view at transaction t is the sum of its change rows numbered at most t. A table
version of the same incarnation serves t when it has not folded t away (``base_txn`` ≤ t) and has
heard of it; among those the LAST is taken: it has the fewest, largest files, so earlier versions
of the same base may be vacuumed without losing a state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewkeeper.errors import UsageError, invariant
from viewkeeper.warehouse.entries import Entry, ViewState


@dataclass(frozen=True)
class Segment:
    """A part of a view's change feed: rows numbered after < n ≤ upto, found in this version."""

    state: ViewState
    after: int
    upto: int


def position_at(entries: Sequence[Entry], txn: int) -> int:
    """Where the entry stands that shows transaction ``txn``; raises UsageError if there is none.

    Of several that show it (an epoch that ends with it, consolidations after) it is the last.
    """
    last = entries[-1]
    if txn > last.last_txn:
        raise UsageError(
            "state-not-reached",
            f"there is no state {txn} yet",
            detail=f"the newest state is {last.last_txn}",
            hint="leave --as-of out to read the newest state",
        )
    if txn < last.oldest_txn:
        raise UsageError(
            "state-not-retained",
            f"state {txn} is no longer kept",
            detail=f"the oldest state that can be read is {last.oldest_txn}",
            hint="retention decides how long states are kept; viewkeeper history lists them",
        )
    position = bisect_right(entries, txn, key=lambda entry: entry.serves_from) - 1
    invariant(position >= 0, f"no ledger entry covers state {txn}, which retention promises")
    return position


def serving(entries: Sequence[Entry], view: str, txn: int) -> ViewState:
    """The view's state from which transaction ``txn`` is best read."""
    return _serving(entries, view, txn)[1]


def _serving(entries: Sequence[Entry], view: str, txn: int) -> tuple[int, ViewState]:
    """The same, and where its entry stands."""
    position = position_at(entries, txn)
    state = entries[position].view(view)
    if state is None:
        raise _unknown_view(entries, view, txn)

    def serves(index: int) -> bool:
        later = entries[index].view(view)
        return (
            later is not None and later.incarnation == state.incarnation and later.base_txn <= txn
        )

    # True for a while, then false for good: bases only grow, an incarnation never comes back.
    best = _last_where(serves, position, len(entries))
    found = entries[best].view(view)
    assert found is not None
    return best, found


def segments(entries: Sequence[Entry], view: str, after: int, upto: int) -> tuple[Segment, ...]:
    """Where the changes of a view with numbers after < n ≤ upto are found, in order."""
    if after > upto:
        raise UsageError(
            "empty-range", f"there are no changes after {after} and up to {upto}",
            hint="the first number must not be greater than the second",
        )  # fmt: skip
    position_at(entries, after)
    position, state = _serving(entries, view, upto)
    if after < state.since_txn:
        raise UsageError(
            "view-replaced",
            f"the changes of {view} after {after} are not known",
            detail=f"the view was created or replaced as a whole at {state.since_txn}",
            hint=f"read it as of {state.since_txn}, then follow its changes from there",
        )
    parts: list[Segment] = []
    while upto > after:
        if upto > state.base_txn:
            parts.append(Segment(state, max(after, state.base_txn), upto))
        upto = state.base_txn
        if upto > after:
            # The version before the fold still has single rows up to and including the base.
            position, state = _before_fold(entries, view, position, state)
    return tuple(reversed(parts))


def _before_fold(
    entries: Sequence[Entry], view: str, position: int, state: ViewState
) -> tuple[int, ViewState]:
    """The best version with a smaller base, of the same incarnation, and where its entry stands."""

    def is_earlier(index: int) -> bool:
        # Before the state's own place the view is not there yet, or another one, only at first.
        known = entries[index].view(view)
        return (
            known is None
            or known.incarnation != state.incarnation
            or known.base_txn < state.base_txn
        )

    if is_earlier(0):
        best = _last_where(is_earlier, 0, position)
        found = entries[best].view(view)
        if found is not None and found.incarnation == state.incarnation:
            return best, found
    invariant(False, f"the changes of {view} before {state.base_txn} are kept but not found")
    raise AssertionError("unreachable")


def _last_where(holds: Callable[[int], bool], first: int, end: int) -> int:
    """The greatest index in [first, end) for which ``holds``; it holds at ``first``."""
    low, high = first, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _unknown_view(entries: Sequence[Entry], view: str, txn: int) -> UsageError:
    known = sorted(entries[-1].shown_views)
    since = [e.views[view].since_txn for e in entries if view in e.views]
    if since:
        return UsageError(
            "view-not-there",
            f"view {view} has no state {txn}",
            detail=f"it is in the warehouse from {min(since)} on"
            + ("" if view in known else " and was dropped since"),
            hint="viewkeeper history lists the states",
        )
    return UsageError(
        "unknown-view",
        f"there is no view {view} in the warehouse",
        detail=f"its views are {', '.join(known) or 'none yet'}",
    )
