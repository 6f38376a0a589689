"""The captured bytes: tests/corpus/wire, made by `fuzzing.capture`."""

from __future__ import annotations

import functools
import json
import struct
from pathlib import Path
from typing import Any, TypedDict

FOLDER = Path(__file__).parents[1] / "corpus" / "wire"


class History(TypedDict):
    """What a SQLite database of the corpus says of itself."""

    history: str
    clock_page: int
    ends: list[int]


def save_messages(name: str, messages: list[bytes]) -> None:
    """Each with its length in four bytes in front."""
    parts = [struct.pack(">I", len(message)) + message for message in messages]
    (FOLDER / f"{name}.bin").write_bytes(b"".join(parts))


@functools.cache
def messages(name: str) -> tuple[bytes, ...]:
    data, at, found = content(f"{name}.bin"), 0, []
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return tuple(found)


@functools.cache
def events() -> tuple[bytes, ...]:
    """Events of the binary log, headers and checksums included."""
    data, at, found = content("mariadb.bin"), 4, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 9)
        found.append(data[at : at + size])
        at += size
    return tuple(found)


def content(file: str) -> bytes:
    return (FOLDER / file).read_bytes()


@functools.cache
def facts(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())
