"""Whole relations at exactly the cut that the warehouse stands at: for initial loads and audits.

A source can only be read as it is now. What it has committed since is known, because the feed has
delivered everything that the read reflects; taking those changes out again gives the relation as it was.

Every relation is read once, with the columns that any of the views needs; sources are read at once, and a
large relation by several connections where its source has them (`bulk_reading`), or on a cluster by its
executors (`executor_reading`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import Schema
from viewkeeper.engine.integrator import Arrival, reflected_numbers
from viewkeeper.live.questions.change_tables import ChangeTables, with_number
from viewkeeper.live.questions.source_queries import counted
from viewkeeper.live.reading.bulk_reading import BulkReading, OnRows, RowsRead
from viewkeeper.live.reading.executor_reading import read_by_executors
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import KeyedRead, Snapshot
from viewkeeper.spark.arrow import COUNT, table_of
from viewkeeper.spark.reading_in_parts import lines_of
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned


@dataclass(frozen=True)
class Reading:
    """Relations read at some cuts, without the transactions that wait to be applied."""

    staging: Staging
    cuts: Mapping[str, Snapshot]
    reflected: Mapping[str, Reflected]
    waiting: Iterable[Arrival]
    changes: ChangeTables
    on_rows: OnRows = lambda name, rows: None
    # Has what it is given computed once, though several others are computed from it.
    share: Callable[[Any], Any] = lambda relation: relation
    _counted: list[int] = field(default_factory=list)

    @property
    def rows_read(self) -> int:
        """How many rows the sources have been asked for so far."""
        return sum(self._counted)

    def relations(self, definitions: Iterable[ViewDefinition]) -> dict[RelationName, SparkRelation]:
        """What the views read, by relation; a table may have columns that not all of them use."""
        needed = _columns(list(definitions))
        by_source: dict[str, dict[RelationName, Schema]] = {}
        for name, schema in needed.items():
            by_source.setdefault(name.source, {})[name] = schema
        found: dict[RelationName, SparkRelation] = {}

        def read_source(source: str) -> None:
            remaining = dict(by_source[source])
            for name in by_source[source]:
                by_executors = self._by_executors(name, needed[name])
                if by_executors is not None:
                    found[name] = by_executors
                    del remaining[name]
            read = BulkReading(self.cuts[source], remaining, self.on_rows).batches()
            for name, batches in read.items():
                found[name] = self._relation(name, needed[name], batches)

        with ThreadPoolExecutor(max_workers=max(len(by_source), 1)) as threads:
            list(threads.map(read_source, by_source))
        return found

    def _relation(
        self, name: RelationName, needed: Schema, batches: list[pa.RecordBatch]
    ) -> SparkRelation:
        table = counted(batches, needed, name.source)
        self._counted.append(table.num_rows)
        relation: SparkRelation = self.staging.relation(table, needed)
        ahead = self._ahead(name, needed)
        return relation if ahead is None else relation - ahead

    def _by_executors(self, name: RelationName, needed: Schema) -> SparkRelation | None:
        """A large relation, read by a cluster's executors; None where they can't or need not."""
        started = time.monotonic()
        cut = self.cuts[name.source]
        relation = read_by_executors(self.staging, cut, name.relation, needed)
        if relation is None:
            return None
        rows = lines_of(relation)
        self._counted.append(rows)
        self.on_rows(name, RowsRead(rows, rows, time.monotonic() - started, is_whole=True))
        ahead = self._ahead(name, needed)
        return relation if ahead is None else relation - ahead

    def _ahead(self, name: RelationName, needed: Schema) -> SparkRelation | None:
        """What the cut reflects of a relation's changes beyond the state that is wanted."""
        ahead = reflected_numbers(self.waiting, name, self.reflected[name.source])
        if not len(ahead):
            return None
        table = self.changes.changes(name, ahead, needed.names)
        changes = self.staging.relation(table, with_number(needed))
        return changes.only(needed.names)

    def whole(self, name: RelationName, needed: Schema) -> SparkRelation:
        """All rows of one relation."""
        by_executors = self._by_executors(name, needed)
        if by_executors is not None:
            return by_executors
        read = BulkReading(self.cuts[name.source], {name: needed}, self.on_rows).batches()
        return self._relation(name, needed, read[name])

    def matching(
        self, name: RelationName, needed: Schema, key_columns: tuple[str, ...], keys: Any
    ) -> SparkRelation:
        """The rows of a relation whose key columns are among the keys."""
        wanted = table_of(keys.schema, keys.to_bag()).drop_columns([COUNT])
        wanted = wanted.rename_columns(list(key_columns))
        if not wanted.num_rows:
            return self.staging.relation(counted([], needed, name.source), needed)
        question = KeyedRead(name.relation, needed.names, key_columns, wanted)
        table = counted(list(self.cuts[name.source].read(question)), needed, name.source)
        self._counted.append(table.num_rows)
        rows: SparkRelation = self.staging.relation(table, needed)
        ahead = self._ahead(name, needed)
        if ahead is None:
            return rows
        return rows - ahead.matching(key_columns, keys)


def narrowed(
    definition: ViewDefinition, relations: Mapping[RelationName, Any]
) -> Callable[[RelationName], Any]:
    """Relations that several views share, with the columns that one of them uses."""
    columns = {name: schema.names for name, schema in whole_schemas([pruned(definition)]).items()}
    return lambda name: relations[name].only(columns[name])


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
