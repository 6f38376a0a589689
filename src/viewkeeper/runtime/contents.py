"""Whole relations at exactly the cut that the warehouse stands at: for initial loads and audits.

A source can only be read as it is now. What it has committed since is known, because the feed has
delivered everything that the read reflects; taking those changes out again gives the relation as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from viewkeeper.protocols.messages import Reflected
from viewkeeper.runtime.asking import read_table
from viewkeeper.runtime.integrator import Arrival
from viewkeeper.runtime.live_sweep import LiveSweep
from viewkeeper.sources.interface import Cut, KeyedRead
from viewkeeper.spark.staged import StagedRelation
from viewkeeper.views.definition import Occurrence, RelationName

OnRows = Callable[[RelationName, int], None]


def relation_at(
    manager: LiveSweep,
    occurrence: Occurrence,
    cuts: Mapping[str, Cut],
    reflected: Mapping[str, Reflected],
    waiting: Iterable[Arrival],
    on_rows: OnRows = lambda name, rows: None,
) -> StagedRelation:
    """An occurrence's relation without the transactions that wait to be applied."""
    name = occurrence.name
    table = read_table(
        cuts[name.source], KeyedRead(name.relation, occurrence.schema.names), occurrence
    )
    on_rows(name, table.num_rows)
    relation = manager.staging.relation(table, occurrence.schema)
    ahead = [
        (arrival.number, arrival.transaction)
        for arrival in waiting
        if arrival.transaction.source == name.source
        and reflected[name.source].includes(arrival.transaction.number)
        and arrival.transaction.change(name) is not None
    ]
    if not ahead:
        return relation
    changes: StagedRelation = manager.collected(name, ahead)
    columns: list[pa.ChunkedArray] = [
        changes.table.column(changes.schema.position(c)) for c in occurrence.schema.names
    ]
    counts = changes.table.column(changes.table.num_columns - 1)
    table = pa.Table.from_arrays([*columns, counts], schema=relation.table.schema)
    return relation + -manager.staging.relation(table, occurrence.schema)  # type: ignore[return-value]
