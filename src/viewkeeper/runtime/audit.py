"""The auditor: a view computed anew from its sources, at exactly the warehouse's state, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.runtime.pipeline import Pipeline
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.warehouse.warehouse import Warehouse

ROWS_SHOWN_MAX = 20


@dataclass(frozen=True)
class Audit:
    """What the auditor found. ``missing`` should be in the view and is not; ``extra`` the reverse."""

    view: str
    txn: int
    rows: int
    missing: tuple[tuple[Any, int], ...]
    extra: tuple[tuple[Any, int], ...]
    checked: str = "all rows"

    @property
    def is_equal(self) -> bool:
        return not self.missing and not self.extra

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
        }


def audited(pipeline: Pipeline, warehouse: Warehouse, view: str) -> Audit:
    """Recompute one view at the state that the warehouse stands at, and compare."""
    with pipeline.recomputed(view) as expected:
        # The view rests by now; other groups may go on, and do not change it.
        latest = pipeline.writer.latest
        frame = warehouse.read(view, latest.last_txn, with_count=True)
        found = SparkRelation.from_frame(frame, expected.schema)
        rows = int(frame.groupBy().sum("_count").collect()[0][0] or 0)
        difference: Bag = (found - expected).to_bag()
    return audit_of(view, latest.last_txn, rows, difference)


def audit_of(
    view: str, txn: int, rows: int, difference: Bag, *, checked: str = "all rows"
) -> Audit:
    """The verdict on what was found minus what was expected; the first rows of it stand for all."""
    missing = [(row, -count) for row, count in difference.sorted() if count < 0]
    extra = [(row, count) for row, count in difference.sorted() if count > 0]
    shown = tuple(missing[:ROWS_SHOWN_MAX]), tuple(extra[:ROWS_SHOWN_MAX])
    return Audit(view, txn, rows, *shown, checked)
