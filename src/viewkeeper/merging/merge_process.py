"""One merge process: a painting algorithm, and the order of its commits behind it."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.merging.algorithm import MergeAlgorithm
from viewkeeper.merging.commit_order import CommitOrder, DependentOnly
from viewkeeper.merging.messages import (
    ActionListArrived,
    BlockEnded,
    CommitTransaction,
    Event,
    RelevanceArrived,
    WarehouseCommitted,
    WarehouseTransaction,
)
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.views.level import Level


class MergeProcess:
    """Keeps the views of one group in step with each other. `step` is its only entry."""

    def __init__(self, algorithm: MergeAlgorithm, commits: CommitOrder | None = None) -> None:
        self.algorithm = algorithm
        self.commits = commits or DependentOnly()

    @property
    def table(self) -> ViewUpdateTable:
        return self.algorithm.table

    @property
    def level(self) -> Level:
        """What the views together reach, if every view alone reaches what its manager promised."""
        return min(self.algorithm.level, self.commits.level)

    def step(self, event: Event) -> tuple[CommitTransaction, ...]:
        """Take one event in; the commits may be carried out in any order among themselves."""
        self.table.purge()
        match event:
            case RelevanceArrived():
                return self._ready(self.algorithm.relevance_arrived(event))
            case ActionListArrived(action_list):
                return self._ready(self.algorithm.list_arrived(action_list))
            case BlockEnded():
                return self._ready(self.algorithm.block_ended())
            case WarehouseCommitted(number):
                return self.commits.committed(number)

    def take_over(self) -> tuple[CommitTransaction, ...]:
        """Go on from a table and an order of commits that others have left."""
        return self._ready(self.algorithm.taken_over())

    def _ready(self, transactions: Iterable[WarehouseTransaction]) -> tuple[CommitTransaction, ...]:
        return self.commits.ready(list(transactions))

    @property
    def is_idle(self) -> bool:
        """Whether everything that arrived is committed."""
        return self.table.is_empty and self.commits.is_idle
