"""Bytes, harmed: what a line, a disk or an enemy does to a message."""

from __future__ import annotations

import random
from collections.abc import Iterable

# (what, where, value); each is read modulo what is possible.
Harm = tuple[int, int, int]

KINDS = 8
_LENGTHS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def harmed(data: bytes, harms: Iterable[Harm]) -> bytes:
    found = bytearray(data)
    for what, where, value in harms:
        at = where % (len(found) + 1)
        _harm(found, what % KINDS, at, value)
    return bytes(found)


def _harm(found: bytearray, what: int, at: int, value: int) -> None:
    if what == 0 and at < len(found):
        found[at] ^= 1 << value % 8
    elif what == 1 and at < len(found):
        found[at] = value & 0xFF
    elif what == 2:
        del found[at:]
    elif what == 3:
        del found[at : at + 1 + value % 8]
    elif what == 4:
        found[at:at] = value.to_bytes(8, "little")[: 1 + value % 8]
    elif what == 5:
        found[at : at + 4] = _LENGTHS[value % len(_LENGTHS)].to_bytes(4, "big")
    elif what == 6:
        found[at : at + 4] = _LENGTHS[value % len(_LENGTHS)].to_bytes(4, "little")
    elif what == 7:
        found += found[at : at + 1 + value % 64]


def chosen(randomness: random.Random) -> list[Harm]:
    count = randomness.choice((1, 1, 1, 2, 3, 8))
    return [
        (randomness.randrange(KINDS), randomness.randrange(1 << 20), randomness.randrange(1 << 32))
        for _ in range(count)
    ]
