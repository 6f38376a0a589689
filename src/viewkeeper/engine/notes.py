"""When positions that bring no rows are written to the ledger.

Positions without rows would fill the ledger, so they are noted now and then only; at once where somebody waits
for one, or where what was passed must not be met again.
"""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.engine.unions import Compare
from viewkeeper.sources.interface import Position


class Notes:
    """What the ledger says, and which positions somebody waits for."""

    def __init__(self, noted: Mapping[str, Position], compare: Compare) -> None:
        self.noted = dict(noted)
        self.noted_at = 0.0
        # Whether the next chance to note is taken in any case.
        self.is_soon = False
        self._compare = compare
        self._awaited: dict[str, Position] = {}

    def want(self, source: str, position: Position) -> None:
        known = self._awaited.get(source)
        if known is None or self._compare(source, known, position) < 0:
            self._awaited[source] = position

    def is_due(self, passed: Mapping[str, Position], now: float, idle_seconds: float) -> bool:
        """Whether the ledger is to say at once what was passed; one entry serves all who wait."""
        is_old = now - self.noted_at >= idle_seconds
        return (
            is_old
            or self.is_soon
            or any(
                self._compare(name, passed[name], position) >= 0
                for name, position in self._awaited.items()
                if name in passed
            )
        )

    def note(self, reached: Mapping[str, Position], now: float) -> None:
        """The ledger says so now."""
        self.noted, self.noted_at = dict(reached), now
        self.is_soon = False
        self._awaited = {
            name: position
            for name, position in self._awaited.items()
            if name in reached and self._compare(name, reached[name], position) < 0
        }

    def has(self, source: str, position: Position) -> bool:
        """Whether the ledger says that the views have this position."""
        noted = self.noted.get(source)
        return noted is not None and self._compare(source, noted, position) >= 0
