"""Audits that were asked for on a page: ``viewkeeper audit`` as a separate process, and its verdict.

The verdicts are kept in a file beside the project, so that a view's health remembers them.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.live.json_files import write_json
from viewkeeper.reports.status import ASKED_AUDITS_FILE, read_asked_audits


class Audits:
    """One at a time: an audit starts its own Spark. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._running: str | None = None
        # Those of this process, also where the folder can't be written to.
        self._found: dict[str, dict[str, Any]] = {}
        self.revision = 0

    def all(self) -> dict[str, dict[str, Any]]:
        """By view, its last audit: the verdict, or ``running``, or the error that kept it from one."""
        with self._lock:
            running = {} if self._running is None else {self._running: {"verdict": "running"}}
            return read_asked_audits(self._folder) | self._found | running

    def start(self, view: str, incarnation: int | None) -> dict[str, Any]:
        """Begin an audit of a view as it was filled then; raises UsageError while another one goes on."""
        with self._lock:
            if self._running is not None:
                raise UsageError(
                    "audit-running",
                    f"an audit of {self._running} is going on",
                    hint="wait for its verdict",
                )
            self._running = view
            self.revision += 1
        threading.Thread(target=self._audit, args=(view, incarnation), daemon=True).start()
        return {"verdict": "running"}

    def _audit(self, view: str, incarnation: int | None) -> None:
        command = [sys.executable, "-m", "viewkeeper", "audit", view, "--json", "--project"]
        done = subprocess.run(
            [*command, str(self._folder)], capture_output=True, text=True, check=False
        )
        at = dt.datetime.now(dt.UTC).isoformat("T", "seconds")
        found = _verdict(done.stdout) | {"at": at, "incarnation": incarnation}
        with self._lock:
            self._running = None
            self._found[view] = found
            self.revision += 1
            kept = read_asked_audits(self._folder) | self._found
        with contextlib.suppress(OSError):  # a folder that can't be written to: it is forgotten
            write_json(self._folder / ASKED_AUDITS_FILE, kept)


def _verdict(output: str) -> dict[str, Any]:
    try:
        told = json.loads(output.strip().splitlines()[-1])
        return told["views"][0] if "views" in told else {"verdict": "refused", **told}
    except (IndexError, KeyError, ValueError):
        error = UsageError(
            "audit-failed", "the audit ended without a verdict", detail=output[-500:]
        )
        return {"verdict": "refused", "error": error.as_dict()}
