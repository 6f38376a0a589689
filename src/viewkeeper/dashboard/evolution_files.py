"""Schema changes for the evolution page, and what people decided about them.

Read again whenever somebody asks: the keeper writes them, in another process. See docs/dashboard.md.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from viewkeeper.live.evolution_log import CHANGES_FILE, DECISIONS_FILE, PENDING, EvolutionLog


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
