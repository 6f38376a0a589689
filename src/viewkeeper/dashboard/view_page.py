"""What the page of one view shows beside the moment: its definition's versions, its past, its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viewkeeper.dashboard.project_monitor import ProjectMonitor
from viewkeeper.reports.positions import position_text
from viewkeeper.warehouse import Entry, ViewState

STATES_SHOWN = 50
EPOCHS_CHARTED = 240

Document = dict[str, Any]


def view_document(monitor: ProjectMonitor, name: str) -> Document:
    """Everything about one view that does not change with every batch, and its recent past."""
    monitor.known_view(name)
    entries = monitor.entries()
    epochs = [entry for entry in entries if entry.kind == "epoch" and name in entry.views]
    text = monitor.descriptions.texts().get(name)
    latest = entries[-1] if entries else None
    state = None if latest is None else latest.views.get(name)
    stored = None if state is None else state.definition.text
    current = text if text is not None else stored
    return {
        "view": name,
        "text": current,
        "is_kept_as_written": _is_from(state, text),
        "description": None if current is None else monitor.descriptions.of(name, current),
        "problem": monitor.descriptions.error(name),
        "versions": _versions(epochs, name),
        "since_txn": None if state is None else state.since_txn,
        "oldest_txn": 0 if latest is None else latest.oldest_txn,
        "newest_txn": 0 if latest is None else latest.last_txn,
        "states": [_state(entry, name) for entry in reversed(epochs[-STATES_SHOWN:])],
        "epochs": [_point(entry, name) for entry in epochs[-EPOCHS_CHARTED:]],
        "batches": monitor.batches.all(),
        "audit": monitor.audits.all().get(name),
    }


def _is_from(state: ViewState | None, text: str | None) -> bool:
    """Whether the kept view was made from the text; texts of views that it reads follow its own."""
    if state is None or text is None:
        return False
    written = state.definition.written
    return written == text or written.startswith(f"{text}\n-- reads the view ")


def _versions(epochs: Sequence[Entry], name: str) -> list[Document]:
    """Every version of the definition that the ledger still knows, newest first."""
    found: dict[int, Document] = {}
    for entry in epochs:
        state = entry.views[name]
        found.setdefault(
            state.definition_version,
            {
                "version": state.definition_version,
                "text": state.definition.text,
                "since_txn": entry.last_txn,
                "committed_at": entry.committed_at.isoformat(),
                "columns": list(state.schema.names),
            },
        )
    return [found[version] for version in sorted(found, reverse=True)]


def _state(entry: Entry, name: str) -> Document:
    """One epoch of the list: each transaction in it is a state."""
    own = entry.views[name].positions or entry.positions
    return {
        "epoch": entry.epoch,
        "first_txn": entry.first_txn,
        "last_txn": entry.last_txn,
        "committed_at": entry.committed_at.isoformat(),
        **_changed(entry, name),
        "cut": {source: position_text(position) for source, position in own.items()},
    }


def _point(entry: Entry, name: str) -> Document:
    """One epoch of the charts over the ledger."""
    transactions = max(entry.last_txn - entry.first_txn + 1, 0)
    at = entry.committed_at.isoformat()
    return {"at": at, "transactions": transactions, **_changed(entry, name)}


def _changed(entry: Entry, name: str) -> Document:
    tally = entry.statistics.get(name)
    return {"inserted": tally.inserted if tally else 0, "deleted": tally.deleted if tally else 0}
