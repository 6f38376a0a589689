"""Complete-N: the views step from one multiple of N updates to the next.

Paper: MVC (1997), section 6.3. Level: strong, and every state includes whole blocks of N updates.
Assumes: every view manager is complete, or complete-N with an N that divides this one.

It is SPA with a block of N numbers in the place of a row. The last block may never fill up: when the
stream pauses, somebody who knows the time says `BlockEnded`. Blocks end at multiples of N all the same,
so that managers and merge process agree on them without talking to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from viewkeeper.merging.messages import RelevanceArrived, WarehouseTransaction
from viewkeeper.merging.simple_painting import SimplePainting
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.views.level import Level


def block_end(row: int, every: int) -> int:
    """The last row of the block that this row is in."""
    return -(-row // every) * every


class CompleteN(SimplePainting):
    """SPA over blocks of ``every`` updates."""

    name = "complete-n"
    level = Level.STRONG

    def __init__(self, table: ViewUpdateTable, every: int) -> None:
        super().__init__(table)
        self.every = every

    def relevance_arrived(self, event: RelevanceArrived) -> Iterator[WarehouseTransaction]:
        # A global transaction across the border makes two blocks one: all its parts or none, and no
        # manager's list, which is for a whole block, may be divided.
        ends = event.row % self.every == 0 and not event.more
        self.table.open_unit()
        yield from super().relevance_arrived(replace(event, more=not ends))

    def count_on(self, *, is_inside_unit: bool) -> None:
        """Begin on a table in which another algorithm, or another N, has left rows."""
        self.table.form_blocks(self.every, is_inside_unit=is_inside_unit)

    def block_ended(self) -> Iterator[WarehouseTransaction]:
        yield from super().block_ended()
        yield from self.revisited(self.table.close_unit())
