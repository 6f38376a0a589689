"""One writer per warehouse: who holds it, and whether he is still alive.

The claim is an entry in the ledger with the next *fencing token*; the writer that appends it owns the
warehouse, and every writer before him fails at his next append, alive or not. So nothing here has
to be right for the data to be safe: ``_lease.json`` only tells a second writer, politely and at
once, that there is a first one.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from viewkeeper.errors import ViewkeeperError, WarehouseError
from viewkeeper.warehouse.beating import Beating
from viewkeeper.warehouse.storage import Storage

FILE = "_lease.json"
TTL_SECONDS = 30.0


@dataclass(frozen=True)
class Process:
    """A process, told apart from every other one on every machine, container and boot."""

    host: str
    machine: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Process:
        return cls(socket.gethostname(), _machine(), os.getpid(), _started(os.getpid()))


@dataclass(frozen=True)
class Holder:
    """What the lease file says."""

    token: int
    process: Process
    beat_at: dt.datetime
    ttl_seconds: float = TTL_SECONDS

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self) | {"beat_at": self.beat_at.isoformat()}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Holder | None:
        """None for a file that is not whole: it protects nothing."""
        try:
            fields = json.loads(content)
            process = Process(**fields.pop("process"))
            beat_at = dt.datetime.fromisoformat(fields.pop("beat_at"))
            return cls(process=process, beat_at=beat_at, **fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def is_held(
    holder: Holder | None, me: Process, now: dt.datetime, is_running: Callable[[Process], bool]
) -> bool:
    """Whether somebody else must be assumed to be writing.

    A process of this machine holds the lease for as long as it runs: that is looked up, and no clock
    and no late beat has a say in it. Of a process elsewhere, its beat is all there is; where the system
    does not tell when a process started, both count, for its number may be another's by now.
    """
    if holder is None:
        return False
    is_here = holder.process.machine == me.machine
    if is_here and not is_running(holder.process):
        return False
    if is_here and holder.process.started:
        return True
    return (now - holder.beat_at).total_seconds() <= holder.ttl_seconds


def is_undatable(holder: Holder, me: Process, now: dt.datetime) -> bool:
    """Whether the beat of a process elsewhere lies in the future: a clock was set back, there or here.

    Up to a beat's lifetime it expires soon enough. Beyond that its date would hold the warehouse for
    as long as the clock was wrong, so it has to be watched instead.
    """
    ahead_seconds = (holder.beat_at - now).total_seconds()
    return holder.process.machine != me.machine and ahead_seconds > holder.ttl_seconds


def is_running(process: Process) -> bool:
    """Whether that very process runs on this machine (a number may be taken again by another)."""
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _started(process.pid) == process.started


def check_free(
    storage: Storage, now: dt.datetime, pause: Callable[[float], object] = time.sleep
) -> None:
    """Raise WarehouseError when another writer holds the warehouse.

    A beat that is dated in the future is watched for one lifetime: the file of a writer that is alive
    changes meanwhile.
    """
    me = Process.current()
    holder = _found(storage)
    if holder is not None and is_undatable(holder, me, now):
        pause(holder.ttl_seconds)
        watched, holder = holder, _found(storage)
        if holder == watched:
            return  # it did not beat: its writer is dead, and the fence holds if not
    if holder is not None and is_held(holder, me, now, is_running):
        process = holder.process
        raise WarehouseError(
            "warehouse-held",
            f"another writer holds the warehouse in {storage.root}",
            detail=f"process {process.pid} on {process.host}, last seen "
            f"{max(0, round((now - holder.beat_at).total_seconds()))} s ago",
            hint=f"stop it; a writer that died is forgotten {holder.ttl_seconds:.0f} s after its "
            "last sign of life",
        )


def _found(storage: Storage) -> Holder | None:
    content = storage.read_bytes(FILE)
    return None if content is None else Holder.from_bytes(content)


class Heartbeat:
    """Writes the lease file now and then until closed. Its failures do not stop the writer.

    ``apart``: also from a process beside this one, which beats on while Python does not get to it here.
    """

    def __init__(
        self,
        storage: Storage,
        token: int,
        clock: Callable[[], dt.datetime],
        ttl_seconds: float = TTL_SECONDS,
        *,
        apart: bool = False,
    ) -> None:
        self._storage = storage
        self._token = token
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._closing = threading.Event()
        self.beat()
        self.beating = self._started_apart() if apart else None
        self._thread = threading.Thread(target=self._run, name="viewkeeper-lease", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Show a sign of life."""
        self._storage.write_bytes(self._holder().to_bytes(), FILE)

    def _holder(self) -> Holder:
        return Holder(self._token, Process.current(), self._clock(), self._ttl_seconds)

    def _started_apart(self) -> Beating:
        storage = self._storage
        return Beating(
            json.loads(self._holder().to_bytes()),
            path=storage.path(FILE) if storage.is_local else None,
            root=storage.root,
            options=storage.options,
            name=FILE,
        )

    def _run(self) -> None:
        while not self._closing.wait(self._ttl_seconds / 3):
            try:
                if not self._is_mine():
                    return  # another writer took over; the ledger tells us when we commit
                self.beat()
            except ViewkeeperError:
                continue  # a full disk: the next beat may succeed, and the fence holds anyway

    def _is_mine(self) -> bool:
        holder = _found(self._storage)
        return holder is None or holder.token <= self._token

    def close(self) -> None:
        """Stop, and give the lease back if it is still ours."""
        self._closing.set()
        self._thread.join()
        if self.beating is not None:
            self.beating.close()
        try:
            if self._is_mine():
                self._storage.remove_file(self._storage.path(FILE))
        except ViewkeeperError:
            return  # it will be found dead


def _machine() -> str:
    """One name per boot and process-number space; containers on one host differ."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """When the process started, in ticks since boot; empty where the system does not tell.

    A process that ended but was not yet reaped by its parent counts as ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The name in parentheses may hold anything, so fields are counted from its end.
    state, *fields = stat.rpartition(")")[2].split()
    return "ended" if state in "ZX" else fields[18]
