"""Somebody who decides about schema changes, when asked often enough."""

from __future__ import annotations

import random

from viewkeeper.sources.interface import SchemaChange

LOOKS_MAX = 3
APPROVE, REJECT = "approve", "reject"


class People:
    """Decides about each change once; a change that was rejected may be approved in the end."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._looks: dict[tuple[str, str, int], int] = {}
        self._minds: dict[tuple[str, str, int], str] = {}
        self.changes_mind = self._random.random() < 0.5

    def decide(self, change: SchemaChange) -> str | None:
        """What is decided when somebody looks; None: nothing yet."""
        about = _about(change)
        if about not in self._looks:
            self._looks[about] = self._random.randrange(LOOKS_MAX)
            self._minds[about] = REJECT if self._random.random() < 0.3 else APPROVE
        if self._looks[about]:
            self._looks[about] -= 1
            return None
        return self._minds[about]

    def approve_all(self) -> None:
        self._minds = dict.fromkeys(self._minds, APPROVE)

    def has_rejected(self, change: SchemaChange) -> bool:
        about = _about(change)
        return self._minds.get(about) == REJECT and not self._looks[about]

    def has_approved(self, change: SchemaChange) -> bool:
        about = _about(change)
        return self._minds.get(about) == APPROVE and not self._looks[about]

    @property
    def decided(self) -> int:
        return len(self._minds)


def _about(change: SchemaChange) -> tuple[str, str, int]:
    return change.source, change.relation, int(change.position["n"])
