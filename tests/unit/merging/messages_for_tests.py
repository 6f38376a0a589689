"""Short names for the messages of a merge process."""

from __future__ import annotations

from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    RelevanceArrived,
)


def rel(row: int, *views: str, streams: str = "") -> RelevanceArrived:
    return RelevanceArrived(row, views, tuple(streams.split()))


def al(view: str, *rows: int) -> ActionListArrived:
    return ActionListArrived(ActionList(view, rows))


def rows_of(commits: tuple[CommitTransaction, ...]) -> list[tuple[int, ...]]:
    return [commit.rows for commit in commits]
