"""A sample of a view's rows, recomputed from the sources at exactly the view's own cut.

The sources are asked for the rows of a few keys and what they join with, by the same keyed questions that
keep the view: the price of a small batch, however large the view is. The view's group commits nothing meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.algebra.types import Field, Kind, Schema
from viewkeeper.live.auditing.audit import Audit, audit_of
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.live.reading.contents import Reading
from viewkeeper.spark.arrow import bag_of
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.pruning import pruned
from viewkeeper.views.sampling import Picked, picked, reading_order
from viewkeeper.warehouse.columns import TXN
from viewkeeper.warehouse.warehouse import Warehouse


def can_sample(definition: ViewDefinition) -> bool:
    """Whether single rows of the view can be computed without the rest."""
    return picked(pruned(definition)) is not None


def sampled(
    pipeline: Pipeline, warehouse: Warehouse, view: str, keys: int, randomness: random.Random
) -> Audit:
    """Compare the rows of some keys with the sources; for a view that `can_sample`."""
    # As the view is now that its group stands still: it may have evolved since.
    with pipeline.reading(view) as (known, reading):
        definition = pruned(known.definition)
        by = picked(definition)
        if by is None:
            raise LookupError(view)
        snapshot = warehouse.snapshot(pipeline.writer.latest.last_txn)
        values = snapshot.some_values(view, by.output, keys, randomness)
        values = values + absent_values(definition, by, values, keys, randomness)
        expected = _restricted(definition, by, values, reading)
        stored = snapshot.rows_with(view, by.output, values).drop_columns([TXN])
        found = bag_of(stored, definition.schema)
        difference: Bag = found - expected.to_bag()
        rows = sum(count for _, count in found.sorted())
    return audit_of(view, snapshot.txn, rows, difference, checked=f"{len(values)} keys")


def _keys(schema: Schema, column: str, values: Sequence[Any]) -> Bag:
    type = schema.fields[schema.position(column)].type
    return Bag.of(Schema((Field("key", type),)), [(value,) for value in values])


def absent_values(
    definition: ViewDefinition, by: Picked, values: Sequence[Any], more: int, rng: random.Random
) -> list[Any]:
    """Values that the view may not show though it should: between those that it shows."""
    kind = definition.schema.fields[definition.schema.position(by.output)].type.kind
    if kind is not Kind.INTEGER:
        return []
    low, high = (min(values), max(values)) if values else (0, 1_000)
    known = set(values)
    wanted = (rng.randint(low - 2, high + 2) for _ in range(more))
    return [value for value in dict.fromkeys(wanted) if value not in known]


def _restricted(
    definition: ViewDefinition, by: Picked, values: Sequence[Any], reading: Reading
) -> Any:
    """The view over the rows of one relation that have the values, and what they join with."""
    (term,) = definition.terms
    first = term.occurrence(by.alias)
    wanted = reading.staging.of_bag(_keys(first.schema, by.column, values))
    rows = {by.alias: reading.matching(first.name, first.schema, (by.column,), wanted)}
    for follow in reading_order(term, by.alias):
        o = term.occurrence(follow.alias)
        if follow.is_whole:
            rows[o.alias] = reading.whole(o.name, o.schema)
            continue
        known = rows[follow.known_alias].select((Output("key", Column(follow.known_column)),))
        rows[o.alias] = reading.matching(o.name, o.schema, (follow.column,), known.support())
    whole = WholeView(definition)
    return whole.evaluated_from(
        lambda index, o: whole.assemblies[index].prepared(o.alias, rows[o.alias])
    )
