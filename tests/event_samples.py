"""A recorded document of every event of a run and of the demo, as programs got it when events were dictionaries.

What is written here is an interface: a change of these samples is a change for users.
"""

from __future__ import annotations

from typing import Any

from viewkeeper.demo.events import DEMO_EVENTS, DemoEvent
from viewkeeper.run_events import RunEvent, event_from_dict

ERROR = {
    "family": "source",
    "code": "link-lost",
    "message": "the link to source shop was lost",
    "detail": "it closed the connection",
    "hint": "",
    "source": "shop",
    "retryable": True,
}
TALLY = {"queries": 2, "keys": 3, "rows": 10, "bytes": 400}
BATCH = {
    "event": "batch",
    "epoch": 7,
    "txn": 42,
    "transactions": 3,
    "rows": 5,
    "freshness_seconds": 0.25,
    "seconds": {"ask": 0.5, "commit": 0.0213},
    "asked": {"crm": TALLY | {"relations": {"customers": TALLY}}},
    "changes": {"shop.orders": 5},
    "changed": {"sales": {"inserted": 6, "deleted": 1}},
}
NOTE = {
    "id": "0a1b2c3d4e5f",
    "at": "2026-05-01T12:00:00+00:00",
    "source": "shop",
    "relation": "orders",
    "statement": "ALTER TABLE orders RENAME COLUMN n TO amount",
    "changes": ["shop.orders: n becomes amount"],
    "effects": [{"view": "sales", "effect": "renamed", "reason": "", "mapping": []}],
    "status": "pending",
}
STORY = {
    "source": "shop",
    "relation": "orders",
    "statement": "ALTER TABLE orders DROP COLUMN n",
    "effect": "synchronized",
    "reason": "n is replaced",
    "mapping": ["n: from crm.orders"],
    "quality": None,
    "others": [],
    "method": "recomputed",
    "method_reason": "it is small",
    "before": "SELECT 1",
}
TOTALS = {
    "transactions": 150,
    "rows": 300,
    "epochs": 30,
    "queries": 60,
    "rows_fetched": 90,
    "seconds": 12.345,
    "busy_seconds": 3.21,
    "transactions_per_second": 12.2,
}
DONE = {"views": ["sales"], "epoch": 8, "txn": 42, "seconds": 1.25}
ROW = {"row": [1, "Ada"], "count": 1}
AUDIT = {
    "view": "sales",
    "verdict": "different",
    "txn": 42,
    "rows": 7,
    "checked": "all rows",
    "missing": [ROW],
    "extra": [],
    "stores": ["groups"],
    "how": "fingerprint, then whole",
    "incarnation": 3,
    "seconds": 0.5,
}
APPROVAL = {"id": "7", "source": "shop", "relation": "orders", "views": ["sales"]}
SINCE = "2026-05-01T12:00:00+00:00"

# By the name of the event; several where fields come and go.
RUN: dict[str, list[dict[str, Any]]] = {
    "loading": [{"event": "loading", "views": ["sales"]}],
    "relation_read": [
        {
            "event": "relation_read",
            "relation": "shop.orders",
            "rows": 500,
            "rows_expected": expected,
            "percent": percent,
            "rows_per_second": 250,
        }
        for expected, percent in ((1000, 50), (None, None))
    ],
    "loaded": [{"event": "loaded", "views": ["sales"], "txn": 0, "seconds": 1.5}],
    "ready": [{"event": "ready", "views": ["sales"], "txn": 42}],
    "batch": [BATCH],
    "source_waiting": [{"event": "source_waiting", "error": ERROR}],
    "source_back": [{"event": "source_back", "source": "shop"}],
    "views_stopped": [{"event": "views_stopped", "views": ["sales"], "error": ERROR}],
    "audited": [
        {"event": "audited", **AUDIT},
        {"event": "audited", "view": "sales", "verdict": "unknown", "how": "fingerprint"}
        | {"incarnation": 3, "seconds": 0.5},
        {"event": "audited", "view": "sales", "verdict": "unknown", "error": ERROR}
        | {"incarnation": 3, "seconds": 0.5},
    ],
    "rebuilt": [{"event": "rebuilt", **DONE}],
    "reloaded": [{"event": "reloaded", "stopped": ["names"], **DONE}],
    "schema_changed": [{"event": "schema_changed", **NOTE, "status": "applied", "txn": 42}],
    "schema_waits": [{"event": "schema_waits", **NOTE}],
    "evolved": [
        {"event": "evolved", "view": "sales", **STORY, "seconds": 0.75, "rows_read": 12},
        {"event": "evolved", "view": "sales", **STORY, "quality": {"score": 0.9}},
    ],
    "warning": [
        {
            "event": "warning",
            "code": "parts-missing",
            "id": "order-17",
            "message": "a part is away",
        },
        {
            "event": "warning",
            "code": "level-not-reached",
            "view": "sales",
            "message": "it is strong",
        },
        {"event": "warning", "source": "shop", "code": "tie-ignored", "message": "no JSON"},
        {"event": "warning", "message": "an older copy", "error": ERROR},
        {"event": "warning", "code": "dashboard-ended", "message": "it has ended (1)"},
    ],
    "caught_up": [{"event": "caught_up", **TOTALS}],
    "stopped": [{"event": "stopped", **TOTALS}],
    "interrupted": [{"event": "interrupted"}],
    "dashboard": [{"event": "dashboard", "url": "http://127.0.0.1:7333/"}],
    "run_failed": [
        {"event": "run_failed", "error": ERROR},
        {"event": "run_failed", "error": ERROR, "traceback": "Traceback …"},
    ],
    "note": [
        {"event": "note", "logger": "viewkeeper.warehouse", "message": "tried again"},
        {"event": "note", "logger": "viewkeeper.warehouse", "message": "m", "traceback": "T"},
    ],
    "standing": [
        {
            "event": "standing",
            "views": {"sales": SINCE, "names": None},
            "sources": {"shop": SINCE},
            "approvals": [APPROVAL],
        }
    ],
    "merge": [{"event": "merge", "groups": [{"views": ["sales"], "rows": []}]}],
}

FIGURES = {
    "committed": {"shop": 4, "crm": 3, "depot": 2},
    "transactions": 8,
    "epochs": 3,
    "rows": {"sales": 104},
    "queries": {"shop": 1, "crm": 2, "depot": 3},
    "rows_fetched": {"shop": 10, "crm": 20, "depot": 30},
    "freshness_seconds": 0.25,
}
SUMMARY = {
    "event": "summary",
    "ok": True,
    "seconds": 60.0,
    **FIGURES,
    "seconds_to_resume": 4.2,
    "audits": {"sales": "equal"},
    "kept": None,
}
PLAYED = {"protocol": "sweep", "level": "complete", "is_good": True, "states": []}
DEMO: dict[str, list[dict[str, Any]]] = {
    "began": [{"event": "began", "seconds": 8, "sources": ["shop", "crm", "depot"]}],
    "anomaly": [{"event": "anomaly", "view": "V", "updates": ["before"], "protocols": [PLAYED]}],
    "sources_ready": [{"event": "sources_ready", "sources": ["shop", "crm", "depot"]}],
    "dashboard": RUN["dashboard"],
    "run_started": [{"event": "run_started", "pid": 11}],
    "loading": [{"event": "loading", "views": ["sales"], "rows_expected": 10}],
    "relation_read": [
        {"event": "relation_read", "relation": "shop.orders", "rows": 12, "total": 12}
    ],
    "loaded": [{"event": "loaded", "seconds": 1.5, "rows": {"sales": 100}}],
    "figures": [{"event": "figures", **FIGURES}],
    "killed": [{"event": "killed", "pid": 11, "signal": 9, "transactions": 8}],
    "resumed": [
        {"event": "resumed", "pid": 12, "seconds": 4.2, "goes_on_after": 8, "transactions": 5}
    ],
    "writers_stopped": [{"event": "writers_stopped", "committed": {"shop": 20}, "total": 20}],
    "settled": [{"event": "settled", "committed": 20, "transactions": 20, "ok": True}],
    "auditing": [{"event": "auditing", "views": ["sales"]}],
    "audited": [
        {
            "event": "audited",
            "ok": True,
            "views": [{"view": "sales", "verdict": "equal", "rows": 104}],
        }
    ],
    "stopping": [{"event": "stopping", "pid": 12}],
    "summary": [SUMMARY, SUMMARY | {"kept": "shop", "next": ["viewkeeper init example"]}],
}


def run_event(name: str, **news: Any) -> RunEvent:
    """An event of a run: its first sample, with other values where the test says so."""
    found = event_from_dict(RUN[name][0] | news)
    assert found is not None, name
    return found


def demo_event(name: str, **news: Any) -> DemoEvent:
    """As `run_event`, of the demo."""
    (kind,) = (each for each in DEMO_EVENTS if each.name == name)
    return kind.of(DEMO[name][0] | news)
