"""What the evolution page shows and takes: schema changes with each view's definition before and after; decisions.

Read again with every request: the run writes them, in another process. See docs/dashboard.md.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from viewkeeper.dashboard.project_monitor import ProjectMonitor
from viewkeeper.live.evolution_log import (
    APPLIED,
    CHANGES_FILE,
    DECISIONS_FILE,
    PENDING,
    EvolutionLog,
)
from viewkeeper.warehouse import Entry

Document = dict[str, Any]


class EvolutionFiles:
    """The changes of one project, and the decisions about them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = (folder / CHANGES_FILE, folder / DECISIONS_FILE)
        self._lock = threading.Lock()

    def changes(self) -> list[dict[str, Any]]:
        """All that are known, newest first, each with its decision where there is one."""
        return EvolutionLog(self._folder).changes()[::-1]

    def waiting(self) -> int:
        """How many changes wait for a person's word."""
        found = self.changes()
        return sum(each["status"] == PENDING and each["decision"] is None for each in found)

    def decide(self, change: str, decision: str) -> dict[str, Any]:
        """Write a decision down; raises UsageError for what can't be decided (any more)."""
        with self._lock:
            return EvolutionLog(self._folder).decide(change, decision)

    def pulse(self) -> object:
        """Equal while nothing is new."""
        return tuple(_changed_at(path) for path in self._files)


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def changes_document(monitor: ProjectMonitor, files: EvolutionFiles) -> Document:
    """All schema changes, newest first; what a change does not say of a view, the ledger does."""
    changes = files.changes()
    entries = monitor.entries() if changes else []
    return {
        "changes": [
            change | {"effects": [_effect(monitor, entries, change, e) for e in change["effects"]]}
            for change in changes
        ]
    }


def _effect(
    monitor: ProjectMonitor, entries: Sequence[Entry], change: Document, effect: Document
) -> Document:
    after = effect.get("after") or effect.get("sql")
    before = effect.get("before") or _before(monitor, entries, change, effect["view"], after)
    return effect | {"before": before, "after": after}


def _before(
    monitor: ProjectMonitor,
    entries: Sequence[Entry],
    change: Document,
    view: str,
    after: str | None,
) -> str | None:
    """The text that the change found: the one that is kept now, or the one before it."""
    texts = list(
        dict.fromkeys(entry.views[view].definition.text for entry in entries if view in entry.views)
    )
    if not texts:
        return None
    if change["status"] == APPLIED and after in texts and texts.index(after) > 0:
        return texts[texts.index(after) - 1]
    # As it was understood, so that only what changes differs from what follows.
    described = monitor.descriptions.of(view, texts[-1])
    return texts[-1] if described is None else str(described["sql"])
