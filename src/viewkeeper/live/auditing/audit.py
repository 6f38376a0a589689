"""The auditor: a view recomputed from its sources, at exactly the warehouse's state, row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from viewkeeper.algebra import Bag
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.staged import StagedRelation
from viewkeeper.views.upkeep import Store
from viewkeeper.warehouse.columns import COUNT, store_name
from viewkeeper.warehouse.warehouse import Snapshot, Warehouse

ROWS_SHOWN_MAX = 20
# Up to this number of stored rows a view is compared in this process.
HERE_ROWS_MAX = 100_000


@dataclass(frozen=True)
class Audit:
    """What the auditor found. ``missing`` should be in the view and is not; ``extra`` the reverse."""

    view: str
    txn: int
    rows: int
    missing: tuple[tuple[Any, int], ...]
    extra: tuple[tuple[Any, int], ...]
    checked: str = "all rows"
    # The tables beside the view from which its next changes are computed, where they differ.
    stores: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        return not self.missing and not self.extra and not self.stores

    def as_dict(self) -> dict[str, Any]:
        def shown(rows: tuple[tuple[Any, int], ...]) -> list[dict[str, Any]]:
            return [{"row": list(row), "count": count} for row, count in rows]

        return {
            "view": self.view,
            "verdict": "equal" if self.is_equal else "different",
            "txn": self.txn,
            "rows": self.rows,
            "checked": self.checked,
            "missing": shown(self.missing),
            "extra": shown(self.extra),
            **({"stores": list(self.stores)} if self.stores else {}),
        }


def audit_view(pipeline: Pipeline, warehouse: Warehouse, view: str) -> Audit:
    """Recompute one view and its stores at the state that the warehouse stands at, and compare."""
    with pipeline.recomputed(view) as filled:
        # The view rests by now; other groups may go on, and do not change it.
        snapshot = warehouse.snapshot(pipeline.writer.latest.last_txn)
        difference, rows = _difference(snapshot, view, filled.contents.view)
        stores = [
            store.name
            for store in filled.stores
            if _store_differs(snapshot, view, store, filled.contents.stores[store.name])
        ]
    return replace(audit_of(view, snapshot.txn, rows, difference), stores=tuple(stores))


def _difference(snapshot: Snapshot, table: str, expected: SparkRelation) -> tuple[Bag, int]:
    """What a table shows minus what it should, and how many rows it shows."""
    found, rows = _shown(snapshot, table, expected)
    return (found - expected).consolidated().to_bag(), rows


def _store_differs(snapshot: Snapshot, view: str, store: Store, expected: SparkRelation) -> bool:
    columns = [f"c{i}" for i in range(len(store.schema))]
    table = store_name(view, store.name)
    difference, _ = _difference(snapshot, table, expected.renamed(columns))
    return bool(difference.sorted())


def _shown(snapshot: Snapshot, view: str, expected: SparkRelation) -> tuple[SparkRelation, int]:
    """A view as the warehouse shows it, and its number of rows.

    A small one does not need Spark, if what it is compared with doesn't.
    """
    if isinstance(expected, StagedRelation) and snapshot.stored_rows(view) <= HERE_ROWS_MAX:
        table = snapshot.read_arrow(view, with_count=True)
        found = expected.staging.relation(table, expected.schema)
        return found, int(pc.sum(table.column(COUNT)).as_py() or 0)
    frame = snapshot.read(view, with_count=True)
    rows = int(frame.groupBy().sum(COUNT).collect()[0][0] or 0)
    return SparkRelation.from_frame(frame, expected.schema), rows


def audit_of(
    view: str, txn: int, rows: int, difference: Bag, *, checked: str = "all rows"
) -> Audit:
    """The verdict on what was found minus what was expected; the first rows of it stand for all."""
    missing = [(row, -count) for row, count in difference.sorted() if count < 0]
    extra = [(row, count) for row, count in difference.sorted() if count > 0]
    shown = tuple(missing[:ROWS_SHOWN_MAX]), tuple(extra[:ROWS_SHOWN_MAX])
    return Audit(view, txn, rows, *shown, checked)
