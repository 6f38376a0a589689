"""How the source and our reading of it are doing."""

from __future__ import annotations

import sqlite3
import time

from viewkeeper.sources.interface import Health
from viewkeeper.sources.sqlite.catalogue import Catalogue
from viewkeeper.sources.sqlite.layout import CLOCK
from viewkeeper.sources.sqlite.positions import Clock, Place

_JULIAN_EPOCH, _DAY_SECONDS = 2440587.5, 86_400


def report(
    connection: sqlite3.Connection,
    catalogue: Catalogue,
    clock: Clock | None,
    confirmed: Place | None,
) -> Health:
    """The caller is in a read transaction. Bytes of lag are unknown: SQLite counts rows only."""
    if clock is None:
        return Health("not-set-up", None, None, None, "there is no change log")
    gaps = [
        f"{name}: {capture.gap}"
        for name, capture in catalogue.captures.items()
        if capture.layout is not None and capture.gap
    ]
    rows = sum(
        connection.execute(f"SELECT count(*) FROM {layout.log}").fetchone()[0]
        for layout in catalogue.layouts
    )
    detail = "; ".join([*gaps, f"the log holds {rows} rows and stands at {clock.seq}"])
    lag = None if confirmed is None else _lag_seconds(connection, clock, confirmed)
    state = "triggers-lost" if gaps else "ok"
    return Health(state, None, lag, _log_bytes(connection, catalogue), detail)


def _lag_seconds(connection: sqlite3.Connection, clock: Clock, confirmed: Place) -> float:
    if confirmed.seq >= clock.seq:
        return 0.0
    (day,) = connection.execute(f"SELECT at FROM {CLOCK}").fetchone()
    return max(0.0, time.time() - (float(day) - _JULIAN_EPOCH) * _DAY_SECONDS)


def _log_bytes(connection: sqlite3.Connection, catalogue: Catalogue) -> int | None:
    """What the log takes in the file; None where this SQLite has no statistics of pages."""
    total = 0
    for layout in catalogue.layouts:
        try:
            (size,) = connection.execute(
                "SELECT sum(pgsize) FROM dbstat WHERE name = ?", (layout.log,)
            ).fetchone()
        except sqlite3.OperationalError:
            return None
        total += size or 0
    return total
