"""Which transactions a snapshot of PostgreSQL sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class XidSnapshot:
    """A snapshot as ``pg_current_snapshot`` prints it, with 64-bit xids."""

    low: int  # everything below has ended
    high: int  # everything from here on had not begun
    running: frozenset[int]

    @classmethod
    def parsed(cls, text: str) -> XidSnapshot:
        low, high, running = text.split(":")
        return cls(int(low), int(high), frozenset(map(int, filter(None, running.split(",")))))

    def sees(self, xid: int) -> bool:
        """Of a committed transaction."""
        return xid < self.low or (xid < self.high and xid not in self.running)
