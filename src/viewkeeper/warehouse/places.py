"""Places in a source's order, and which transaction of it each state number stands for. Pure.

A position is a source's own JSON. Of the three kinds that there are, this module knows one thing more than
that it is JSON: which of two comes first (tests hold that against the sources' own word). A position of
another kind can only be found equal.

An epoch's `Places` say at which place of its source every transaction stands, and in which of the epoch's
states it shows. They are stored in the ledger, some bytes for each transaction, in a column that ordinary
reads leave alone; and only where views of another group read one of the sources, too.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from viewkeeper.inflating import inflated

Numbers = npt.NDArray[np.int64]
# Eight bytes for each of an epoch's transactions: eight million of one source, many times what one ever has.
UNPACKED_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True)
class Place:
    """Where a source's log stood: comparable within one history of it."""

    history: str
    order: tuple[int, int]

    def is_upto(self, other: Place) -> bool:
        """Whether it is at most ``other``. Raises `DifferentHistory`."""
        if self.history != other.history:
            raise DifferentHistory
        return self.order <= other.order


class DifferentHistory(Exception):
    """Two places can't be compared: they are of different logs."""


def place_of(position: Any) -> Place:
    """A position of any source. One of an unknown kind is a separate history."""
    match position:
        case {"lsn": int(lsn), "item": int(item), "system": system, "timeline": timeline}:
            return Place(f"{system}/{timeline}", (lsn, item))
        case {"file": str(file), "offset": int(offset)}:
            log, _, number = file.rpartition(".")
            return Place(log, (int(number), offset))
        case {"seq": int(seq), "history": history}:
            return Place(str(history), (seq, int(position.get("schema", 0))))
    return Place(json.dumps(position, sort_keys=True), (0, 0))


@dataclass(frozen=True)
class SourcePlaces:
    """Transactions of one source in its order: the states they show in, and their places."""

    history: str
    # Of each transaction: how many states of the epoch come before its own. Ascending.
    states: Numbers
    majors: Numbers
    minors: Numbers

    def place(self, index: int) -> Place:
        return Place(self.history, (int(self.majors[index]), int(self.minors[index])))

    def first_behind(self, limit: Place, *, inclusive: bool) -> int:
        """The index of the first that is not before the limit, or not up to it when it is inclusive."""
        if self.history != limit.history:
            raise DifferentHistory
        major, minor = limit.order
        low = int(self.majors.searchsorted(major, "left"))
        high = int(self.majors.searchsorted(major, "right"))
        return low + int(
            self.minors[low:high].searchsorted(minor, "right" if inclusive else "left")
        )


@dataclass(frozen=True)
class Places:
    """What one epoch says of all its transactions. ``views``: those of its group, changed or not."""

    views: frozenset[str]
    sources: Mapping[str, SourcePlaces]

    def encoded(self) -> str:
        document = {
            "views": sorted(self.views),
            "sources": {
                name: {
                    "history": each.history,
                    "states": _packed(each.states),
                    "majors": _packed(each.majors),
                    "minors": _packed(each.minors),
                }
                for name, each in self.sources.items()
            },
        }
        return json.dumps(document)

    @classmethod
    def decoded(cls, text: str) -> Places:
        document = json.loads(text)
        sources = {
            name: SourcePlaces(
                each["history"], *(_unpacked(each[part]) for part in ("states", "majors", "minors"))
            )
            for name, each in document["sources"].items()
        }
        return cls(frozenset(document["views"]), sources)


class PlacesMaker:
    """Collects one source's transactions in their order, each with its state."""

    def __init__(self) -> None:
        self._states: list[int] = []
        self._majors: list[int] = []
        self._minors: list[int] = []
        self._histories: set[str] = set()

    def add(self, states: Iterable[int], places: Sequence[Place]) -> None:
        self._states += states
        self._majors += (place.order[0] for place in places)
        self._minors += (place.order[1] for place in places)
        self._histories.update(place.history for place in places)

    def add_marks(self, states: Iterable[int], history: str, marks: Sequence[int]) -> None:
        """The same of places that are plain numbers."""
        self._states += states
        self._majors += marks
        self._minors += [0] * len(marks)
        self._histories.add(history)

    def made(self) -> SourcePlaces | None:
        """None if they are of several histories, which have no common order."""
        if len(self._histories) != 1:
            return None
        columns = (self._states, self._majors, self._minors)
        (history,) = self._histories
        return SourcePlaces(history, *(np.asarray(each, np.int64) for each in columns))


def _packed(values: Numbers) -> str:
    """Ascending numbers differ by little: their steps are small, and pack well."""
    steps = np.diff(values, prepend=0).astype("<i8")
    return base64.b64encode(zlib.compress(steps.tobytes(), 1)).decode()


def _unpacked(text: str) -> Numbers:
    steps = np.frombuffer(inflated(base64.b64decode(text), UNPACKED_BYTES_MAX), "<i8")
    return np.cumsum(steps, dtype=np.int64)
