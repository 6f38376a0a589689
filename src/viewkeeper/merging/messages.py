"""What goes into a merge process and what comes out of it.

Updates are known by their numbers: row i of the table is update U_i. In all of this an update may be a whole
transaction over several relations (MVC, section 6.2); in the engine it is a batch of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from viewkeeper.errors import invariant


@dataclass(frozen=True, eq=False)
class ActionList:
    """AL_i^x: what brings view x to the state after the updates ``rows``, i being the last of them.

    ``contents`` is for the warehouse alone. ``rows`` ascend; a complete manager covers one. A manager
    may leave out rows that it takes up in a later list, as Nested SWEEP does: its lists are applied in
    the order in which it sent them, whatever their numbers.
    """

    view: str
    rows: tuple[int, ...]
    contents: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise(self.rows))
        invariant(self.rows and ascending, f"an action list of {self.view} covers {self.rows}")

    @property
    def number(self) -> int:
        return self.rows[-1]

    def __str__(self) -> str:
        return f"AL_{self.number}^{self.view}"


@dataclass(frozen=True)
class WarehouseTransaction:
    """WT: lists to be applied together. ``after``: rows that must be committed before or with it."""

    rows: tuple[int, ...]
    lists: tuple[ActionList, ...]
    after: frozenset[int] = frozenset()

    @property
    def views(self) -> frozenset[str]:
        return frozenset(action_list.view for action_list in self.lists)


# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RelevanceArrived:
    """REL_i: the views that update i changes, perhaps none. Relevance arrives in the order of rows.

    Updates of one stream must show in their order: a stream is a source, as a rule, and an update
    belongs to its source's.
    """

    row: int
    views: tuple[str, ...]
    streams: tuple[str, ...] = ()


@dataclass(frozen=True)
class ActionListArrived:
    """A view manager sent a list; lists of one manager arrive in the order sent."""

    list: ActionList


@dataclass(frozen=True)
class WarehouseCommitted:
    """The warehouse has committed the transaction of that number."""

    number: int


Event = RelevanceArrived | ActionListArrived | WarehouseCommitted


# -- actions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CommitTransaction:
    """Apply these lists, in this order, in one warehouse transaction; then say that it committed.

    The views then show exactly the updates ``rows`` more than before.
    """

    number: int
    rows: tuple[int, ...]
    lists: tuple[ActionList, ...]

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(sorted({action_list.view for action_list in self.lists}))
