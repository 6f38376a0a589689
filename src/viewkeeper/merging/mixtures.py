"""Which algorithm a group needs: the weakest of its view managers decides.

Paper: MVC (1997), section 6.3.

| the managers of the group | algorithm |
|---|---|
| all complete | SPA |
| complete and complete-N | complete-N, N the least common multiple |
| at least strong: periodic refresh and complete-N among them | PA |
| one promises less than strong | pass-through |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.errors import UsageError
from viewkeeper.merging.algorithm import MergeAlgorithm
from viewkeeper.merging.complete_n import CompleteN
from viewkeeper.merging.painting import Painting
from viewkeeper.merging.pass_through import PassThrough
from viewkeeper.merging.simple_painting import SimplePainting
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Promise:
    """What one view manager guarantees for its own view; ``every``: after each N-th update only."""

    level: Level
    every: int = 1

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UsageError(
                "bad-block-size",
                "a view manager can't be complete-N with an N below 1",
                detail=f"N is {self.every}",
            )


def algorithm_for(promises: Iterable[Promise], table: ViewUpdateTable) -> MergeAlgorithm:
    """The strictest algorithm that these managers allow, on that table."""
    listed = list(promises)
    weakest = min((promise.level for promise in listed), default=Level.COMPLETE)
    if weakest < Level.STRONG:
        return PassThrough(table)
    if weakest < Level.COMPLETE:
        return Painting(table)
    every = math.lcm(*(promise.every for promise in listed))
    return SimplePainting(table) if every == 1 else CompleteN(table, every)
