"""pgoutput once more, by the letter of PostgreSQL's manual ("Logical Replication Message Formats").

Slow and plain, and nothing of it is shared with the decoder that it is compared with.
"""

from __future__ import annotations

import io
from typing import Any


class Wrong(Exception):
    """The message is not as the manual says."""


class _Bytes(io.BytesIO):
    def exactly(self, count: int) -> bytes:
        here = self.tell()
        self.seek(0, io.SEEK_END)
        size = self.tell()
        self.seek(here)
        if count > size - here:
            raise Wrong(f"{count} bytes wanted, {size - here} there")
        return self.read(count)

    def int(self, count: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.exactly(count), "big", signed=signed)

    def string(self) -> bytes:
        found = b""
        while (byte := self.exactly(1)) != b"\0":
            found += byte
        return found

    def tuple_data(self, columns: int) -> list[Any]:
        if self.int(2) != columns:
            raise Wrong("another number of columns")
        values: list[Any] = []
        for _ in range(columns):
            kind = self.exactly(1)
            if kind == b"n":
                values.append(None)
            elif kind == b"u":
                values.append(...)
            elif kind == b"t":
                values.append(self.exactly(self.int(4)))
            else:
                raise Wrong(f"kind {kind!r}")
        return values

    def end(self) -> None:
        if self.read(1):
            raise Wrong("more than one message")


def rows(payload: bytes, columns: int) -> tuple[list[Any] | None, list[Any] | None]:
    """Old and new row of Insert, Update or Delete, as texts; values left in TOAST filled in."""
    data = _Bytes(payload)
    kind, _, letter = data.exactly(1), data.int(4), data.exactly(1)
    old = new = None
    if kind == b"I" and letter == b"N":
        new = data.tuple_data(columns)
    elif kind == b"U" and letter == b"O":
        old = data.tuple_data(columns)
        if data.exactly(1) != b"N":
            raise Wrong("no new row")
        new = data.tuple_data(columns)
    elif kind == b"D" and letter == b"O":
        old = data.tuple_data(columns)
    else:
        raise Wrong(f"{kind!r} with {letter!r}")
    data.end()
    if (old is not None and ... in old) or (old is None and new is not None and ... in new):
        raise Wrong("nothing to take an unchanged value from")
    if old is not None and new is not None:
        new = [before if after is ... else after for before, after in zip(old, new, strict=True)]
    return old, new


def relation(payload: bytes) -> tuple[Any, ...]:
    data = _Bytes(payload)
    data.exactly(1)
    head = data.int(4), data.string(), data.string(), data.exactly(1)
    columns = [
        (data.exactly(1), data.string(), data.int(4), data.int(4, signed=True))
        for _ in range(data.int(2))
    ]
    data.end()
    return (*head, [column[1:] for column in columns])


def truncate(payload: bytes) -> list[int]:
    data = _Bytes(payload)
    data.exactly(1)
    count, _ = data.int(4), data.int(1)
    found = []
    while len(found) < count:
        found.append(data.int(4))
    data.end()
    return found


def message(payload: bytes) -> tuple[Any, ...]:
    data = _Bytes(payload)
    data.exactly(1)
    head = data.int(1) & 1, data.int(8), data.string()
    content = data.exactly(data.int(4))
    data.end()
    return (*head, content)
