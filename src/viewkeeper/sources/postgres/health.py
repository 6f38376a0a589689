"""How far our feed is behind, and how much log the server keeps because of us."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from viewkeeper.sources.interface import Health

_HEALTH = """
SELECT s.active, s.wal_status,
       pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)::int8,
       pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::int8,
       extract(epoch FROM r.flush_lag)::float8
FROM pg_replication_slots s
LEFT JOIN pg_stat_replication r ON r.pid = s.active_pid
WHERE s.slot_name = %s
"""


def health_of(ask: Callable[[str, Sequence[Any]], list[Any]], instance: str) -> Health:
    """Lag is measured up to the position we confirmed, so it includes our own work."""
    rows = ask(_HEALTH, [instance])
    if not rows:
        return Health("no-slot", None, None, None, f"there is no slot {instance}")
    active, wal_status, lag_bytes, retained_bytes, lag_seconds = rows[0]
    state = "ok" if wal_status in ("reserved", "extended") else f"slot-{wal_status}"
    detail = "the feed is connected" if active else "no feed is connected"
    return Health(state, lag_bytes, lag_seconds, retained_bytes, detail)
