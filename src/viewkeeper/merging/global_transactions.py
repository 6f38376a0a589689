"""Transactions over several sources, put together from their parts.

MVC (1997), section 6.2, asks that all updates of a global transaction show in one state. The sources
know nothing of each other; an application ties the parts by an id that it writes in each, with the
number of parts. The integrator holds a part back, and whatever its source commits after it, until all
parts are here; then they are numbered one after the other, as one unit, and no view has seen any.

Two sources may have committed two global transactions in different orders. Then neither can go first:
both form one unit, with whatever lies between them.

A part may never come. Time comes in as an event; when a transaction is overdue there is a warning, and
a policy says whether its parts are shown one by one or wait on. Knows neither clocks nor contents.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

ABANDONED_MAX = 10_000


@dataclass(frozen=True)
class Tie:
    """What the application wrote: an id, and in how many transactions."""

    id: str
    parts: int


class Overdue(enum.Enum):
    """What becomes of a global transaction that is not complete in time."""

    SHOW_PARTS = "show-parts"
    KEEP_WAITING = "keep-waiting"


@dataclass(frozen=True)
class Part:
    """A transaction of one source, tied or not; ``transaction`` is handed through."""

    source: str
    transaction: Any
    tie: Tie | None = None


# -- events and actions ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PartArrived:
    """The next transaction of its source."""

    part: Part
    now_seconds: float


@dataclass(frozen=True)
class TimePassed:
    now_seconds: float


@dataclass(frozen=True)
class NumberUnit:
    """Number these transactions now, in this order; they must show in one state."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Warn:
    """Tell somebody. Codes: ``global-transaction-incomplete``, ``global-transaction-late-part``."""

    code: str
    id: str
    message: str


Action = NumberUnit | Warn


@dataclass
class _Open:
    """A global transaction of which some part is missing or held back."""

    tie: Tie
    since_seconds: float
    arrived: int = 0
    warned: bool = False

    @property
    def is_complete(self) -> bool:
        return self.arrived >= self.tie.parts


class GlobalTransactions:
    """Holds parts back until they are complete. On a stream without ties nothing ever waits."""

    def __init__(self, timeout_seconds: float, overdue: Overdue = Overdue.SHOW_PARTS) -> None:
        self.timeout_seconds = timeout_seconds
        self.overdue = overdue
        self._queues: dict[str, deque[Part]] = {}
        self._open: dict[str, _Open] = {}
        # Ids that were given up, oldest first: a part that comes later is known as late.
        self._abandoned: dict[str, None] = {}

    @property
    def held(self) -> int:
        """How many transactions wait."""
        return sum(len(queue) for queue in self._queues.values())

    def holds(self, source: str) -> bool:
        """Whether some transaction of that source waits."""
        return bool(self._queues.get(source))

    def forget(self, source: str) -> None:
        """What waits of that source comes once more."""
        for part in self._queues.pop(source, ()):
            if part.tie is not None:
                known = self._open[part.tie.id]
                known.arrived -= 1
                if not known.arrived:
                    del self._open[part.tie.id]

    def step(self, event: PartArrived | TimePassed) -> tuple[Action, ...]:
        match event:
            case PartArrived(part, now):
                return tuple(self._arrived(part, now))
            case TimePassed(now):
                return tuple(self._time_passed(now))

    def _arrived(self, part: Part, now: float) -> Iterator[Action]:
        tie = part.tie
        if tie is not None and tie.id in self._abandoned:
            message = f"a part of {tie.id} came from {part.source} after the others were shown"
            yield Warn("global-transaction-late-part", tie.id, message)
            part = replace(part, tie=None)
        elif tie is not None:
            known = self._open.setdefault(tie.id, _Open(tie, now))
            known.arrived += 1
            # The parts should agree on their number; the largest is the careful reading.
            known.tie = Tie(tie.id, max(known.tie.parts, tie.parts))
        self._queues.setdefault(part.source, deque()).append(part)
        yield from self._released()

    def _time_passed(self, now: float) -> Iterator[Action]:
        given_up: set[str] = set()
        for known in self._open.values():
            late = now - known.since_seconds >= self.timeout_seconds
            if known.is_complete or known.warned or not late:
                continue
            known.warned = True
            message = (
                f"{known.arrived} of {known.tie.parts} parts of {known.tie.id} arrived in time"
            )
            yield Warn("global-transaction-incomplete", known.tie.id, message)
            if self.overdue is Overdue.SHOW_PARTS:
                given_up.add(known.tie.id)
        if given_up:
            self._abandon(given_up)
        yield from self._released()

    def _abandon(self, ids: set[str]) -> None:
        for tie_id in [known for known in self._open if known in ids]:
            del self._open[tie_id]
            self._abandoned[tie_id] = None
        while len(self._abandoned) > ABANDONED_MAX:
            del self._abandoned[next(iter(self._abandoned))]
        for source, queue in self._queues.items():
            self._queues[source] = deque(
                replace(part, tie=None) if part.tie and part.tie.id in ids else part
                for part in queue
            )

    # -- what can go -------------------------------------------------------------------------------

    def _released(self) -> Iterator[Action]:
        """Release units until every queue is empty or begins with something incomplete."""
        progress = True
        while progress:
            progress = False
            for source in sorted(self._queues):
                while self._queues[source] and (unit := self._unit_at(source)):
                    yield NumberUnit(self._taken(unit))
                    progress = True

    def _unit_at(self, source: str) -> dict[str, int] | None:
        """How much of which queue must go together with the head of this one; None if it can't."""
        need = {source: 1}
        looked_at = dict.fromkeys(self._queues, 0)
        while any(looked_at[s] < count for s, count in need.items()):
            for s in sorted(need):
                new = islice(self._queues[s], looked_at[s], need[s])
                ids = {part.tie.id for part in new if part.tie is not None}
                looked_at[s] = need[s]
                for tie_id in sorted(ids):
                    if not self._open[tie_id].is_complete:
                        return None
                    for other, last in self._places(tie_id):
                        need[other] = max(need.get(other, 0), last)
        return need

    def _places(self, tie_id: str) -> Iterator[tuple[str, int]]:
        """For each source with a part, how long its queue is up to the last one."""
        for source in sorted(self._queues):
            for index, part in enumerate(self._queues[source]):
                if part.tie is not None and part.tie.id == tie_id:
                    yield source, index + 1

    def _taken(self, unit: dict[str, int]) -> tuple[Part, ...]:
        parts = [self._queues[s].popleft() for s in sorted(unit) for _ in range(unit[s])]
        for part in parts:
            if part.tie is not None:
                self._open.pop(part.tie.id, None)
        return tuple(parts)
