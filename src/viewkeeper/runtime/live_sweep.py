"""Batched SWEEP over live changes: the protocol is the simulated one, the rows come as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import INTEGER, Field, Schema
from viewkeeper.protocols.batched_sweep import BatchedSweep, Numbered
from viewkeeper.protocols.messages import TXN
from viewkeeper.sources.interface import RelationChange
from viewkeeper.spark.arrow import COUNT, arrow_schema
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
        first_number: int,
    ) -> None:
        """``definition`` names all columns of its relations, in the order of the feed's rows."""
        self._whole = {o.name: o.schema for term in definition.terms for o in term.occurrences}
        self.staging = staging
        narrow = pruned(definition)
        self._narrow = {o.name: o.schema for term in narrow.terms for o in term.occurrences}
        nothing = staging.relation(arrow_schema(narrow.schema).empty_table(), narrow.schema)
        super().__init__(narrow, nothing, sources, first_number)

    def collected(self, name: RelationName, transactions: Iterable[Numbered]) -> Any:
        """All changes of one relation in some transactions, as one staged table."""
        rows: list[Any] = []
        counts: list[int] = []
        numbers: list[int] = []
        for number, transaction in transactions:
            change: RelationChange | None = transaction.change(name)
            if change is None:
                continue
            rows += change.deleted
            rows += change.inserted
            counts += [-1] * len(change.deleted)
            counts += [1] * len(change.inserted)
            numbers += [number] * (len(change.deleted) + len(change.inserted))
        whole = self._whole[name]
        fields = self._narrow[name].fields
        schema = Schema((*fields, Field(TXN, INTEGER)))
        types = arrow_schema(schema)
        columns = [
            pa.array([row[whole.position(f.name)] for row in rows], types.field(f.name).type)
            for f in fields
        ]
        arrays = [*columns, pa.array(numbers, pa.int64()), pa.array(counts, pa.int64())]
        return self.staging.relation(
            pa.Table.from_arrays(arrays, names=[*schema.names, COUNT]), schema
        )
