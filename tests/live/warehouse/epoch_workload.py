"""Three views whose every change follows from the transaction's number alone.

So any process can go on where another was killed, and any state can be replayed in plain Python
without the warehouse. Rows come in, go out, come back and come twice; NULL and NaN are among them.
"""

from __future__ import annotations

import decimal
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, Row, Schema, decimal_type
from viewkeeper.arrow import arrow_schema
from viewkeeper.warehouse import Changes, Definition, EpochCommit, Extent, Snapshot, Warehouse
from viewkeeper.warehouse.columns import stored_arrow_schema

SCHEMAS = {
    "orders": Schema.of(id=INTEGER, note=STRING),
    "totals": Schema.of(bucket=INTEGER, amount=decimal_type(20, 2)),
    "marks": Schema.of(place=INTEGER, mark=DOUBLE),
}
BUCKETS = 12
_MARKS = (0.5, math.nan, None, 0.0, 2.5)

SignedRows = list[tuple[Row, int]]


def _order(txn: int) -> Row:
    return (txn, f"note {txn % 7}")


def _mark(txn: int) -> Row:
    return (txn % 5, random.Random(txn).choice(_MARKS))


def _total(bucket: int, touched: int) -> Row:
    return (bucket, decimal.Decimal(touched * (touched + 1)) / 2 + decimal.Decimal("0.25"))


def changes_of(txn: int) -> dict[str, SignedRows]:
    """What transaction ``txn`` (from 1 on) changes in each view."""
    orders: SignedRows = [(_order(txn), 1)]
    marks: SignedRows = [(_mark(txn), 2 if txn % 6 == 1 else 1)]
    if txn % 3 == 0:
        orders.append((_order(txn - 1), -1))
    if txn % 4 == 0:
        marks.append((_mark(txn - 1), -1))
    bucket, touched = txn % BUCKETS, txn // BUCKETS
    totals: SignedRows = [(_total(bucket, touched), 1)]
    if txn - BUCKETS >= 1:
        totals.append((_total(bucket, touched - 1), -1))
    return {"orders": orders, "totals": totals, "marks": marks}


def key(row: Iterable[object]) -> Row:
    """A row that equals itself: NaN by name, decimals at one scale."""
    return tuple(_key(value) for value in row)


def _key(value: object) -> object:
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, decimal.Decimal):
        return str(value.quantize(decimal.Decimal("0.01")))
    return value


class Replay:
    """The states of all views, replayed step by step."""

    def __init__(self) -> None:
        self.txn = 0
        self._states: dict[str, Counter[Row]] = {view: Counter() for view in SCHEMAS}

    def at(self, txn: int) -> dict[str, Counter[Row]]:
        """The state at ``txn``; the result is only valid until the next call."""
        if txn < self.txn:
            self.__init__()
        for number in range(self.txn + 1, txn + 1):
            for view, signed in changes_of(number).items():
                state = self._states[view]
                for row, count in signed:
                    state[key(row)] += count
                    if not state[key(row)]:
                        del state[key(row)]
        self.txn = txn
        return self._states


def counted(table: pa.Table) -> Counter[Row]:
    """An extent read with ``_count`` as a counter of rows."""
    found: Counter[Row] = Counter()
    for *row, count in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[key(row)] += count
    return found


def epoch(first: int, last: int) -> EpochCommit:
    """The transactions from first to last as one epoch."""
    rows: dict[str, list[dict[str, object]]] = {view: [] for view in SCHEMAS}
    for txn in range(first, last + 1):
        for view, signed in changes_of(txn).items():
            names = SCHEMAS[view].names
            rows[view] += [
                dict(zip(names, row, strict=True)) | {"_count": count, "_txn": txn}
                for row, count in signed
            ]
    tables = {
        view: pa.Table.from_pylist(rows[view], schema=stored_arrow_schema(schema))
        for view, schema in SCHEMAS.items()
    }
    return EpochCommit(
        first,
        last,
        {view: Changes(table) for view, table in tables.items()},
        positions={"source": {"system": "7", "read": last}},
        cut={"source": last},
    )


def empty_epoch() -> EpochCommit:
    """The epoch that creates the three views, empty, at state 0; ``totals`` is published."""
    extents = {}
    for view, schema in SCHEMAS.items():
        fields = [*arrow_schema(schema), pa.field("_count", pa.int64())]
        extents[view] = Extent(pa.schema(fields).empty_table())
    definitions = {
        view: Definition(schema, f"SELECT * FROM source.{view}", publish=view == "totals")
        for view, schema in SCHEMAS.items()
    }
    return EpochCommit(1, 0, extents, {"source": {"system": "7", "read": 0}}, definitions)


def check_state(warehouse: Warehouse, replay: Replay, as_of: int | None = None) -> int:
    """All three views at one snapshot equal the replay at its number, which is returned."""
    snapshot = warehouse.snapshot(as_of)
    if not snapshot.views:
        return 0
    check_snapshot(snapshot, replay.at(snapshot.txn))
    return snapshot.txn


def check_snapshot(snapshot: Snapshot, expected: dict[str, Counter[Row]]) -> None:
    for view in SCHEMAS:
        found = counted(snapshot.read_arrow(view, with_count=True))
        assert found == expected[view], f"{view} at {snapshot.txn} is torn or wrong"


def check_history(warehouse: Warehouse) -> None:
    """Every epoch that is kept stands there once, in order, and says how far the source was read."""
    epochs = [entry for entry in warehouse.history() if entry.kind == "epoch"]
    for before, after in itertools.pairwise(epochs):
        assert after.epoch == before.epoch + 1
        assert after.first_txn == before.last_txn + 1
    for entry in epochs:
        assert entry.positions == {"source": {"system": "7", "read": entry.last_txn}}


def check_retained(warehouse: Warehouse, replay: Replay, step: int = 1) -> int:
    """Every ``step``-th state that is kept, and the first and the last; how many were compared."""
    latest = warehouse.latest()
    states = sorted(
        {*range(latest.oldest_txn, latest.last_txn + 1, step), latest.oldest_txn, latest.last_txn}
    )
    for txn in states:
        check_state(warehouse, replay, txn)
    return len(states)
