"""Schema changes told to people, and what they decided: two small files beside the project.

``.viewkeeper/evolution.json`` is the keeper's: every schema change that concerned a view, what it did to
each, and how far it is. ``.viewkeeper/decisions.json`` is the people's: `viewkeeper evolve` and the
dashboard write it. The ledger alone says what a view is; these files say why, and what is waited for.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from viewkeeper.engine.schema_changes import Foreseen
from viewkeeper.errors import UsageError
from viewkeeper.live.json_files import read_json, write_aside, write_json

CHANGES_FILE = ".viewkeeper/evolution.json"
DECISIONS_FILE = ".viewkeeper/decisions.json"
CHANGES_KEPT_MAX = 500

# Taken by the views, and their rows are being read; then applied, when the rows are there.
ADAPTING, APPLIED = "adapting", "applied"
PENDING, FROZEN, REJECTED = "pending", "frozen", "rejected"
DECISIONS = ("approve", "reject")


class EvolutionLog:
    """The changes of one project. Thread-safe; without a folder it keeps them to itself."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._changes: dict[str, dict[str, Any]] = {
            each["id"]: each for each in self._read(CHANGES_FILE).get("changes", [])
        }

    def told(self, plan: Foreseen, status: str, **more: Any) -> dict[str, Any]:
        """Note how far a change is; gives the note."""
        with self._lock:
            key = self._key(plan)
            known = self._changes.get(key, {"id": key, "at": _now()})
            known |= {
                "source": plan.reported.source,
                "relation": plan.reported.relation,
                "statement": plan.reported.statement,
                "changes": [str(step) for step in plan.steps],
                "effects": _by_view(plan),
                "status": status,
                **more,
            }
            self._changes[key] = known
            self._write()
            return dict(known)

    def decision(self, plan: Foreseen) -> str | None:
        """``approve`` or ``reject``, once somebody has decided."""
        made = self._read(DECISIONS_FILE).get(self._key(plan))
        return None if made is None else str(made["decision"])

    def _key(self, plan: Foreseen) -> str:
        """SQLite tells a change behind the last row that was read: after a restart that is another
        place. What still waits for a word is the same change then."""
        key = change_key(plan)
        if key in self._changes:
            return key
        told = {
            "source": plan.reported.source,
            "relation": plan.reported.relation,
            "changes": [str(step) for step in plan.steps],
        }
        waiting = (c for c in tuple(self._changes.values()) if c["status"] != APPLIED)
        return next((c["id"] for c in waiting if told.items() <= c.items()), key)

    def changes(self) -> list[dict[str, Any]]:
        """All that are known, oldest first, each with its decision where there is one."""
        decided = self._read(DECISIONS_FILE)
        return [each | {"decision": decided.get(each["id"])} for each in self._changes.values()]

    def decide(self, change: str, decision: str) -> dict[str, Any]:
        """Write a decision down for the keeper; raises UsageError for what can't be decided."""
        if decision not in DECISIONS:
            raise UsageError(
                "bad-decision",
                f"{decision} is no decision",
                detail=f"expected one of {', '.join(DECISIONS)}",
            )
        known = self._changes.get(change)
        if known is None:
            raise UsageError(
                "unknown-change",
                f"there is no schema change {change}",
                hint="viewkeeper evolve lists them",
            )
        if known["status"] in (ADAPTING, APPLIED):
            raise UsageError("already-decided", f"the schema change {change} is taken already")
        made = {"decision": decision, "at": _now()}
        if self._folder is not None:
            decided = dict(self._read(DECISIONS_FILE)) | {change: made}
            write_json(self._folder / DECISIONS_FILE, decided)
        return {"change": change, **made}

    def _read(self, name: str) -> Mapping[str, Any]:
        if self._folder is None:
            return {}
        return read_json(self._folder / name)

    def _write(self) -> None:
        if self._folder is not None:
            kept = list(self._changes.values())[-CHANGES_KEPT_MAX:]
            write_aside(self._folder / CHANGES_FILE, {"changes": kept})


def change_key(plan: Foreseen) -> str:
    """The same for one change at one place of its source, in every run and at any time."""
    place = json.dumps(dict(plan.reported.position), sort_keys=True, default=str)
    named = f"{plan.reported.source} {plan.reported.relation} {place}"
    return hashlib.sha256(named.encode()).hexdigest()[:12]


def _by_view(plan: Foreseen) -> list[dict[str, Any]]:
    """The last word on every view that the change means something to."""
    found = {e.view: e.as_dict() for e in plan.effects if e.kind.name != "UNTOUCHED"}
    return list(found.values())


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
