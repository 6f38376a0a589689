"""The lease's beat from a process beside the writer's: this file as a program.

A thread of the writer can beat only while Python lets it: one call that keeps the interpreter for itself (a
text pattern that backtracks, say) would let the lease expire under a writer that is alive. This process
waits for nothing of it. It ends when its input does, that is when the writer closes it or dies in any way;
and it stops beating once another writer has the lease.

A local warehouse is written to with the standard library alone: the process stays small.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Protocol

END_SECONDS_MAX = 2.0


class _File(Protocol):
    """Where the lease lies. Both may raise any exception where the place can't be reached."""

    def read(self) -> bytes | None: ...

    def write(self, content: bytes) -> None: ...


class _LocalFile:
    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> bytes | None:
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, content: bytes) -> None:
        # A draft of our own: the writer's thread beats too.
        draft = f"{self._path}.{os.getpid()}.new"
        with open(draft, "wb") as file:
            file.write(content)
        os.replace(draft, self._path)


class _StoredFile:
    """In an object store; loads what is needed for that."""

    def __init__(self, root: str, options: Mapping[str, str], name: str) -> None:
        from viewkeeper.warehouse.storage import Storage

        self._storage, self._name = Storage(root, options), name

    def read(self) -> bytes | None:
        return self._storage.read_bytes(self._name)

    def write(self, content: bytes) -> None:
        self._storage.write_bytes(content, self._name)


class Beating:
    """The process, from the writer's side. Does without it where it can't be started."""

    def __init__(
        self,
        holder: Mapping[str, Any],
        *,
        path: str | None,
        root: str,
        options: Mapping[str, str],
        name: str,
    ) -> None:
        """``holder`` is what the file says, ``path`` where it lies on this machine, if it does.

        Options may be secrets: they go through a pipe, for everybody can read a command line.
        """
        from viewkeeper.children import environment  # late: as a program, this file has no packages

        order = {
            "holder": dict(holder),
            "path": path,
            "root": root,
            "options": dict(options),
            "name": name,
        }
        # As a file, and for a local warehouse without installed packages: loading ours would make it
        # ten times as large.
        command = [sys.executable, "-P", *(["-S"] if path is not None else []), __file__]
        self._process: subprocess.Popen[bytes] | None = None
        # Its failure is no reason not to write: the fence holds, and the thread beats on.
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment(),
            )
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(order).encode() + b"\n")
                self._process.stdin.flush()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End it, and wait for that: afterwards nothing writes the file any more."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def beaten(content: bytes | None, holder: Mapping[str, Any], now: dt.datetime) -> bytes | None:
    """The file with a new beat; None when another writer has it. Pure."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        if content is not None and int(json.loads(content)["token"]) > int(holder["token"]):
            return None
    return json.dumps({**holder, "beat_at": now.isoformat()}).encode()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they mean the writer, which ends us
    order = json.loads(sys.stdin.buffer.raw.readline() or b"null")  # type: ignore[union-attr]
    if order is None:
        return
    holder = order["holder"]
    file: _File = (
        _LocalFile(order["path"])
        if order["path"] is not None
        else _StoredFile(order["root"], order["options"], order["name"])
    )
    # Until there is something to read, and that can be the end of the input only.
    while not select.select([sys.stdin], [], [], float(holder["ttl_seconds"]) / 3)[0]:
        with contextlib.suppress(
            Exception
        ):  # the next beat may succeed, and the fence holds anyway
            content = beaten(file.read(), holder, dt.datetime.now(dt.UTC))
            if content is None:
                return
            file.write(content)


if __name__ == "__main__":
    main()
