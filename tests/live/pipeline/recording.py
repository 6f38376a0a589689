"""What a pipeline tells of its epochs, for tests that look at how it works.

Whether its states are right is not judged by this: `witnessing` knows the sources by themselves.
"""

from __future__ import annotations

from viewkeeper.algebra import Bag
from viewkeeper.engine.integrator import Arrival, singly
from viewkeeper.live.context import EpochReport
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.warehouse.warehouse import Warehouse
from witnessing.judging import Span, states_of


class Recording:
    """What the epochs of a group of views were made of."""

    def __init__(self, pipeline: Pipeline, views=None) -> None:
        self.pipeline = pipeline
        self.arrivals: list[Arrival] = []
        # Of those, what came as columns.
        self.blocks: list[TransactionBlock] = []
        # The warehouse's numbers of the states.
        self.numbers: list[int] = []
        self.views = [v for name, v in pipeline.views.items() if views is None or name in views]

    @property
    def definitions(self) -> list[ViewDefinition]:
        return [view.definition for view in self.views]

    def add(self, cycle: EpochReport | None) -> None:
        """Take note of an epoch; those of other groups are passed over."""
        if cycle is not None and self.views[0].name in cycle.views:
            self.numbers += range(cycle.entry.first_txn, cycle.entry.last_txn + 1)
            self.arrivals += singly(cycle.batch)
            self.blocks += [a.origin for a in cycle.batch if isinstance(a.origin, TransactionBlock)]

    def catch_up(self, targets=None) -> None:
        """Go on until the warehouse has all that is committed now."""
        targets = targets or self.pipeline.committed_now()
        while not self.pipeline.has_applied(targets):
            self.add(self.pipeline.cycle(0.2))
        while (cycle := self.pipeline.cycle(0)) is not None:
            self.add(cycle)


def view_states(warehouse: Warehouse, definition: ViewDefinition, first_txn: int = 0) -> list[Bag]:
    """Every state of a view from a transaction number on."""
    return states_of(warehouse, definition, Span(first_txn, warehouse.latest().last_txn))
