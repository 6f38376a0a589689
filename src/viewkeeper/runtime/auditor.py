"""The auditor of a run: one view after the other, now and then, at little cost.

Two checks, which find different things:

- A *fingerprint* of the view's stored rows, a sum of row hashes in which order does not matter. What it was at
  an earlier state, plus that of the changes since, must be what it is now. No source is asked; it finds
  files that were changed, lost or doubled behind our back.
- A *sample* of keys computed anew from the sources at the view's own cut (`sampling`). It finds what was wrong
  when it was written. A small view that can't be sampled is computed as a whole; a large one is not.

Either difference has the whole view compared row by row, so that the rows can be named. An auditor never ends
a run: what keeps it from a verdict is told, and tried again next time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.runtime.audit import Audit, audited
from viewkeeper.runtime.json_files import read_json, write_aside
from viewkeeper.runtime.memory import give_back
from viewkeeper.runtime.pipeline import Pipeline
from viewkeeper.runtime.sampling import can_sample, sampled
from viewkeeper.warehouse.entries import ViewState
from viewkeeper.warehouse.fingerprints import MODULUS, fingerprint_of
from viewkeeper.warehouse.warehouse import Warehouse

FILE = ".viewkeeper/fingerprints.json"
# Beyond so many stored rows a view is not read through, nor computed as a whole.
FINGERPRINT_ROWS_MAX = 2_000_000
WHOLE_ROWS_MAX = 100_000
# The first check of a run comes sooner: whoever has just started it wants to know.
FIRST_SECONDS_MAX = 60.0
EQUAL, DIFFERENT, UNKNOWN = "equal", "different", "unknown"


@dataclass(frozen=True)
class AuditSettings:
    """How often some view is checked (0: never), and how many of its keys."""

    every_seconds: float = 600.0
    keys: int = 16


class Auditor:
    """Decides what is due, and remembers fingerprints from run to run. Used by one thread."""

    def __init__(
        self,
        settings: AuditSettings,
        folder: Path,
        randomness: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._path = folder / FILE
        self._randomness = randomness or random.Random()
        self._due_at = time.monotonic() + min(settings.every_seconds, FIRST_SECONDS_MAX)
        self._last: str | None = None

    @property
    def is_due(self) -> bool:
        return self._settings.every_seconds > 0 and time.monotonic() >= self._due_at

    def next_of(self, views: Sequence[str]) -> str | None:
        """The view whose turn it is: round and round, in order of names."""
        names = sorted(views)
        later = [name for name in names if self._last is None or name > self._last]
        self._last = next(iter(later or names), None)
        return self._last

    def audit(self, pipeline: Pipeline, warehouse: Warehouse) -> dict[str, Any] | None:
        """Check the next view; its verdict for people and programs. None when there is no view."""
        view = self.next_of([name for group in tuple(pipeline.groups) for name in group.views])
        found = None if view is None else self._checked(pipeline, warehouse, view)
        # It has read much that nobody needs any more.
        give_back()
        # Counted from its end: an auditor that is slow does not become the main load.
        self._due_at = time.monotonic() + self._settings.every_seconds
        return found

    def _checked(self, pipeline: Pipeline, warehouse: Warehouse, view: str) -> dict[str, Any]:
        started = time.monotonic()
        try:
            audit, how = self._verdict(pipeline, warehouse, view)
            told = audit.as_dict() if audit is not None else {"view": view, "verdict": UNKNOWN}
            told |= {"how": how}
        except SourceError as error:
            told = {"view": view, "verdict": UNKNOWN, "error": error.as_dict()}
        except Exception as error:  # files of the view that can't be read are the finding
            told = {"view": view, "verdict": DIFFERENT, "error": _told(error)}
        return told | {"seconds": round(time.monotonic() - started, 3)}

    def _verdict(
        self, pipeline: Pipeline, warehouse: Warehouse, view: str
    ) -> tuple[Audit | None, str]:
        state = pipeline.writer.latest.views[view]
        rows = state.base_rows + state.log_rows
        if rows <= FINGERPRINT_ROWS_MAX and not self._fingerprint_fits(warehouse, view):
            return audited(pipeline, warehouse, view), "fingerprint, then whole"
        definition = pipeline.group_of(view).views[view].definition
        if can_sample(definition):
            found = sampled(pipeline, warehouse, view, self._settings.keys, self._randomness)
            if found.is_equal:
                return found, "fingerprint and sample"
            return audited(pipeline, warehouse, view), "sample, then whole"
        if rows <= WHOLE_ROWS_MAX:
            return audited(pipeline, warehouse, view), "fingerprint and whole"
        return None, "fingerprint"

    # -- fingerprints -----------------------------------------------------------------------------

    def _fingerprint_fits(self, warehouse: Warehouse, view: str) -> bool:
        """Whether the stored rows are those of last time, plus what changed since. Remembers them."""
        known = read_json(self._path)
        snapshot = warehouse.snapshot()
        latest = snapshot.entries[-1]
        state = latest.views[view]
        now = fingerprint_of(snapshot.stored_parts(view))
        expected = self._expected(warehouse, view, state, latest.last_txn, known.get(view))
        fits = expected is None or expected == now
        known[view] = {
            "incarnation": state.incarnation,
            "entry": latest.entry,
            "txn": latest.last_txn,
            "fingerprint": now,
        }
        write_aside(self._path, known)
        return fits

    def _expected(
        self,
        warehouse: Warehouse,
        view: str,
        state: ViewState,
        txn: int,
        known: Mapping[str, Any] | None,
    ) -> int | None:
        """None where the last fingerprint tells nothing of this state."""
        if known is None or known["incarnation"] != state.incarnation or known["txn"] > txn:
            return None
        since = int(known.get("entry", 0))
        try:
            changes = warehouse.change_parts(view, int(known["txn"]), txn, since_entry=since)
            return (int(known["fingerprint"]) + fingerprint_of(changes)) % MODULUS
        except ViewkeeperError:
            return None  # those states are no longer kept


def _told(error: Exception) -> dict[str, object]:
    if isinstance(error, ViewkeeperError):
        return error.as_dict()
    return {"code": "view-unreadable", "message": f"{type(error).__name__}: {error}"}
