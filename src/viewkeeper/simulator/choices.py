"""How messages arrive in the worlds that do not stand on the kernel yet."""

from __future__ import annotations

from dataclasses import dataclass


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
