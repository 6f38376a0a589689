"""How the source and our reading of it are doing."""

from __future__ import annotations

import sqlite3
import time

from viewkeeper.sources.interface import Health
from viewkeeper.sources.sqlite.catalog import Catalog
from viewkeeper.sources.sqlite.layout import CLOCK
from viewkeeper.sources.sqlite.position import Clock, Place

_JULIAN_EPOCH, _DAY_SECONDS = 2440587.5, 86_400


def report(
    connection: sqlite3.Connection,
    catalog: Catalog,
    clock: Clock | None,
    reached: Place | None,
) -> Health:
    """The caller is in a read transaction. Bytes of lag are unknown: SQLite counts rows only.

    ``reached``: what its views have; None where that is unknown.
    """
    if clock is None:
        return Health("not-set-up", None, None, None, "there is no change log")
    gaps = [
        f"{name}: {capture.unrecorded}"
        for name, capture in catalog.captures.items()
        if capture.layout is not None and capture.unrecorded
    ]
    rows = sum(
        connection.execute(f"SELECT count(*) FROM {layout.log}").fetchone()[0]
        for layout in catalog.layouts
    )
    detail = "; ".join([*gaps, f"the log holds {rows} rows and stands at {clock.seq}"])
    lag = None if reached is None else _lag_seconds(connection, catalog, clock, reached)
    state = "triggers-lost" if gaps else "ok"
    return Health(state, None, lag, _log_bytes(connection, catalog), detail)


def _lag_seconds(
    connection: sqlite3.Connection, catalog: Catalog, clock: Clock, reached: Place
) -> float:
    """How old the oldest logged row is that the views do not have."""
    if reached.seq >= clock.seq:
        return 0.0
    # Its first row in each log: the numbers are the primary key, and rise with time.
    days = [
        row[0]
        for layout in catalog.layouts
        for row in connection.execute(
            f"SELECT at FROM {layout.log} WHERE seq > ? ORDER BY seq LIMIT 1", (reached.seq,)
        )
    ]
    # Without one the number has moved alone: a row that was undone, or one of a log that is gone.
    (newest,) = connection.execute(f"SELECT at FROM {CLOCK}").fetchone()
    day = min(map(float, days), default=float(newest))
    return max(0.0, time.time() - (day - _JULIAN_EPOCH) * _DAY_SECONDS)


def _log_bytes(connection: sqlite3.Connection, catalog: Catalog) -> int | None:
    """What the log takes in the file; None where this SQLite has no statistics of pages."""
    total = 0
    for layout in catalog.layouts:
        try:
            (size,) = connection.execute(
                "SELECT sum(pgsize) FROM dbstat WHERE name = ?", (layout.log,)
            ).fetchone()
        except sqlite3.OperationalError:
            return None
        total += size or 0
    return total
