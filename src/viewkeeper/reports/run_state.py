"""What a running keeper tells others: a small file beside the project, replaced as a whole.

``viewkeeper status`` and the dashboard read it. It is never needed for correctness: the ledger says
what is true, this file says what somebody is doing about it.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from viewkeeper import run_events as ev
from viewkeeper.engine.view import View
from viewkeeper.live.json_files import read_json, write_aside
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.reports.traffic import add_batch, no_traffic

FILE = ".viewkeeper/run.json"
NEVER_RUN = "never run"
# States of a run in which no view is kept, so that nothing can be late.
NOBODY_KEEPS = ("stopped", NEVER_RUN)


class RunState:
    """Written on every event of a run; says ``stopped`` after it. Thread-safe: groups tell too."""

    def __init__(self, folder: Path, views: Mapping[str, View]) -> None:
        """Raises UsageError for a view that nobody can keep as it is declared."""
        self._path = folder / FILE
        self._lock = threading.Lock()
        found = read_run_state(folder)
        # Another run is going: until something happens in this one, it is the one that is told of.
        self._is_told = found["state"] in ("stopped", NEVER_RUN) or found["pid"] == os.getpid()
        self._state: dict[str, Any] = {
            "pid": os.getpid(),
            "state": "starting",
            "since": _now(),
            "views": {name: _kept(view) for name, view in views.items()},
            # What was measured goes on from run to run: advice needs more than a short one.
            "traffic": found.get("traffic") or no_traffic(_now()),
            # So does what was found wrong.
            "audits": found.get("audits") or {},
        }

    def __enter__(self) -> RunState:
        if self._is_told:
            self._write()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._state["state"] = "stopped"
            if self._is_told:
                self._write()

    def on_event(self, event: ev.RunEvent) -> None:
        """Take note of what the run does, and write it down where it says something."""
        with self._lock:
            news = self._news(event)
            if news is not None:
                self._state |= news
                self._write()

    def _news(self, event: ev.RunEvent) -> dict[str, Any] | None:
        """What an event changes of the state; None where it says nothing of it."""
        audits, stopped = self._state["audits"], self._state.get("stopped_views", {})
        match event:
            case ev.LoadingStarted():
                return {"state": "loading"}
            case ev.ViewsLoaded() | ev.ViewsResumed():
                return {"state": "running"}
            case ev.BatchCommitted():
                add_batch(self._state["traffic"], event)
                return {"state": "running", "batch": event.as_dict()}
            case ev.SourceWentAway(error):
                return {"state": "waiting", "waiting": dict(error)}
            case ev.SourceCameBack():
                return {"state": "running"} if self._state["state"] == "waiting" else {}
            case ev.ViewsStopped(views, error):
                return {"stopped_views": stopped | dict.fromkeys(views, error)}
            case ev.ViewAudited(view):
                found = {} if _stays_marked(audits.get(view, {}), event) else {view: event}
                told = {name: each.as_dict() | {"at": _now()} for name, each in found.items()}
                return {"audits": audits | told}
            case ev.ViewsRebuilt(views):
                return {
                    "audits": _without(audits, views),
                    "stopped_views": _without(stopped, views),
                }
            case ev.ViewsReloaded():
                return {"stopped_views": {n: e for n, e in stopped.items() if n in event.stopped}}
            case ev.StandingChanged():
                return {"standing": event.as_fields()}
            case ev.PaintingChanged():
                return {"merge": event.as_fields()}
            case _:
                return None

    def _write(self) -> None:
        self._is_told = True
        self._state["at"] = _now()
        write_aside(self._path, self._state)


def read_run_state(folder: Path) -> dict[str, Any]:
    """What the last run said; ``state`` is ``stopped`` when its process is gone."""
    state = read_json(folder / FILE)
    try:
        if not isinstance(state["views"], dict):
            raise TypeError
        if state["state"] != "stopped" and not _is_alive(int(state["pid"])):
            state["state"] = "stopped"
        approvals = state.get("standing", {}).get("approvals", [])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        # None there, or nothing that a run wrote: a rotten file says nothing.
        return {"state": NEVER_RUN, "views": {}}
    # Other groups may go on, and say so: what waits for somebody waits all the same.
    if approvals and state["state"] == "running":
        state |= {"state": "waiting", "waiting": approvals[0]}
    return state


def _stays_marked(known: Mapping[str, Any], audit: ev.ViewAudited) -> bool:
    """Whether a view that was found different is so still, whatever a lesser check says.

    Only a comparison of all rows takes the mark away, or a rebuild of the view since.
    """
    if known.get("verdict") != "different" or audit.verdict == "different":
        return False
    is_whole = audit.verdict == "equal" and audit.checked == "all rows"
    return not is_whole and audit.incarnation == known.get("incarnation")


def _without(known: Mapping[str, Any], views: Iterable[str]) -> dict[str, Any]:
    gone = set(views)
    return {name: value for name, value in known.items() if name not in gone}


def kept_as(view: View) -> dict[str, Any]:
    """By which protocol, why, and at which level: the one that is declared, or the one that can be had."""
    level = min(view.choice.level, view.definition.level)
    return {
        "protocol": view.choice.protocol,
        "level": str(level),
        "why": list(view.choice.why),
    }


def _kept(view: View) -> dict[str, Any]:
    declared, period = str(view.definition.level), period_seconds(view.definition)
    return kept_as(view) | {"declared": declared, "period_seconds": period}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
