"""Entries of the ledger for programs: the documents of ``viewkeeper history``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viewkeeper.warehouse import Entry
from viewkeeper.warehouse.entries import ViewState


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry for programs, with what another engine needs to read its tables."""
    return {
        "entry": entry.entry,
        "kind": entry.kind,
        "epoch": entry.epoch,
        "first_txn": entry.first_txn,
        "last_txn": entry.last_txn,
        "oldest_txn": entry.oldest_txn,
        "committed_at": entry.committed_at.isoformat(),
        "positions": dict(entry.positions),
        "cut": entry.cut,
        "rows": {view: vars(tally) for view, tally in entry.shown_statistics.items()},
        "views": {view: state.as_json() for view, state in entry.shown_views.items()},
    }


def definition_documents(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """What became of the views' definitions, why, and what it cost; oldest first."""
    found: list[dict[str, Any]] = []
    versions: dict[str, int] = {}
    for entry in entries:
        for view, state in entry.shown_views.items():
            if versions.get(view) != state.definition_version:
                versions[view] = state.definition_version
                found.append(_definition_document(entry, view, state))
    return found


def _definition_document(entry: Entry, view: str, state: ViewState) -> dict[str, Any]:
    return {
        "view": view,
        "version": state.definition_version,
        "committed_at": entry.committed_at.isoformat(timespec="seconds"),
        "txn": entry.last_txn,
        "text": state.definition.text,
        "evolved": state.definition.evolved,
        "rebuilt": state.definition.rebuilt,
    }
