"""What the evolution page shows: schema changes with each view's definition before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viewkeeper.dashboard.evolution_files import EvolutionFiles
from viewkeeper.dashboard.project_monitor import ProjectMonitor
from viewkeeper.live.evolution_log import APPLIED
from viewkeeper.warehouse import Entry

Document = dict[str, Any]


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
