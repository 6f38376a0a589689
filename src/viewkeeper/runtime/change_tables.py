"""Changed rows of many transactions as one table."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from viewkeeper.algebra.types import INTEGER, Field, Row, Schema
from viewkeeper.protocols.batched_sweep import Numbered
from viewkeeper.protocols.messages import TXN
from viewkeeper.sources.interface import RelationChange
from viewkeeper.spark.arrow import arrow_schema
from viewkeeper.spark.staged import StagedRelation, Staging
from viewkeeper.views.definition import RelationName


def change_relation(
    staging: Staging,
    name: RelationName,
    whole: Schema,
    narrow: Schema,
    transactions: Iterable[Numbered],
) -> StagedRelation:
    """The changes of one relation: the columns of ``narrow``, the transaction's number, the count.

    ``whole`` is the schema of the feed's rows.
    """
    rows: list[Row] = []
    counts: list[int] = []
    numbers: list[int] = []
    for number, transaction in transactions:
        change: RelationChange | None = transaction.change(name)
        if change is None:
            continue
        for some, count in ((change.deleted, -1), (change.inserted, 1)):
            rows += some
            counts += [count] * len(some)
            numbers += [number] * len(some)
    schema = Schema((*narrow.fields, Field(TXN, INTEGER)))
    types = arrow_schema(schema)
    arrays = []
    for field in narrow:
        position = whole.position(field.name)
        arrays.append(pa.array([row[position] for row in rows], types.field(field.name).type))
    arrays += [pa.array(numbers, pa.int64()), pa.array(counts, pa.int64())]
    return staging.relation(pa.Table.from_arrays(arrays, schema=types), schema)
