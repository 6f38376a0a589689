"""Lets the write-ahead log start over now and then.

SQLite fills its WAL from the front again only at a moment at which no connection reads from it. Under load cuts
overlap: one is always open, and the file grows for as long as that lasts. So when it has become large, the
next cut waits until the others are closed, and then a little for the source's writers: it takes two of their
commits, one to bring the pages home and one to begin again.
"""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path

from viewkeeper.sources.sqlite.commits import FRAME_HEADER_BYTES, HEADER_BYTES

WAL_BYTES_MAX = 64 << 20
# For so long a cut is kept waiting: for the others to close, and for the writers.
CLOSING_SECONDS_MAX, RESTART_SECONDS_MAX = 2.0, 1.0
AGAIN_SECONDS = 30.0
_LOOK_SECONDS = 0.01
_SALTS = slice(16, 24)
_FRAME_SALTS = slice(8, 16)


class WalRestart:
    """Knows how many cuts of a database are open in this process."""

    def __init__(self, database: Path) -> None:
        self._wal = Path(f"{database}-wal")
        self._moved = threading.Condition()
        self._open = 0
        self._tried_at = -math.inf

    def enter(self) -> None:
        """A cut is about to be opened; waits, if the log needs it."""
        with self._moved:
            is_time = time.monotonic() - self._tried_at >= AGAIN_SECONDS
            if is_time and is_beyond(self._wal, WAL_BYTES_MAX):
                self._tried_at = time.monotonic()
                if self._moved.wait_for(lambda: not self._open, CLOSING_SECONDS_MAX):
                    self._await_writers()
            self._open += 1

    def leave(self) -> None:
        with self._moved:
            self._open -= 1
            self._moved.notify_all()

    def _await_writers(self) -> None:
        before, until = _header(self._wal), time.monotonic() + RESTART_SECONDS_MAX
        while _header(self._wal) == before and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)


def is_beyond(wal: Path, size: int) -> bool:
    """Whether the log fills this number of bytes of its file, of which more may be left from before."""
    header = _header(wal)
    if len(header) < HEADER_BYTES:
        return False
    frame_bytes = FRAME_HEADER_BYTES + int.from_bytes(header[8:12], "big")
    frame = _read(wal, HEADER_BYTES + size // frame_bytes * frame_bytes, FRAME_HEADER_BYTES)
    return frame[_FRAME_SALTS] == header[_SALTS]


def _header(wal: Path) -> bytes:
    return _read(wal, 0, HEADER_BYTES)


def _read(path: Path, offset: int, size: int) -> bytes:
    """Nothing where there is no file. A WAL may be opened and closed by hand; the database may not."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)
