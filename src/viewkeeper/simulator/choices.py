"""What can happen next in a simulated world, where several worlds have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Commit:
    """A source commits its next transaction, and announces it."""

    source: str


@dataclass(frozen=True, order=True)
class Reveal:
    """A committed transaction becomes visible to queries (only with inversions a step of its own)."""

    source: str
    number: int


@dataclass(frozen=True, order=True)
class DeliverQuestion:
    """A question reaches its source, which answers at once."""

    source: str
    index: int


@dataclass(frozen=True, order=True)
class DeliverMessage:
    """A message from a source reaches the warehouse."""

    source: str
    index: int


@dataclass(frozen=True, order=True)
class Deliver:
    """A message arrives; ``index`` is its place among all that are on their way."""

    index: int
