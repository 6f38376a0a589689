"""Where transactions end: read from the write-ahead log's own file.

Triggers can't know which rows share a transaction; SQLite tells them nothing of the kind. But every
commit is marked in the WAL, and the page of our clock, as each commit left it, says which number the
log had reached. So the numbers at the commits are exactly the ends of transactions.

The caller holds a read transaction, so everything up to its snapshot stays in the file. What the WAL
no longer has when we look (it starts over after a checkpoint) is lost: those transactions come
together as one. That is never a wrong state, only a coarser one. The same holds for damage: a frame counts
only if its checksum, which runs on through all frames before it, is right, as it does for SQLite when it
opens the file. The format of the file is part of SQLite's documented and frozen formats.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
MAGIC = 0x377F0682  # the lowest bit says that checksums are big-endian
VERSION = 3_007_000
PAGE_SIZES = frozenset(1 << power for power in range(9, 17))
CHUNK_BYTES = 1 << 20
_TABLE_LEAF = 0x0D
# A frame's page, the size of the database if it ends a commit, salts, checksum.
_FRAME = struct.Struct(">II8sII")
_HEADER = struct.Struct(">IIII8sII")
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


@dataclass(frozen=True)
class _Generation:
    """One filling of the WAL file, which begins at its start with new salts."""

    salts: bytes
    page_size: int
    big_endian: bool
    # The frame to look at next, and the checksum of the one before it.
    frame: int = 0
    checksum: tuple[int, int] = (0, 0)

    def offset(self, frame: int) -> int:
        return HEADER_BYTES + frame * (FRAME_HEADER_BYTES + self.page_size)


class CommitWatch:
    """Remembers how far the WAL has been read; used by one feed."""

    def __init__(self, database: Path, history: bytes) -> None:
        self._wal = Path(f"{database}-wal")
        self._history = history
        self._generation: _Generation | None = None

    def ends(self, clock_page: int, upto: int) -> list[int]:
        """The log's numbers at commits not seen before, up to the caller's snapshot at ``upto``."""
        try:
            descriptor = os.open(self._wal, os.O_RDONLY)
        except OSError:
            return []
        try:
            return self._read(descriptor, clock_page, upto)
        except OSError:
            return []
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int, clock_page: int, upto: int) -> list[int]:
        current = _generation(os.pread(descriptor, HEADER_BYTES, 0))
        known = self._generation
        found: list[int] = []
        if current is None:
            return []
        if known is not None and known.salts != current.salts:
            # The rest of the finished generation is still there, unless overwritten already. Frames
            # of a writer that was killed may be among it.
            found, _ = self._scan(descriptor, known, clock_page, upto)
        start = known if known is not None and known.salts == current.salts else current
        more, self._generation = self._scan(descriptor, start, clock_page, upto)
        return found + more

    def _scan(
        self, descriptor: int, start: _Generation, clock_page: int, upto: int
    ) -> tuple[list[int], _Generation]:
        found: list[int] = []
        reached, clock = start, b""
        for frame, page, committed, checksum, content in _frames(descriptor, start):
            if page == clock_page:
                clock = bytes(content)
            if not committed or not clock:
                continue
            number = _clock_number(clock, self._history)
            clock = b""
            if number is None:
                continue
            if number > upto:
                break  # after the caller's snapshot, and perhaps never committed
            found.append(number)
            reached = replace(start, frame=frame + 1, checksum=checksum)
        return found, reached


_Frame = tuple[int, int, int, tuple[int, int], memoryview]


def _frames(descriptor: int, generation: _Generation) -> Iterator[_Frame]:
    """The frames of the generation as long as checksums are right: number, page, the database's size if
    it ends a commit, checksum, content. Read, not mapped: the file may shrink."""
    size = FRAME_HEADER_BYTES + generation.page_size
    frame, running = generation.frame, generation.checksum
    while chunk := os.pread(
        descriptor, max(CHUNK_BYTES // size, 1) * size, generation.offset(frame)
    ):
        view = memoryview(chunk)
        sums, (old0, old1) = _sums(chunk, generation)
        for offset, (sum0, sum1) in zip(range(0, len(chunk), size), sums, strict=False):
            page, committed, salts, first, second = _FRAME.unpack_from(chunk, offset)
            (a, b), (c, d) = old0, old1
            s0, s1 = running
            running = (a * s0 + b * s1 + sum0) & 0xFFFFFFFF, (c * s0 + d * s1 + sum1) & 0xFFFFFFFF
            if salts != generation.salts or running != (first, second):
                return
            content = view[offset + FRAME_HEADER_BYTES : offset + size]
            yield frame, page, committed, running, content
            frame += 1
        if len(chunk) < size:
            return


def _generation(header: bytes) -> _Generation | None:
    """What a file's header says; None where SQLite would not believe it either."""
    if len(header) < HEADER_BYTES:
        return None
    magic, version, page_size, _, salts, *checksum = _HEADER.unpack(header)
    if magic & ~1 != MAGIC or version != VERSION or page_size not in PAGE_SIZES:
        return None
    words = struct.unpack(">6I" if magic & 1 else "<6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    if [first, second] != checksum:
        return None
    return _Generation(salts, page_size, bool(magic & 1), 0, (first, second))


_Matrix = tuple[tuple[int, int], tuple[int, int]]


def _sums(chunk: bytes, generation: _Generation) -> tuple[list[list[int]], _Matrix]:
    """What each whole frame adds to the checksum, and what becomes of the checksum before it.

    Two words at a time go into it: s0 += x + s1, then s1 += y + s0. That is linear, so a frame's part is
    a product of its words with fixed weights, which numpy takes for many frames at once.
    """
    size = FRAME_HEADER_BYTES + generation.page_size
    weights, matrix = _weights(generation.page_size)
    count = len(chunk) // size
    frames = np.frombuffer(chunk, np.uint8, count * size).reshape(count, size)
    covered = np.concatenate([frames[:, :8], frames[:, FRAME_HEADER_BYTES:]], axis=1)
    words = covered.view(">u4" if generation.big_endian else "<u4").astype(np.uint32)
    return (words @ weights).tolist(), matrix


@functools.cache
def _weights(page_size: int) -> tuple[npt.NDArray[np.uint32], _Matrix]:
    rows: list[tuple[int, int]] = []
    a, b, c, d = 1, 0, 0, 1  # what the steps after this one do to (s0, s1)
    for _ in range((8 + page_size) // 8):
        # The step's words add (x, x + y).
        rows += [(b, d), (a + b & 0xFFFFFFFF, c + d & 0xFFFFFFFF)]
        a, b, c, d = a + b, a + 2 * b, c + d, c + 2 * d
        a, b, c, d = (each & 0xFFFFFFFF for each in (a, b, c, d))
    return np.array(rows[::-1], np.uint32), ((a, b), (c, d))


def _clock_number(page: bytes, history: bytes) -> int | None:
    """The clock's ``seq`` on its page; None when the page is not the clock's.

    The history's random bytes on it are the proof: after VACUUM the clock has another page.
    """
    if len(page) < 16 or page[0] != _TABLE_LEAF or page[3:5] != b"\0\1" or history not in page:
        return None
    try:
        return _first_number(page)
    except IndexError:
        return None  # it ends before its cell does


def _first_number(page: bytes) -> int | None:
    """The column behind the rowid in the page's first cell; may raise IndexError past its end."""
    cell = int.from_bytes(page[8:10], "big")
    _, cell = _varint(page, cell)  # the payload's size
    _, cell = _varint(page, cell)  # the rowid
    header_bytes, place = _varint(page, cell)
    _, place = _varint(page, place)  # column `one`, which is the rowid: nothing stored
    kind, _ = _varint(page, place)
    if kind in (8, 9):
        return kind - 8  # the constants 0 and 1
    size = _INTEGER_BYTES.get(kind)
    if size is None:
        return None
    body = cell + header_bytes
    if body + size > len(page):
        return None
    return int.from_bytes(page[body : body + size], "big", signed=True)


def _varint(content: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = content[offset + place]
        if place == 8:
            return (value << 8) | byte, offset + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            break
    return value, offset + place + 1
