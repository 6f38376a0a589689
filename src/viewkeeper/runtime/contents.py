"""Whole relations at exactly the cut that the warehouse stands at: for initial loads and audits.

A source can only be read as it is now. What it has committed since is known, because the feed has
delivered everything that the read reflects; taking those changes out again gives the relation as it was.

Every relation is read once, with the columns that any of the views needs; sources are read at once, and a
large relation by several connections where its source has them (`bulk_reading`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.algebra.types import Schema
from viewkeeper.protocols.messages import Reflected
from viewkeeper.runtime.asking import counted
from viewkeeper.runtime.bulk_reading import BulkReading, OnRows
from viewkeeper.runtime.change_tables import ChangeTables, with_number
from viewkeeper.runtime.integrator import Arrival
from viewkeeper.sources.interface import Cut
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned


@dataclass(frozen=True)
class Reading:
    """Relations read at some cuts, without the transactions that wait to be applied."""

    staging: Staging
    cuts: Mapping[str, Cut]
    reflected: Mapping[str, Reflected]
    waiting: Iterable[Arrival]
    changes: ChangeTables
    on_rows: OnRows = lambda name, rows: None

    def relations(self, definitions: Iterable[ViewDefinition]) -> dict[RelationName, SparkRelation]:
        """What the views read, by relation; a table may have columns that not all of them use."""
        needed = _columns(list(definitions))
        by_source: dict[str, dict[RelationName, Schema]] = {}
        for name, schema in needed.items():
            by_source.setdefault(name.source, {})[name] = schema
        found: dict[RelationName, SparkRelation] = {}

        def read_source(source: str) -> None:
            read = BulkReading(self.cuts[source], by_source[source], self.on_rows).batches()
            for name, batches in read.items():
                found[name] = self._relation(name, needed[name], batches)

        with ThreadPoolExecutor(max_workers=max(len(by_source), 1)) as threads:
            list(threads.map(read_source, by_source))
        return found

    def _relation(
        self, name: RelationName, needed: Schema, batches: list[pa.RecordBatch]
    ) -> SparkRelation:
        relation: SparkRelation = self.staging.relation(counted(batches, needed), needed)
        ahead = [
            arrival.number
            for arrival in self.waiting
            if arrival.transaction.source == name.source
            and self.reflected[name.source].includes(arrival.transaction.number)
            and arrival.transaction.change(name) is not None
        ]
        if not ahead:
            return relation
        table = self.changes.changes(name, ahead, needed.names)
        changes = self.staging.relation(table, with_number(needed))
        plain = changes.select(tuple(Output(c, Column(c)) for c in needed.names))
        return relation - plain


def whole_schemas(definitions: Iterable[ViewDefinition]) -> dict[RelationName, Schema]:
    """The base relations that views read, with all their columns: as feeds deliver them."""
    return {
        o.name: o.schema
        for definition in definitions
        for term in definition.all_terms
        for o in term.occurrences
        if o.source != LOCAL
    }


def _columns(definitions: list[ViewDefinition]) -> dict[RelationName, Schema]:
    """Of every base relation the columns that some view uses."""
    used: dict[RelationName, set[str]] = {}
    for name, schema in (item for d in definitions for item in whole_schemas([pruned(d)]).items()):
        used.setdefault(name, set()).update(schema.names)
    return {
        name: Schema(tuple(field for field in schema if field.name in used[name]))
        for name, schema in whole_schemas(definitions).items()
    }
