"""Schema changes for the evolution page, and what people decided about them.

A keeper tells of changes in its run state under ``evolution``, or in a file of its own; both have the
same shape. Decisions go into another file, which the keeper reads. See docs/dashboard.md.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from viewkeeper.dashboard.json_files import read_json, write_json
from viewkeeper.errors import UsageError
from viewkeeper.runtime.evolution_log import (
    CHANGES_FILE,
    DECISIONS_FILE,
    FROZEN,
    PENDING,
    REJECTED,
)

DECISIONS = ("approve", "reject")
# A change that is not applied can still be decided, also otherwise than before.
UNDECIDED = (PENDING, FROZEN, REJECTED)


class EvolutionFiles:
    """The changes of one project, and the decisions about them."""

    def __init__(self, folder: Path) -> None:
        self._changes = folder / CHANGES_FILE
        self._decisions = folder / DECISIONS_FILE
        self._lock = threading.Lock()

    def changes(self, run: Mapping[str, Any]) -> list[dict[str, Any]]:
        """All that are known, newest first, each with its decision where there is one."""
        told = run.get("evolution") or read_json(self._changes)
        decided = read_json(self._decisions)
        return [
            change | {"decision": decided.get(str(change["id"]))}
            for change in reversed(told.get("changes", []))
        ]

    def waiting(self, run: Mapping[str, Any]) -> int:
        """How many changes wait for a person's word."""
        found = self.changes(run)
        return sum(each["status"] == "pending" and each["decision"] is None for each in found)

    def decide(self, run: Mapping[str, Any], change: str, decision: str) -> dict[str, Any]:
        """Write a decision down; raises UsageError for what can't be decided (any more)."""
        if decision not in DECISIONS:
            raise UsageError(
                "bad-decision",
                f"{decision} is no decision",
                detail=f"expected one of {', '.join(DECISIONS)}",
            )
        known = {str(each["id"]): each for each in self.changes(run)}
        if change not in known:
            raise UsageError("unknown-change", f"there is no schema change {change}")
        if known[change]["status"] not in UNDECIDED:
            raise UsageError(
                "already-settled",
                f"the schema change {change} is {known[change]['status']} already",
            )
        made = {"decision": decision, "at": dt.datetime.now(dt.UTC).isoformat("T", "seconds")}
        with self._lock:
            write_json(self._decisions, read_json(self._decisions) | {change: made}, must=True)
        return {"change": change, **made}

    def pulse(self) -> object:
        """Equal while nothing is new."""
        return tuple(_changed_at(path) for path in (self._changes, self._decisions))


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
