"""Bytes that others wrote, read within their bounds; and what becomes of those that can't be read.

A `ByteReader` moves over one message. Each length is compared with what is left before anything is taken,
so that a false one asks for no memory and reads nothing of the next message; `finish` says that nothing is
left over. Decoders that read rows by the thousand keep a plain index instead and compare it with the
message's end once: an index only grows, so the end is right only if every step was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from viewkeeper.errors import SourceError, rebuild_command

# Bytes at one place that can't be read are asked for again so often; a torn read of the network passes.
READS_MAX = 3

_LENGTH_CODED = {252: 2, 253: 3, 254: 8}


class Malformed(Exception):
    """The bytes are no message that we understand."""


class ByteReader:
    """The bytes of one message from ``at`` on; numbers are of one byte order."""

    __slots__ = ("_data", "_order", "at")

    def __init__(self, data: bytes, order: Literal["big", "little"], at: int = 0) -> None:
        self._data, self._order, self.at = data, order, at

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, size: int) -> bytes:
        start, end = self.at, self.at + size
        if not start <= end <= len(self._data):
            raise Malformed(
                f"{size} bytes are expected at byte {start}, {max(self.left, 0)} are left"
            )
        self.at = end
        return self._data[start:end]

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), self._order, signed=signed)

    def length_coded(self) -> int:
        """MariaDB's: one byte, or a byte that says how many follow."""
        first = self.number(1)
        if first < 251:
            return first
        if first not in _LENGTH_CODED:
            raise Malformed(f"a length starts with the unknown byte {first} at byte {self.at - 1}")
        return self.number(_LENGTH_CODED[first])

    def text(self, size: int) -> str:
        start, data = self.at, self.take(size)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Malformed(f"a text at byte {start} is no UTF-8: {error.reason}") from error

    def terminated(self) -> str:
        """A text up to its zero byte."""
        end = self._data.find(b"\0", self.at)
        if end < 0:
            raise Malformed(f"a text at byte {self.at} has no end")
        found = self.text(end - self.at)
        self.at = end + 1
        return found

    def rest(self) -> bytes:
        return self.take(max(self.left, 0))

    def finish(self) -> None:
        if self.left:
            raise Malformed(f"{self.left} bytes are left over behind byte {self.at}")


class Damage:
    """Which places of a source's feed could not be read; kept while the feeds come and go."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._reads: dict[str, int] = {}

    @contextmanager
    def at(self, place: Callable[[], str]) -> Iterator[None]:
        """What is malformed inside, as a SourceError that names the place."""
        try:
            yield
        except Malformed as error:
            raise self.error(place(), str(error)) from error

    def error(self, place: str, detail: str) -> SourceError:
        """Retryable at first: the same bytes are read again from the last position."""
        reads = self._reads[place] = self._reads.get(place, 0) + 1
        is_lasting = reads >= READS_MAX
        return SourceError(
            "damaged-message",
            f"the feed of source {self._source} sent what can't be read, behind {place}",
            source=self._source,
            retryable=not is_lasting,
            detail=f"{detail} (read {reads} times)",
            hint=f"look for damage in the server's log, then {rebuild_command(self._source)}"
            if is_lasting
            else "nothing is lost: a run reads it again by itself",
        )
