"""Rows of a warehouse as JSON for a page: exact where they are short, cut where they are long."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from viewkeeper.reports.values import json_value
from viewkeeper.warehouse.columns import COUNT

CHARACTERS_SHOWN_MAX = 2_000


def shown(value: Any) -> Any:
    """A value for a page. A long text becomes its beginning and its length, and says so."""
    found = json_value(value)
    if isinstance(found, str) and len(found) > CHARACTERS_SHOWN_MAX:
        return {"beginning": found[:CHARACTERS_SHOWN_MAX], "length": len(found)}
    # A page's numbers are doubles: what they can't hold goes as text.
    if isinstance(found, int) and abs(found) >= 2**53:
        return str(found)
    return found


def counted_rows(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    """Rows with their (signed) counts."""
    columns = [table.column(table.column_names.index(name)).to_pylist() for name in names]
    counts = table.column(table.column_names.index(COUNT)).to_pylist()
    rows = zip(*columns, strict=True) if columns else (() for _ in counts)
    return [
        {"values": [shown(value) for value in row], "count": count}
        for row, count in zip(rows, counts, strict=True)
    ]
