"""What a running keeper tells others: a small file beside the project, replaced as a whole.

``viewkeeper status`` and the dashboard read it. It is never needed for correctness: the ledger says
what is true, this file says what somebody is doing about it.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from viewkeeper.engine.view import View
from viewkeeper.live.json_files import read_json, write_aside
from viewkeeper.live.questions.traffic import add_batch, no_traffic
from viewkeeper.protocols.choice import period_seconds

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

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take note of what the run does, and tell it."""
        with self._lock:
            self._note(event)

    def _note(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "loading":
                self._state["state"] = "loading"
            case "loaded" | "ready":
                self._state["state"] = "running"
            case "batch":
                self._state["state"] = "running"
                self._state["batch"] = dict(event)
                add_batch(self._state["traffic"], event)
            case "source_back":
                if self._state["state"] == "waiting":
                    self._state["state"] = "running"
            case "views_stopped":
                stopped = dict.fromkeys(event["views"], event["error"])
                self._state["stopped_views"] = self._state.get("stopped_views", {}) | stopped
            case "audited":
                audits = self._state.get("audits", {})
                known = audits.get(event["view"], {})
                told = {**event, "at": _now()}
                if not _stays_marked(known, event):
                    self._state["audits"] = audits | {event["view"]: told}
            case "rebuilt":
                audits = self._state.get("audits", {})
                self._state["audits"] = {n: a for n, a in audits.items() if n not in event["views"]}
                known = self._state.get("stopped_views", {})
                self._state["stopped_views"] = {
                    name: error for name, error in known.items() if name not in event["views"]
                }
            case "standing":
                self._state["standing"] = {n: part for n, part in event.items() if n != "event"}
            case "reloaded":
                known = self._state.get("stopped_views", {})
                self._state["stopped_views"] = {n: known[n] for n in event["stopped"] if n in known}
            case "merge":
                self._state["merge"] = {"groups": event["groups"]}
            case "source_waiting":
                self._state["state"] = "waiting"
                self._state["waiting"] = dict(event["error"])
            case _:
                return
        self._write()

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


def _stays_marked(known: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether a view that was found different is so still, whatever a lesser check says.

    Only a comparison of all rows takes the mark away, or a rebuild of the view since.
    """
    if known.get("verdict") != "different" or event["verdict"] == "different":
        return False
    is_whole = event["verdict"] == "equal" and event.get("checked") == "all rows"
    is_new = event.get("incarnation") != known.get("incarnation")
    return not is_whole and not is_new


def _kept(view: View) -> dict[str, Any]:
    """By whom, why, and at which level: the one that is declared, or the one that can be had."""
    choice = view.choice
    level = min(choice.level, view.definition.level)
    return {
        "level": str(level),
        "declared": str(view.definition.level),
        "protocol": choice.protocol,
        "why": list(choice.why),
        "period_seconds": period_seconds(view.definition),
    }


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
