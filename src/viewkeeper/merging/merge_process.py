"""One merge process: the painting of one group of views, and the order of its commits behind it."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.merging.commit_order import CommitOrder, DependentOnly
from viewkeeper.merging.messages import (
    ActionListArrived,
    CommitTransaction,
    Event,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.painting import Painting
from viewkeeper.merging.table import ViewUpdateTable


class MergeProcess:
    """Keeps the views of one group in step with each other. `step` is its only entry."""

    def __init__(
        self,
        views: Iterable[str],
        commits: CommitOrder | None = None,
        algorithm: type[Painting] = Painting,
    ) -> None:
        self.table = ViewUpdateTable(views)
        self.algorithm = algorithm(self.table)
        self.commits = commits or DependentOnly()

    def step(self, event: Event) -> tuple[CommitTransaction, ...]:
        """Take one event in; the commits may be carried out in any order among themselves."""
        self.table.purge()
        match event:
            case RelevanceArrived():
                return self.commits.ready(list(self.algorithm.relevance_arrived(event)))
            case ActionListArrived(action_list):
                return self.commits.ready(list(self.algorithm.list_arrived(action_list)))
            case WarehouseCommitted(number):
                return self.commits.committed(number)

    @property
    def is_idle(self) -> bool:
        """Whether everything that arrived is committed."""
        return self.table.is_empty and self.commits.is_idle
