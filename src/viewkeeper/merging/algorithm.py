"""What all merge algorithms share: the main body of the paper's Algorithm 1.

Relevance allocates a row, a list paints its cells red, and each painted list is an attempt to apply its
row. Relevance may come after the lists: then they wait in the table, and are painted when it comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from viewkeeper.merging.messages import ActionList, RelevanceArrived, WarehouseTransaction
from viewkeeper.merging.rows import Colour
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.views.level import Level


class MergeAlgorithm(ABC):
    """Decides on a table which rows form a warehouse transaction; the table is its only state."""

    name: ClassVar[str]
    level: ClassVar[Level]

    def __init__(self, table: ViewUpdateTable) -> None:
        self.table = table

    @abstractmethod
    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        """Apply what can be applied now, beginning at this row."""

    def process_action(self, action_list: ActionList) -> Iterator[WarehouseTransaction]:
        """A list has been painted."""
        yield from self.process_row(action_list.number)

    def relevance_arrived(self, event: RelevanceArrived) -> Iterator[WarehouseTransaction]:
        if event.more:
            self.table.open_unit()
        self.table.announce(event.row, event.views, event.streams)
        closed = [] if event.more else self.table.close_unit()
        for action_list in self.table.painted():
            yield from self._painted(action_list)
        # A unit whose lists were all here before its last row has nobody else to begin it.
        yield from self.revisited(closed)

    def list_arrived(self, action_list: ActionList) -> Iterator[WarehouseTransaction]:
        self.table.receive(action_list)
        for painted in self.table.painted_in(action_list.view):
            yield from self._painted(painted)

    def _painted(self, action_list: ActionList) -> Iterator[WarehouseTransaction]:
        if self.table.cell(action_list.number, action_list.view).colour is Colour.RED:
            yield from self.process_action(action_list)
        else:
            # It was passed on while the group was only convergent; its rows may be complete now.
            yield from self.revisited(list(action_list.rows))

    def block_ended(self) -> Iterator[WarehouseTransaction]:
        """Only an algorithm that counts updates into blocks has to do with it, or one that takes over
        from this one."""
        self.table.end_block()
        yield from ()

    def taken_over(self) -> Iterator[WarehouseTransaction]:
        """Begin on a table that another algorithm, or another group, has left."""
        self.table.purge()
        yield from self.revisited(list(self.table.rows))

    def revisited(self, rows: list[int]) -> Iterator[WarehouseTransaction]:
        """Try rows again that something outside the table has freed."""
        for row in rows:
            if row in self.table.rows and self.table.rows[row].red:
                yield from self.process_row(row)
