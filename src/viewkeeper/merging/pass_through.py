"""Convergent pass-through: every list goes on as it comes.

Paper: MVC (1997), section 6.3. Level: convergent. Assumes: lists of one manager arrive in order.

For managers that promise no more than the right end, holding lists back gains nothing. The table is
kept all the same: it shows what is awaited, and another algorithm can take over from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.merging.algorithm import MergeAlgorithm
from viewkeeper.merging.messages import ActionList, WarehouseTransaction
from viewkeeper.views.level import Level


class PassThrough(MergeAlgorithm):
    """One list, one warehouse transaction; the views agree in the end, not on the way."""

    name = "pass-through"
    level = Level.CONVERGENT

    def list_arrived(self, action_list: ActionList) -> Iterator[WarehouseTransaction]:
        yield WarehouseTransaction(action_list.rows, (action_list,))
        self.table.receive(action_list, passed_on=True)
        for _ in self.table.painted_in(action_list.view):
            pass  # painted gray at once

    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        yield from ()

    def taken_over(self) -> Iterator[WarehouseTransaction]:
        # What a stricter algorithm held back need not wait any more, nor what is early.
        for action_list in self.table.held():
            yield WarehouseTransaction(action_list.rows, (action_list,))
