"""PA, the Painting Algorithm: lists that cover several updates pull all of their rows together.

Paper: MVC (1997), section 5.1, Algorithm 2. Level: that of the weakest view manager, if it is at least strong. Assumes:
every view manager is at least strongly consistent, and messages of one process arrive in the order sent.

It stands for the paper's Algorithm 1, too, the Simple Painting Algorithm for complete managers: where every list covers one row,
Lines 4 and 5 are SPA's Line 2, each row is a transaction by itself, and the views together are complete.

A list may cover rows 1 and 3 at once. Then neither can show without the other, nor without whatever
other lists in these rows cover or come after. ``apply_rows`` collects all of that, beginning at the row
of the list that arrived; if nothing in it is white, it becomes one warehouse transaction.

| here | Algorithm 2 |
|---|---|
| ``relevance_arrived``, ``list_arrived`` | the main body: relevance allocates a row, a list paints its cells red |
| ``_attempt`` | Lines 1 to 5 of ProcessRow |
| ``process_row`` | Lines 6 to 10, and the loop of Line 9 |
| ``Cell.state`` | VUT[i, x].state; ``ViewUpdateTable.covered_with`` gives all rows of the list |

Where we differ. ApplyRows is emptied before every attempt: in the print a failed one leaves rows behind
that the next success would apply unchecked. Only the outermost call applies: in the print a recursive
call whose own lines hold goes on to Line 6 and applies rows whose caller is still being checked (rows 1
to 3, REL_1 = {x}, REL_2 = {y, z}, REL_3 = {x, y}; lists AL_2^y, AL_3^y, then AL_3^x for 1 and 3: row 3
would show y's second change without its first). Lists are ordered by arrival, not by number, for a
manager may take up a row later. Updates of one stream stay in order even when no view reads both: the paper lets a source's
second transaction show before its first if they concern different views, and a reader of both views sees a state that the
source never had. Relevance may come after the lists: then they wait in the table, and are painted when it comes. Recursion is a
list of rows to look at, for a chain of a thousand rows that were waiting for one must not exhaust the stack.

A row that fails remembers the white row that stopped it, so that a long chain behind a slow view is
walked once and not again for every list that joins it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain

from viewkeeper.merging.messages import ActionList, RelevanceArrived, WarehouseTransaction
from viewkeeper.merging.table import ViewUpdateTable


class Painting:
    """For strongly consistent view managers, for complete ones, and for any mixture of them."""

    name = "pa"

    def __init__(self, table: ViewUpdateTable) -> None:
        self.table = table
        self.apply_rows: set[int] = set()
        self._stopped_by: dict[int, int] = {}

    def relevance_arrived(self, event: RelevanceArrived) -> Iterator[WarehouseTransaction]:
        self.table.announce(event.row, event.views, event.streams)
        for action_list in self.table.painted():
            yield from self.process_row(action_list.number)

    def list_arrived(self, action_list: ActionList) -> Iterator[WarehouseTransaction]:
        self.table.receive(action_list)
        for painted in self.table.painted_in(action_list.view):
            yield from self.process_row(painted.number)

    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        candidates = deque([row])
        while candidates:
            candidate = candidates.popleft()
            if self.table.is_gray(candidate):
                continue  # applied with an earlier candidate
            self.forget_attempt()
            if self._attempt(candidate):
                # Lines 6 to 8.
                transaction, followers = self.table.apply(self.apply_rows)
                yield transaction
                for applied in transaction.rows:
                    self._stopped_by.pop(applied, None)
                # Line 9. Line 10, the purge, is left to the next event.
                candidates.extend(followers)

    def forget_attempt(self) -> None:
        self.apply_rows = set()

    def _attempt(self, row: int) -> bool:
        """Collect in ``apply_rows`` all that must show with this row; whether it can."""
        table = self.table
        came_from = {row: row}
        to_visit = [row]
        while to_visit:
            i = to_visit.pop()
            # Line 1.
            if i in self.apply_rows:
                continue
            # Line 2.
            if (white := self._stopped(i)) is not None:
                self._remember(i, white, came_from)
                return False
            # Line 3.
            self.apply_rows.add(i)
            # Line 4, and Line 5.
            for j in chain(table.earlier(i), table.covered_with(i)):
                if j not in self.apply_rows:
                    came_from.setdefault(j, i)
                    to_visit.append(j)
        return True

    def _stopped(self, row: int) -> int | None:
        """The incomplete row that keeps this one from being applied, as far as is known."""
        if self.table.is_incomplete(row):
            return row
        white = self._stopped_by.get(row)
        still = white is not None and white in self.table.rows and self.table.is_incomplete(white)
        return white if still else None

    def _remember(self, row: int, white: int, came_from: dict[int, int]) -> None:
        # Each row on the way here needs the next one, so what stops the last stops them all.
        self._stopped_by[row] = white
        while came_from[row] != row:
            row = came_from[row]
            self._stopped_by[row] = white
