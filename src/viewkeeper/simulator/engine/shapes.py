"""Relations at a cut, in the shape in which a definition reads them.

A definition may be behind schema changes that its view's positions are before: its rows then have the shape of after.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import Schema
from viewkeeper.simulator.engine.sources import SimulatedSource
from viewkeeper.simulator.engine.updates import Tables, reshaped
from viewkeeper.sources.interface import SchemaChange


def fitting(source: SimulatedSource, at: float, relation: str, schema: Schema) -> Bag | None:
    """A relation at a cut; where only a later schema has what is read, in the shape of that one."""
    tables = dict(source.at(at))
    changes = source.changes_behind(at)
    number = at
    while True:
        table = tables.get(relation)
        if table is not None and all(
            f.name in table.rows.schema and table.rows.schema.type_of(f.name) == f.type
            for f in schema
        ):
            return table.rows
        following = next(changes, None)
        if following is None:
            return None
        number, change = following
        tables = _reshaped(source, tables, number, change)


def _reshaped(
    source: SimulatedSource, tables: Tables, number: float, change: SchemaChange
) -> Tables:
    """Tables after a schema change alone, as if no transaction had come between."""
    after = dict(tables)
    table = after.pop(change.relation, None)
    if table is None:
        return after
    if change.renamed_to is not None:
        after[change.renamed_to] = table
    elif change.after is not None and change.rewrites:
        rewritten = source.at(number).get(change.relation)
        if rewritten is not None:  # else the same statement gave it another name
            after[change.relation] = rewritten
    elif change.after is not None:
        rows = reshaped(table.rows, change.after.schema, change.renamed_columns)
        after[change.relation] = replace(table, rows=rows)
    return after
