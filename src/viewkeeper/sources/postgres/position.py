"""Places in the log, and transaction numbers with their missing upper half."""

from __future__ import annotations

import numpy as np

from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.interface import Position
from viewkeeper.sources.transaction_block import Numbers


def make_position(system: str, timeline: int, lsn: int, item: int = 0) -> Position:
    """``lsn``: the end of a commit record; ``item``: how many items of the next were delivered."""
    return {"system": system, "timeline": timeline, "lsn": lsn, "item": item}


def require_same_history(left: Position, right: Position, source: str) -> None:
    """LSNs of another cluster, or of another timeline of this one, mean nothing here."""
    for part in ("system", "timeline"):
        if left[part] != right[part]:
            raise SourceError(
                "different-history",
                f"two positions of PostgreSQL source {source} belong to different histories",
                source=source,
                retryable=False,
                detail=f"{part} {left[part]} and {right[part]}",
                hint="the server was restored, promoted or replaced: "
                + rebuild_command(source, allow_setup=True),
            )


def feed_gap(source: str, detail: str) -> SourceError:
    """The log no longer has what comes after our position, or no slot kept it for us."""
    return SourceError(
        "feed-gap",
        f"the feed of PostgreSQL source {source} can't continue where it stopped",
        source=source,
        retryable=False,
        detail=detail,
        hint=rebuild_command(source, allow_setup=True),
    )


def compare(left: Position, right: Position, source: str) -> int:
    require_same_history(left, right, source)
    a, b = (left["lsn"], left["item"]), (right["lsn"], right["item"])
    return (a > b) - (a < b)


def lsn_number(text: str) -> int:
    """``16/B374D848`` as a number."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def widened(xid: int, near: int) -> int:
    """The 64-bit xid behind 32 bits: the one that is nearest to a 64-bit xid of about that time."""
    distance = (xid - near) & 0xFFFFFFFF
    if distance >= 1 << 31:
        distance -= 1 << 32
    return near + distance


def widened_all(xids: Numbers, near: int) -> Numbers:
    """`widened` of each of them, all being near to the same one."""
    distances = (xids - near) & 0xFFFFFFFF
    return near + np.where(distances >= 1 << 31, distances - (1 << 32), distances)
