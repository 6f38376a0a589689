"""The world of several views: its channels, and what can happen next in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.simulator.kernel.world import Commit, Reveal

INTEGRATOR, MERGE, WAREHOUSE = "integrator", "merge", "warehouse"


@dataclass(frozen=True)
class Envelope:
    """A message on its way; ``sequence`` counts the messages of its sender to its receiver."""

    sender: str
    to: str
    sequence: int
    message: Any


@dataclass(frozen=True, order=True)
class Deliver:
    """A message arrives; ``index`` is its place among all that are on their way."""

    index: int


@dataclass(frozen=True, order=True)
class Refresh:
    """The period of a view that is refreshed periodically is over."""

    view: str


@dataclass(frozen=True, order=True)
class EndBlock:
    """Nothing more comes: the integrator ends the block that is not full."""


@dataclass(frozen=True, order=True)
class Add:
    """A view is defined; it is loaded as of what the integrator has numbered."""

    view: str


@dataclass(frozen=True, order=True)
class Drop:
    """A view is dropped."""

    view: str


Choice = Commit | Reveal | Deliver | Refresh | EndBlock | Add | Drop


class InOrder:
    """Restores the order in which one sender sent."""

    def __init__(self) -> None:
        self._next = 1
        self._early: dict[int, Any] = {}

    def received(self, envelope: Envelope) -> Iterator[Any]:
        self._early[envelope.sequence] = envelope.message
        while self._next in self._early:
            yield self._early.pop(self._next)
            self._next += 1
