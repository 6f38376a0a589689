"""Batched SWEEP over live changes: the protocol is the simulated one, the rows come as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viewkeeper.protocols.batched_sweep import BatchedSweep, Numbered
from viewkeeper.runtime.change_tables import change_relation
from viewkeeper.spark.arrow import arrow_schema
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned


class LiveSweep(BatchedSweep):
    """One view; batches are closed by the pipeline."""

    eager = False

    def __init__(
        self,
        definition: ViewDefinition,
        staging: Staging,
        sources: tuple[str, ...],
    ) -> None:
        """``definition`` names all columns of its relations, in the order of the feed's rows."""
        self.staging = staging
        self._whole = {o.name: o.schema for term in definition.terms for o in term.occurrences}
        narrow = pruned(definition)
        self.columns = {o.name: o.schema for term in narrow.terms for o in term.occurrences}
        nothing = staging.relation(arrow_schema(narrow.schema).empty_table(), narrow.schema)
        super().__init__(narrow, nothing, sources)

    def collected(self, name: RelationName, transactions: Iterable[Numbered]) -> Any:
        """All changes of one relation in some transactions, as one staged table."""
        narrow = self.columns[name]
        return change_relation(self.staging, name, self._whole[name], narrow, transactions)
