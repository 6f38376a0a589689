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
from viewkeeper.live.json_files import read_json, write_json

FILE = ".viewkeeper/audits.json"


class Audits:
    """One at a time: an audit starts its own Spark. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._running: str | None = None
        self._found: dict[str, dict[str, Any]] = read_json(folder / FILE)
        self.revision = 0

    def last(self, view: str) -> dict[str, Any] | None:
        """The view's last audit: its verdict, or ``running``, or the error that kept it from one."""
        with self._lock:
            if self._running == view:
                return {"verdict": "running"}
            return self._found.get(view)

    def start(self, view: str) -> dict[str, Any]:
        """Begin an audit; raises UsageError while another one goes on."""
        with self._lock:
            if self._running is not None:
                raise UsageError(
                    "audit-running",
                    f"an audit of {self._running} is going on",
                    hint="wait for its verdict",
                )
            self._running = view
            self.revision += 1
        threading.Thread(target=self._audit, args=(view,), daemon=True).start()
        return {"verdict": "running"}

    def _audit(self, view: str) -> None:
        command = [sys.executable, "-m", "viewkeeper", "audit", view, "--json", "--project"]
        done = subprocess.run(
            [*command, str(self._folder)], capture_output=True, text=True, check=False
        )
        found = _verdict(done.stdout) | {"at": dt.datetime.now(dt.UTC).isoformat("T", "seconds")}
        with self._lock:
            self._running = None
            self._found[view] = found
            self.revision += 1
            kept = dict(self._found)
        with contextlib.suppress(OSError):  # a folder that can't be written to: it is forgotten
            write_json(self._folder / FILE, kept)


def _verdict(output: str) -> dict[str, Any]:
    try:
        told = json.loads(output.strip().splitlines()[-1])
        return told["views"][0] if "views" in told else {"verdict": "refused", **told}
    except (IndexError, KeyError, ValueError):
        error = UsageError(
            "audit-failed", "the audit ended without a verdict", detail=output[-500:]
        )
        return {"verdict": "refused", "error": error.as_dict()}
