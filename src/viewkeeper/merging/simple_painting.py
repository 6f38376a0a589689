"""SPA, the Simple Painting Algorithm: one update, one warehouse transaction.

Paper: MVC (1997), section 4.2, Algorithm 1. Level: complete. Assumes: every view manager is complete
(one list for each relevant update, in order), and messages of one process arrive in the order sent.

A row is painted gray when all its cells are red or black, and no earlier red cell is above one of its
own: then all views it concerns can take this one step together. Painting it may free the rows below.

| here | Algorithm 1 |
|---|---|
| `MergeAlgorithm.relevance_arrived`, ``list_arrived`` | the two events |
| ``process_row`` | ProcessRow; the lines are marked |
| ``ViewUpdateTable.earlier`` | the red cells above, Line 2 |

Where we differ: the recursion of Line 5 is a list of rows to look at, for a chain of a thousand rows
that were waiting for one must not exhaust the stack. A *unit* of rows that show together takes the place
of a row, which for most is the same (section 6.2; complete-N). And updates of one stream stay in order
even when no view reads both: the paper lets a source's second transaction show before its first if they
concern different views, and a reader who sees both views sees a state that the source never had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.algorithm import MergeAlgorithm
from viewkeeper.merging.messages import ActionList, WarehouseTransaction
from viewkeeper.views.level import Level


class SimplePainting(MergeAlgorithm):
    """For complete view managers."""

    name = "spa"
    level = Level.COMPLETE

    def process_action(self, action_list: ActionList) -> Iterator[WarehouseTransaction]:
        unit = self.table.unit_of(action_list.number)
        if not all(row in unit for row in action_list.rows):
            raise InvariantViolated(
                f"{action_list} is not of a complete view manager",
                detail=f"it covers {action_list.rows}, which need not show together",
            )
        yield from super().process_action(action_list)

    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        table = self.table
        candidates = deque([row])
        while candidates:
            unit = table.unit_of(candidates.popleft())
            # Line 1: something has not arrived yet. An empty unit was applied on the way here.
            if not unit or any(table.is_incomplete(i) for i in unit):
                continue
            # Line 2: a view would miss what an earlier list does to it.
            if any(earlier not in unit for i in unit for earlier in table.earlier(i)):
                continue
            # Lines 3 and 4.
            transaction, followers = table.apply(unit)
            yield transaction
            # Line 5. Line 6, the purge, is left to the next event.
            candidates.extend(followers)
