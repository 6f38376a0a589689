"""A view at any transaction that is kept, and by which rows two transactions differ. Without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from viewkeeper.errors import UsageError
from viewkeeper.reports.values import json_value
from viewkeeper.warehouse import Warehouse
from viewkeeper.warehouse.columns import COUNT
from viewkeeper.warehouse.reading import summed

ROWS_SHOWN = 100
ROWS_SHOWN_MAX = 1_000
# What a page may ask to be read into this process's memory.
ROWS_READ_MAX = 2_000_000
CHARACTERS_SHOWN_MAX = 2_000

Document = dict[str, Any]


def rows_at(
    warehouse: Warehouse, view: str, as_of: int | None, limit: int | None, after: int | None
) -> Document:
    """One page of the view's distinct rows at a state, in a fixed order, with how often each occurs.

    At one cut with all other views: what two pages show of one number belongs together.
    """
    snapshot = warehouse.overview(as_of)
    state = snapshot.views.get(view)
    if state is not None and state.base_rows + state.log_rows > ROWS_READ_MAX:
        raise _too_large(view)
    counted = snapshot.read_arrow(view, with_count=True)
    names = [name for name in counted.column_names if name != COUNT]
    first, size = max(after or 0, 0), min(limit or ROWS_SHOWN, ROWS_SHOWN_MAX)
    total = sum(counted.column(counted.column_names.index(COUNT)).to_pylist())
    return {
        "view": view,
        "txn": snapshot.txn,
        "shows": snapshot.number_of(view),
        "apart": list(snapshot.apart),
        "columns": _columns(counted, names),
        "rows": _counted_rows(_ordered(counted, names).slice(first, size), names),
        "first": first,
        "distinct": counted.num_rows,
        "total": total,
    }


def difference(
    warehouse: Warehouse, view: str, before: int, after: int, limit: int | None
) -> Document:
    """The rows that came (count above zero) and went between two states, in either direction."""
    numbers = (warehouse.overview(txn).number_of(view) for txn in sorted((before, after)))
    early, late = sorted(numbers)
    changes = warehouse.changes_arrow(view, early, late)
    schema = warehouse.snapshot(late).views[view].schema
    net = _ordered(summed(changes, schema), list(schema.names))
    if before > after:
        index = net.column_names.index(COUNT)
        backwards = pa.array([-count for count in net.column(index).to_pylist()], pa.int64())
        net = net.set_column(index, COUNT, backwards)
    counts = net.column(net.column_names.index(COUNT)).to_pylist()
    size = min(limit or ROWS_SHOWN, ROWS_SHOWN_MAX)
    return {
        "view": view,
        "before": before,
        "after": after,
        "columns": _columns(net, list(schema.names)),
        "rows": _counted_rows(net.slice(0, size), list(schema.names)),
        "distinct": net.num_rows,
        "inserted": sum(count for count in counts if count > 0),
        "deleted": -sum(count for count in counts if count < 0),
    }


def _shown(value: Any) -> Any:
    """A value for a page. A long text becomes its beginning and its length, and says so."""
    found = json_value(value)
    if isinstance(found, str) and len(found) > CHARACTERS_SHOWN_MAX:
        return {"beginning": found[:CHARACTERS_SHOWN_MAX], "length": len(found)}
    # A page's numbers are doubles: what they can't hold goes as text.
    if isinstance(found, int) and abs(found) >= 2**53:
        return str(found)
    return found


def _counted_rows(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    """Rows with their (signed) counts."""
    columns = [table.column(table.column_names.index(name)).to_pylist() for name in names]
    counts = table.column(table.column_names.index(COUNT)).to_pylist()
    rows = zip(*columns, strict=True) if columns else (() for _ in counts)
    return [
        {"values": [_shown(value) for value in row], "count": count}
        for row, count in zip(rows, counts, strict=True)
    ]


def _columns(table: pa.Table, names: list[str]) -> list[dict[str, str]]:
    return [{"name": name, "type": str(table.schema.field(name).type)} for name in names]


def _ordered(table: pa.Table, names: list[str]) -> pa.Table:
    """By all columns that can be compared: the same state always reads the same."""
    positions = [str(n) for n in range(len(names))]
    # Arrow takes a dot in a name for a path: columns are sorted under their positions.
    plain = table.select(names).rename_columns(positions)
    orders = [(position, "ascending") for position in positions]
    if not orders:
        return table
    return table.take(pa.compute.sort_indices(plain, sort_keys=orders))


def _too_large(view: str) -> UsageError:
    return UsageError(
        "too-large-to-show",
        f"{view} is too large to be shown on a page",
        detail=f"more than {ROWS_READ_MAX:,} rows would be read",
        hint="ask for what you need: viewkeeper query --as-of",
    )
