"""The dashboard of ``run --ui``: a process of its own, so that nothing done to it is done to the run.

The run starts it, hears its address, and starts it again when it ends by itself; it ends when its input does,
that is when the run closes it or dies in any way. It knows of the run what every dashboard knows: the files
beside the project and the ledger.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

from viewkeeper import children
from viewkeeper.errors import UsageError
from viewkeeper.run_events import OnEvent, Warned

# How soon it is started again, twice as late each time up to the longest.
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 1.0, 60.0
END_SECONDS_MAX = 5.0


class DashboardProcess:
    """Serving when constructed. ``tell`` gets a warning whenever the process has ended by itself."""

    def __init__(
        self,
        folder: Path,
        port: int | None,
        token: str | None,
        tell: OnEvent,
    ) -> None:
        """Raises UsageError where it can't listen. ``port`` 0 takes any, None the usual one."""
        self._folder = folder.absolute()
        self._tell = tell
        self._closing = threading.Event()
        self._process, told = self._started(port, token)
        if "error" in told:
            _end(self._process)
            raise _refused(told["error"])
        self.url = str(told["url"])
        # The same place when it has to be started again: a browser looks for it there.
        self._again = int(told["port"]), told["token"]
        self._attendant = threading.Thread(target=self._attend, name="dashboard", daemon=True)
        self._attendant.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _started(
        self, port: int | None, token: str | None
    ) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "viewkeeper.dashboard.beside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is the run's
            env=children.environment(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        # By a pipe: others may read a command line, and root an environment; token and passwords are secrets.
        order = {
            "folder": str(self._folder),
            "port": port,
            "token": token,
            "environment": dict(os.environ),
        }
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        return process, _answer(process.stdout.readline())

    def _attend(self) -> None:
        seconds = AGAIN_SECONDS
        while True:
            code = self._process.wait()
            if self._closing.is_set():
                return
            _end(self._process)  # its pipes
            told = f"the dashboard has ended ({code}); the run goes on, and starts it again in {seconds:g} s"
            self._tell(Warned(told, "dashboard-ended"))
            if self._closing.wait(seconds):
                return
            seconds = min(2 * seconds, AGAIN_SECONDS_MAX)
            with contextlib.suppress(OSError):  # no process, no memory: tried again
                self._process, _ = self._started(*self._again)
            if self._closing.is_set():
                _end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        _end(self._process)
        self._attendant.join(END_SECONDS_MAX)


def _end(process: subprocess.Popen[str]) -> None:
    """In order, by the end of its input; by force if it does not."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _answer(line: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {"error": {}}


def _refused(told: dict[str, str]) -> UsageError:
    if not told:
        return UsageError(
            "dashboard-failed",
            "the dashboard's process did not start",
            hint="viewkeeper ui says why",
        )
    return UsageError(told["code"], told["message"], detail=told["detail"], hint=told["hint"])


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they mean the run, which ends us
    order = json.loads(sys.stdin.readline() or "null")
    if order is None:
        return
    os.environ.update(order["environment"])
    from viewkeeper.dashboard.server import PORT, DashboardServer
    from viewkeeper.project.config import read_project

    port = PORT if order["port"] is None else int(order["port"])
    try:
        server = DashboardServer(
            read_project(Path(order["folder"])), port=port, token=order["token"]
        )
    except UsageError as error:
        _say({"error": error.as_dict()})
        return
    with server:
        _say({"url": server.url, "port": server.port, "token": server.access.token})
        sys.stdin.read()


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
