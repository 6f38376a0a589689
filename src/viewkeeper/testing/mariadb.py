"""A private MariaDB server from the machine's own ``mariadbd`` (Debian: ``mariadb-server``).

Its data lies in a temporary folder and it listens on its own loopback port; the system's service is
neither used nor touched. `mariadbd_missing` says why there can be none, for tests that skip by name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql

from viewkeeper.errors import UsageError

START_SECONDS_MAX = 60.0
SUPERUSER = "root"

_SETTINGS = {
    "log-bin": "binlog",
    "server-id": "1",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "64M",
    "bind-address": "127.0.0.1",
    "max-connections": "100",
    "performance-schema": "OFF",
    "pid-file": "mariadbd.pid",
    "character-set-server": "utf8mb4",
}
# As durable as the exactness of a feed asks for, and what to give up when only kill −9 is to be met:
# the operating system keeps what was written.
_DURABLE = {"sync-binlog": "1", "innodb-flush-log-at-trx-commit": "1"}
_QUICK = {"sync-binlog": "0", "innodb-flush-log-at-trx-commit": "2", "innodb-doublewrite": "OFF"}


def mariadbd_missing() -> str:
    """Why no private server can be started here; empty when one can."""
    if _found("mariadbd") is None or _found("mariadb-install-db") is None:
        return "mariadbd is not installed (make mariadb installs it)"
    return ""


class PrivateMariaDB:
    """Starts on construction; ``stop`` (or leaving the ``with``) ends it and removes its folder."""

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        missing = mariadbd_missing()
        if missing:
            raise UsageError("server-not-installed", "there is no MariaDB server", detail=missing)
        self.port = _free_port()
        self._settings = _SETTINGS | (_DURABLE if durable else _QUICK) | dict(settings or {})
        self._folder = Path(tempfile.mkdtemp(prefix="viewkeeper-mariadb-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.stop()
            raise

    def url(self, database: str, user: str = SUPERUSER, password: str = "") -> str:
        """A source URL; the superuser gets in without a password from this machine."""
        secret = f":{password}" if password else ""
        return f"mariadb://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection:
        """A superuser's connection of its own."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=SUPERUSER, database=database, charset="utf8mb4",
            **options,
        )  # fmt: skip

    @property
    def data_folder(self) -> Path:
        """What a backup copies while the server is stopped."""
        return self._folder / "data"

    def start(self) -> None:
        """Start (again) on the same port and wait until it accepts connections."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, start_new_session=True
            )
        self._await_ready(self._process)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Settings for the next start, as if written into the server's configuration."""
        self._settings = self._settings | dict(settings)

    def kill(self) -> None:
        """End the server at once, without a word to its clients or its files."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def shut_down(self) -> None:
        """Stop in order and keep the data."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def stop(self) -> None:
        """End it and remove everything; nobody needs what an orderly shutdown would write."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> PrivateMariaDB:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _command(self) -> list[str]:
        command = [str(_found("mariadbd")), "--no-defaults", f"--datadir={self._folder / 'data'}"]
        command += [f"--port={self.port}", f"--socket={self._folder / 'socket'}"]
        command += [f"--tmpdir={self._folder}", *_account()]
        return command + [f"--{n}={v}" for n, v in self._settings.items()]

    def _initialise(self) -> None:
        install = subprocess.run(
            [
                str(_found("mariadb-install-db")), "--no-defaults", *_account(), "--skip-test-db",
                f"--datadir={self._folder / 'data'}", "--auth-root-authentication-method=normal",
            ],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if install.returncode:
            raise UsageError(
                "server-not-started",
                "the private MariaDB could not be initialised",
                detail=(install.stdout + install.stderr)[-2000:],
            )

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            try:
                self.connect(connect_timeout=5).close()
                return
            except pymysql.MySQLError:
                time.sleep(0.05)
        log = (self._folder / "log").read_text(errors="replace")[-2000:]
        raise UsageError("server-not-started", "the private MariaDB did not start", detail=log)


def _found(program: str) -> str | None:
    # Debian keeps servers in sbin, which is not on everybody's path.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return shutil.which(program, path=path)


def _account() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
