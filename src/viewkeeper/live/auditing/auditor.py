"""The auditor of a run: one view after the other, now and then, at little cost.

Two checks, which find different things:

- A *fingerprint* of the view's stored rows and of its stores', a sum of row hashes in which order does not matter.
  What it was at an earlier state, plus that of the changes since, must be what it is now. No source is asked; it
  finds files that were changed, lost or doubled behind our back. A fingerprint that does not fit is never taken
  for what to compare with next time.
- A *sample* of keys recomputed from the sources at the view's own cut (`sampling`). It finds what was wrong
  when it was written. A small view that can't be sampled is computed as a whole; a large one is not.

Either difference has the whole view compared row by row, with its stores, so that the rows can be named. A view that
was found different stays marked, and is compared as a whole each time, until such a comparison finds it equal
or it is rebuilt: a sample can't take a mark away. An auditor never ends a run: what keeps it from a
verdict is reported, and tried again next time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeeper.errors import InvariantViolated, SourceError, UsageError, ViewkeeperError
from viewkeeper.live.auditing.audit import Audit, audit_view
from viewkeeper.live.auditing.sampling import can_sample, sampled
from viewkeeper.live.json_files import read_json, write_aside
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.live.process_memory import give_back
from viewkeeper.run_events import ViewAudited
from viewkeeper.warehouse.columns import owner_of
from viewkeeper.warehouse.entries import ViewState
from viewkeeper.warehouse.fingerprints import MODULUS, fingerprint_of
from viewkeeper.warehouse.warehouse import Warehouse

FILE = ".viewkeeper/fingerprints.json"
# Beyond this number of stored rows a view is not read through, nor computed as a whole.
FINGERPRINT_ROWS_MAX = 2_000_000
WHOLE_ROWS_MAX = 100_000
# The first check of a run comes sooner: the person who has just started it wants to know.
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

    def audit(self, pipeline: Pipeline, warehouse: Warehouse) -> ViewAudited | None:
        """Check the next view; its verdict for people and programs. None when there is no view."""
        view = self.next_of([name for group in pipeline.groups for name in group.scope.views])
        found = None if view is None else self._check(pipeline, warehouse, view)
        # It has read much that is no longer needed.
        give_back()
        # Counted from its end: an auditor that is slow does not become the main load.
        self._due_at = time.monotonic() + self._settings.every_seconds
        return found

    def _check(self, pipeline: Pipeline, warehouse: Warehouse, view: str) -> ViewAudited:
        started = time.monotonic()
        incarnation = pipeline.writer.latest.views[view].incarnation
        try:
            audit, how = self._verdict(pipeline, warehouse, view)
            told = audit.as_dict() if audit is not None else {"view": view, "verdict": UNKNOWN}
            told |= {"how": how}
        except SourceError as error:
            told = {"view": view, "verdict": UNKNOWN, "error": error.as_dict()}
        except Exception as error:  # files of the view that can't be read are the finding
            told = {"view": view, "verdict": DIFFERENT, "error": _told(error)}
        if told["verdict"] == DIFFERENT:
            self._remember({_mark(view): {"incarnation": incarnation}})
        seconds = round(time.monotonic() - started, 3)
        return ViewAudited.of(told | {"incarnation": incarnation, "seconds": seconds})

    def _verdict(
        self, pipeline: Pipeline, warehouse: Warehouse, view: str
    ) -> tuple[Audit | None, str]:
        states = pipeline.writer.latest.views
        tables = [view, *(name for name in states if owner_of(name) == view)]
        rows = sum(states[name].base_rows + states[name].log_rows for name in tables)
        is_read = rows <= FINGERPRINT_ROWS_MAX
        # All of them, also when one does not fit: each takes note of what it has now.
        fits = [not is_read or self._fingerprint_fits(warehouse, name) for name in tables]
        if self._is_marked(view, states[view].incarnation):
            return self._compare(pipeline, warehouse, tables), "marked, then whole"
        if not all(fits):
            return self._compare(pipeline, warehouse, tables), "fingerprint, then whole"
        definition = pipeline.group_of(view).scope.views[view].definition
        if can_sample(definition):
            found = sampled(pipeline, warehouse, view, self._settings.keys, self._randomness)
            if found.is_equal:
                return found, "fingerprint and sample"
            return self._compare(pipeline, warehouse, tables), "sample, then whole"
        if rows <= WHOLE_ROWS_MAX:
            return self._compare(pipeline, warehouse, tables), "fingerprint and whole"
        return None, "fingerprint"

    def _compare(self, pipeline: Pipeline, warehouse: Warehouse, tables: Sequence[str]) -> Audit:
        """All rows, against the sources. What is found equal is where fingerprints begin again."""
        found = audit_view(pipeline, warehouse, tables[0])
        if found.is_equal:
            self._remember(dict.fromkeys((*tables, _mark(tables[0]))))
        return found

    # -- what is remembered -----------------------------------------------------------------------

    def _remember(self, news: Mapping[str, Any]) -> None:
        """Write down what is news; None is forgotten."""
        known = read_json(self._path) | dict(news)
        write_aside(self._path, {name: value for name, value in known.items() if value is not None})

    def _is_marked(self, view: str, incarnation: int) -> bool:
        mark = read_json(self._path).get(_mark(view))
        return isinstance(mark, dict) and mark.get("incarnation") == incarnation

    def _fingerprint_fits(self, warehouse: Warehouse, name: str) -> bool:
        """Whether a table's rows are those of last time, plus what changed since.

        Remembers them if they are; what does not fit is no measure for the next time.
        """
        known = read_json(self._path)
        snapshot = warehouse.snapshot()
        latest = snapshot.entries[-1]
        state = latest.views[name]
        now = fingerprint_of(snapshot.stored_parts(name))
        expected = self._expected(warehouse, name, state, latest.last_txn, known.get(name))
        fits = expected is None or expected == now
        if fits:
            measured = {
                "incarnation": state.incarnation,
                "entry": latest.entry,
                "txn": latest.last_txn,
                "fingerprint": now,
            }
            self._remember({name: measured})
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
        try:
            if known is None or known["incarnation"] != state.incarnation or known["txn"] > txn:
                return None
            since, then = int(known.get("entry", 0)), int(known["txn"])
            before = int(known["fingerprint"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # nothing that we wrote
        try:
            changes = warehouse.change_parts(view, then, txn, since_entry=since)
            return (before + fingerprint_of(changes)) % MODULUS
        except (UsageError, InvariantViolated):
            return None  # those states are no longer kept


def _mark(view: str) -> str:
    """Under which name it is remembered that the view was found different."""
    return f"{view}!"


def _told(error: Exception) -> dict[str, object]:
    if isinstance(error, ViewkeeperError):
        return error.as_dict()
    return {"code": "view-unreadable", "message": f"{type(error).__name__}: {error}"}
