"""Where transactions end: read from the write-ahead log's own file.

Triggers can't know which rows share a transaction; SQLite tells them nothing of the kind. But every
commit is marked in the WAL, and the page of our clock, as each commit left it, says which number the
log had reached. So the numbers at the commits are exactly the ends of transactions.

The caller holds a read transaction, so everything up to its snapshot stays in the file. What the WAL
no longer has when we look (it starts over after a checkpoint) is lost: those transactions come
together as one. That is never a wrong state, only a coarser one. The format of the file is part of
SQLite's documented and frozen formats.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
MAGIC = 0x377F0682  # the lowest bit says that checksums are big-endian
# More frames of a finished generation than this are not checked one by one.
TAIL_FRAMES_MAX = 5_000
CHUNK_BYTES = 1 << 20
_TABLE_LEAF = 0x0D
# A frame's page, the size of the database if it ends a commit, salts, checksum.
_FRAME, _TWO = struct.Struct(">II8sII"), struct.Struct(">II")
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
            # of a writer that was killed may be among it, so that here checksums are needed; within
            # our snapshot they are not.
            found, _ = self._scan(descriptor, known, clock_page, upto, checked=True)
        start = known if known is not None and known.salts == current.salts else current
        more, self._generation = self._scan(descriptor, start, clock_page, upto, checked=False)
        return found + more

    def _scan(
        self, descriptor: int, start: _Generation, clock_page: int, upto: int, checked: bool
    ) -> tuple[list[int], _Generation]:
        found: list[int] = []
        reached, reached_checksum, running = start.frame, start.checksum, start.checksum
        clock = b""
        for frame, header, content in _frames(descriptor, start):
            page, committed, _, first, second = header
            if checked:
                if frame - start.frame >= TAIL_FRAMES_MAX:
                    break
                running = _checksum(_TWO.pack(page, committed) + content, running, start.big_endian)
                if running != (first, second):
                    break
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
            reached, reached_checksum = frame + 1, (first, second)
        return found, replace(start, frame=reached, checksum=reached_checksum)


def _frames(
    descriptor: int, generation: _Generation
) -> Iterator[tuple[int, tuple[int, int, bytes, int, int], memoryview]]:
    """The frames of the generation: number, header, page. Read, not mapped: the file may shrink."""
    size = FRAME_HEADER_BYTES + generation.page_size
    frame = generation.frame
    while chunk := os.pread(
        descriptor, max(CHUNK_BYTES // size, 1) * size, generation.offset(frame)
    ):
        view = memoryview(chunk)
        for offset in range(0, len(chunk) - size + 1, size):
            header = _FRAME.unpack_from(chunk, offset)
            if header[2] != generation.salts:
                return
            yield frame, header, view[offset + FRAME_HEADER_BYTES : offset + size]
            frame += 1
        if len(chunk) < size:
            return


def _generation(header: bytes) -> _Generation | None:
    if len(header) < HEADER_BYTES:
        return None
    magic, _, page_size = struct.unpack_from(">III", header)
    if magic & ~1 != MAGIC:
        return None
    checksum = struct.unpack_from(">II", header, 24)
    return _Generation(header[16:24], page_size, bool(magic & 1), 0, checksum)


def _checksum(content: bytes, seed: tuple[int, int], big_endian: bool) -> tuple[int, int]:
    first, second = seed
    words = struct.unpack(f"{'>' if big_endian else '<'}{len(content) // 4}I", content)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _clock_number(page: bytes, history: bytes) -> int | None:
    """The clock's ``seq`` on its page; None when the page is not the clock's.

    The history's random bytes on it are the proof: after VACUUM the clock has another page.
    """
    if len(page) < 16 or page[0] != _TABLE_LEAF or page[3:5] != b"\0\1" or history not in page:
        return None
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
