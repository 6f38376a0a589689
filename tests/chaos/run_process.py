"""``viewkeeper run`` as a process of its own, and what becomes of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.run_under_test import CLOCK_FILE
from viewkeeper.failpoints import VARIABLE

TESTS = Path(__file__).parents[1]
END_SECONDS_MAX = 180.0
# As often as it says so, about once a second, nobody waits for a run that waits for a source.
WAITS_MAX = 8


@dataclass(frozen=True)
class Ending:
    """How a run ended: by a signal (negative), or by itself with the code of its error."""

    status: int
    error: str = ""
    message: str = ""
    retryable: bool = False

    def __str__(self) -> str:
        return f"{self.status} {self.error} {self.message}".strip()


class RunProcess:
    """Starts, kills and restarts `run`; remembers every ending until somebody asks for it."""

    def __init__(self, project: Path, command: tuple[str, ...] = ("chaos.run_under_test",)) -> None:
        self.project = project
        self.clock_file = project.parent / "clock"
        self._temporary = project.parent / "tmp"
        self._temporary.mkdir(exist_ok=True)
        self._module = command[0]
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._error: dict[str, Any] = {}
        self._moved = threading.Condition()
        self.starts = 0
        self.batches = 0
        self.waits = 0
        # The newest state that it told of, and whether its views are filled.
        self.txn = 0
        self.is_loaded = False
        # Errors that stopped views while the run went on with others, by code.
        self.stopped: list[dict[str, Any]] = []
        self.rss_max = {"python": 0, "java": 0}
        self.endings: list[Ending] = []
        self.log = (project.parent / "run.stderr").open("ab")

    # -- its life -----------------------------------------------------------------------------------

    def start(self, failpoint: str = "", *, allow_setup: bool = False) -> None:
        """Start it, if it is not running."""
        if self.is_alive:
            return
        self._collect()
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
            CLOCK_FILE: str(self.clock_file),
            # What a killed run leaves behind goes with the storm's folder.
            "TMPDIR": str(self._temporary),
        }
        environment.pop(VARIABLE, None)
        if failpoint:
            environment[VARIABLE] = failpoint
        words = ["run", "--json", "--project", str(self.project)]
        words += ["--log", str(self.project.parent / "run.log")]
        if allow_setup:
            words.append("--allow-setup")
        self._error = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module, *words],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        self.starts += 1
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    def kill(self) -> None:
        """kill −9, if it is there."""
        self.signal(signal.SIGKILL)
        self.await_end()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def stop(self) -> None:
        """As Ctrl-C does."""
        self.signal(signal.SIGTERM)
        self.await_end()

    def await_end(self, seconds_max: float = END_SECONDS_MAX) -> bool:
        """Whether it has ended within that time."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            return False
        self._collect()
        return True

    def await_batches(self, number: int, seconds_max: float) -> bool:
        """Until so many more epochs are in; False when it ended before, waits for a source, or took
        too long."""
        target, patience = self.batches + number, self.waits + WAITS_MAX
        with self._moved:
            self._moved.wait_for(
                lambda: self.batches >= target or not self.is_alive or self.waits >= patience,
                timeout=seconds_max,
            )
        return self.batches >= target

    def await_loaded(self, seconds_max: float) -> bool:
        """Until its new views are filled; False when it ended before, or took too long."""
        with self._moved:
            self._moved.wait_for(lambda: self.is_loaded or not self.is_alive, timeout=seconds_max)
        return self.is_loaded

    def await_stop_of_views(self, seconds_max: float) -> str:
        """The code of the error that stopped views or ended the run; empty when there was none."""
        with self._moved:
            self._moved.wait_for(
                lambda: bool(self.stopped) or not self.is_alive, timeout=seconds_max
            )
        if not self.stopped and not self.is_alive:
            self._collect()
        if self.stopped:
            return str(self.stopped[-1]["code"])
        return self.endings[-1].error if self.endings else ""

    def close(self) -> None:
        self.kill()
        self.log.close()

    # -- what it says -------------------------------------------------------------------------------

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                with self._moved:
                    if "error" in said and "event" not in said:
                        self._error = said["error"]
                    elif said.get("event") == "batch":
                        self.batches += 1
                        self.txn = said["txn"]
                    elif said.get("event") == "loaded":
                        self.is_loaded = True
                    elif said.get("event") == "source_waiting":
                        self.waits += 1
                    elif said.get("event") == "views_stopped":
                        self.stopped.append(said["error"])
                    self._moved.notify_all()
        with self._moved:
            self._moved.notify_all()

    def _collect(self) -> None:
        """Note how it ended, once."""
        process, self._process = self._process, None
        if process is None:
            return
        status = process.wait()
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join()
        error = self._error
        retryable = bool(error.get("retryable", False))
        self.endings.append(Ending(status, error.get("code", ""), _told(error), retryable))

    # -- what it takes ------------------------------------------------------------------------------

    def measure(self) -> dict[str, int]:
        """Its memory now, in bytes: its own, and its JVM's."""
        found = {"python": 0, "java": 0}
        if self.is_alive:
            found["python"] = _rss(self.pid)
            found["java"] = sum(_rss(child) for child in self.java_pids())
        for part, size in found.items():
            self.rss_max[part] = max(self.rss_max[part], size)
        return found

    def java_pids(self) -> list[int]:
        """The processes below it that are Java."""
        return java_below(self.pid) if self.pid else []


def java_below(pid: int) -> list[int]:
    """The processes that one has started, and those they have, that are Java."""
    return [child for child in _below(pid) if _name(child) == "java"]


def _told(error: dict[str, Any]) -> str:
    return " ".join(str(error.get(part, "")) for part in ("message", "detail")).strip()[:400]


def _below(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                for child in (task / "children").read_text().split():
                    found.append(int(child))
                    waiting.append(int(child))
    return found


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _rss(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0
