"""SQLite's write-ahead log under attack: what SQLite does not believe, we must not believe either."""

from __future__ import annotations

import functools
import sqlite3
import struct
import tempfile
from pathlib import Path

from fuzzing import corpus
from viewkeeper.sources.sqlite.commits import CommitWatch

NAMES = ("sqlite-512", "sqlite-4096")
# As it is, or with checksums made right again, so that the bytes behind them are believed.
AS_IT_IS, SEALED = range(2)


def seeds() -> list[bytes]:
    """Which database, which way, and its log; also with big-endian checksums."""
    found = []
    for number, name in enumerate(NAMES):
        wal = corpus.content(f"{name}.wal")
        found += [bytes([number, way]) + wal for way in (AS_IT_IS, SEALED)]
        big = resealed(wal[:3] + b"\x83" + wal[4:])
        found.append(bytes([number, AS_IT_IS]) + big)
    return found


def attack(data: bytes) -> None:
    """Raises AssertionError, or whatever else the reader raised that it may not."""
    if len(data) < 2:
        return
    name, wal = NAMES[data[0] % 2], data[2:]
    if data[1] % 2 == SEALED:
        wal = resealed(wal)
    told = corpus.facts("sqlite")["histories"][name]
    with _copy(name, wal) as path:
        watch = CommitWatch(path, bytes.fromhex(told["history"]))
        found = watch.ends(told["clock_page"], 2**62)
        assert watch.ends(told["clock_page"], 2**62) == [], "an end was told twice"
        if data[1] % 2 == AS_IT_IS:
            reached = _reached(path)
            wanted = [number for number in told["ends"] if number <= reached]
            assert reached < 0 or found == wanted, (found, wanted)


class _copy:
    """The database with this log, in a folder that goes away."""

    def __init__(self, name: str, wal: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=_memory())
        self.path = Path(self._folder.name) / "w.db"
        self.path.write_bytes(_database(name))
        Path(f"{self.path}-wal").write_bytes(wal)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


@functools.cache
def _database(name: str) -> bytes:
    return corpus.content(f"{name}.db")


@functools.cache
def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _reached(path: Path) -> int:
    """How far SQLite itself finds the database to have come; -1 where it can't open it (another's log)."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        return int(db.execute("SELECT seq FROM _viewkeeper_clock").fetchone()[0])
    except sqlite3.DatabaseError:
        return -1
    finally:
        db.close()


def resealed(wal: bytes) -> bytes:
    """The same content with right checksums, by the manual's own loop."""
    if len(wal) < 32:
        return wal
    order = ">" if wal[3] & 1 else "<"
    (page_size,) = struct.unpack_from(">I", wal, 8)
    running = _summed(wal[:24], (0, 0), order)
    found = bytearray(wal[:24] + struct.pack(">II", *running))
    size = 24 + page_size
    if page_size > 65536 or page_size % 8:
        return bytes(found) + wal[32:]
    for at in range(32, len(wal) - size + 1, size):
        head, page = wal[at : at + 8], wal[at + 24 : at + size]
        running = _summed(head + page, running, order)
        found += head + wal[at + 8 : at + 16] + struct.pack(">II", *running) + page
    return bytes(found)


def _summed(data: bytes, running: tuple[int, int], order: str) -> tuple[int, int]:
    s0, s1 = running
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for place in range(0, len(words), 2):
        s0 = (s0 + words[place] + s1) & 0xFFFFFFFF
        s1 = (s1 + words[place + 1] + s0) & 0xFFFFFFFF
    return s0, s1
