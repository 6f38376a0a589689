"""A private MariaDB server from the machine's own ``mariadbd`` (Debian: ``mariadb-server``).

Its data lies in a temporary folder and it listens on its own loopback port; the system's service is
neither used nor touched. `mariadbd_missing` says why there can be none, for tests that skip by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pymysql

from viewkeeper.errors import UsageError
from viewkeeper.testing.server import LOOPBACK, DatabaseServer

SUPERUSER = "root"

_SETTINGS = {
    "log-bin": "binlog",
    "server-id": "1",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "64M",
    "bind-address": LOOPBACK,
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


class PrivateMariaDB(DatabaseServer):
    """Starts on construction; ``stop`` (or leaving the ``with``) ends it and removes its folder."""

    product = "private MariaDB"
    scheme = "mariadb"
    superuser = SUPERUSER

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        missing = mariadbd_missing()
        if missing:
            raise UsageError("server-not-installed", "there is no MariaDB server", detail=missing)
        super().__init__(_SETTINGS | (_DURABLE if durable else _QUICK) | dict(settings or {}))

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection:
        """A separate connection of a superuser."""
        return pymysql.connect(
            host=LOOPBACK, port=self.port, user=SUPERUSER, database=database, charset="utf8mb4",
            **options,
        )  # fmt: skip

    def stop(self) -> None:
        """End it and remove everything; what an orderly shutdown would write is not needed."""
        self.kill()
        super().stop()

    def _command(self) -> list[str]:
        command = [str(_found("mariadbd")), "--no-defaults", f"--datadir={self.data_folder}"]
        command += [f"--port={self.port}", f"--socket={self._folder / 'socket'}"]
        command += [f"--tmpdir={self._folder}", *_account()]
        return command + [f"--{n}={v}" for n, v in self._settings.items()]

    def _initialise(self) -> None:
        install = subprocess.run(
            [
                str(_found("mariadb-install-db")), "--no-defaults", *_account(), "--skip-test-db",
                f"--datadir={self.data_folder}", "--auth-root-authentication-method=normal",
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

    def _accepts(self) -> bool:
        try:
            self.connect(connect_timeout=5).close()
        except pymysql.MySQLError:
            return False
        return True


def _found(program: str) -> str | None:
    # Debian keeps servers in sbin, which is not on everybody's path.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return shutil.which(program, path=path)


def _account() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []
