"""What all private servers share: a temporary folder, processes that do not outlive us, and an end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from viewkeeper.errors import UsageError

LOOPBACK = "127.0.0.1"
START_SECONDS_MAX = 300.0
STOP_SECONDS_MAX = 60.0
# Waits until its input ends, that is until we are gone without a word, and then cleans up after us.
_WATCH = """cat >/dev/null; kill -s "$1" -- "-$0" 2>/dev/null; tries=0
while kill -0 "$0" 2>/dev/null && [ $tries -lt 200 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -s KILL -- "-$0" 2>/dev/null; rm -rf "$2" """


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class ServerProcess:
    """A program in its own process group; should we be gone without a word, a watcher ends it."""

    def __init__(
        self,
        command: list[str],
        folder: Path,
        *,
        ends_by: signal.Signals = signal.SIGTERM,
        **options: Any,
    ) -> None:
        """``ends_by``: the signal at which it ends in order; what it says goes to the folder's log."""
        self._ends_by = ends_by
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **options
            )
        self._watcher = subprocess.Popen(
            ["sh", "-c", _WATCH, str(self.pid), ends_by.name.removeprefix("SIG"), str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it without a word, and whatever is in its group."""
        self._unwatch()
        self._signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """End it in order, and what is left of its group then without."""
        self._unwatch()
        self._signal(self._ends_by)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS_MAX)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _unwatch(self) -> None:
        """Before the process's number may belong to somebody else."""
        self._watcher.kill()
        self._watcher.communicate()


class TemporaryServer(ABC):
    """Lives in a temporary folder; ``stop`` (or leaving the ``with``) ends it and removes that."""

    product: ClassVar[str]

    def __init__(self) -> None:
        name = self.product.split()[-1].lower()
        self._folder = Path(tempfile.mkdtemp(prefix=f"viewkeeper-{name}-"))

    @abstractmethod
    def stop(self) -> None:
        """End all of it and remove everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _not_started(self) -> UsageError:
        log = (self._folder / "log").read_text(errors="replace")[-2000:]
        return UsageError("server-not-started", f"the {self.product} did not start", detail=log)


class DatabaseServer(TemporaryServer):
    """A private database server. Starts on construction, listens on its own loopback port."""

    scheme: ClassVar[str]
    superuser: ClassVar[str]
    ends_by: ClassVar[signal.Signals] = signal.SIGTERM
    # Whether a start that fails may succeed a moment later.
    tries_again: ClassVar[bool] = False

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__()
        self.port = free_port()
        self._settings = dict(settings)
        self._process: ServerProcess | None = None
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.stop()
            raise

    def url(self, database: str, user: str = "", password: str = "") -> str:
        """A source URL; the superuser, the default, needs no password."""
        secret = f":{password}" if password else ""
        return f"{self.scheme}://{user or self.superuser}{secret}@{LOOPBACK}:{self.port}/{database}"

    @property
    def data_folder(self) -> Path:
        """What a backup copies while the server is stopped."""
        return self._folder / "data"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Settings for the next start, as if written into the server's configuration."""
        self._settings |= settings

    def start(self) -> None:
        """Start (again) on the same port and wait until it accepts connections."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            self._process = ServerProcess(
                self._command(), self._folder, ends_by=self.ends_by, **self._options()
            )
            while time.monotonic() < deadline and not self._process.has_ended:
                if self._accepts():
                    return
                time.sleep(0.05)
            if not self.tries_again:
                break
            self._process.kill()
        raise self._not_started()

    def kill(self) -> None:
        """End it without a word, as the kernel does when memory runs out; data stays."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def shut_down(self) -> None:
        """Stop in order, dropping clients, and keep the data."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def stop(self) -> None:
        """Stop in order and remove everything."""
        self.shut_down()
        self._remove_folder()

    @abstractmethod
    def _initialise(self) -> None:
        """Make the data folder."""

    @abstractmethod
    def _command(self) -> list[str]:
        """The server, with its settings."""

    def _options(self) -> dict[str, Any]:
        """How the server's process is to be started."""
        return {}

    @abstractmethod
    def _accepts(self) -> bool:
        """Whether it lets somebody in."""
