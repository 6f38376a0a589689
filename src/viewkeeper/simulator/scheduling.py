"""Random choices with moods, and runs by them: what all seeded schedulers share.

Time is the order of events. A run passes through moods: in a burst sources commit much faster than
messages travel, in a quiet phase messages travel until hardly anything is left on the way. So a run
has many concurrent updates at times and none at others, as real days do.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

MOOD_STEPS_MAX = 25

Choice = TypeVar("Choice")


class Mood(enum.Enum):
    """How much likelier a commit is than any one message."""

    QUIET = 0.05
    MIXED = 0.6
    BURST = 6.0


class Moody:
    """Chooses among what could happen; the same seed makes the same choices."""

    def __init__(self, seed_text: str) -> None:
        self.random = random.Random(seed_text)
        self.mood = Mood.MIXED
        self._steps_left = 0

    def picked(self, choices: Sequence[Choice], weight: Callable[[Choice], float]) -> Choice | None:
        """One of them, by their weights in the mood of the moment; None when there is none."""
        if not choices:
            return None
        if self._steps_left == 0:
            self.mood = self.random.choice(list(Mood))
            self._steps_left = self.random.randint(1, MOOD_STEPS_MAX)
        self._steps_left -= 1
        return self.random.choices(choices, [weight(choice) for choice in choices])[0]


class World(Protocol):
    """A simulated world, as far as a scheduler's run is concerned."""

    def take(self, choice: Any, /) -> None: ...

    def require_finished(self) -> None: ...


AnyWorld = TypeVar("AnyWorld", bound=World, contravariant=True)


class Scheduler(Protocol[AnyWorld]):
    """Says what happens next in a world of its kind; None when the run is over."""

    def choose(self, world: AnyWorld, /) -> Any: ...


def run_to_end(world: AnyWorld, scheduler: Scheduler[AnyWorld]) -> None:
    """Let things happen until nothing can; then everything must have come to rest."""
    while (choice := scheduler.choose(world)) is not None:
        world.take(choice)
    world.require_finished()
