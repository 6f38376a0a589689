"""Who chooses what happens next: a seed; and runs by it.

Time is the order of events. A run passes through phases: in a burst sources commit much faster than
messages travel, in a quiet phase messages travel until hardly anything is left on the way. So a run
has many concurrent updates at times and none at others, as real days do.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from viewkeeper.errors import invariant
from viewkeeper.simulator.kernel.world import Choice, Deliver, World

PHASE_STEPS_MAX = 25
STEPS_MAX = 1_000_000

Chosen = TypeVar("Chosen")


class Phase(enum.Enum):
    """How much likelier a commit is than any one message."""

    QUIET = 0.05
    MIXED = 0.6
    BURST = 6.0


class PhasedScheduler:
    """Chooses among what could happen; the same seed makes the same choices."""

    def __init__(self, seed_text: str) -> None:
        self.random = random.Random(seed_text)
        self.phase = Phase.MIXED
        self._steps_left = 0

    def picked(self, choices: Sequence[Chosen], weight: Callable[[Chosen], float]) -> Chosen | None:
        """One of them, by their weights in this phase; None when there is none."""
        if not choices:
            return None
        if self._steps_left == 0:
            self.phase = self.random.choice(list(Phase))
            self._steps_left = self.random.randint(1, PHASE_STEPS_MAX)
        self._steps_left -= 1
        return self.random.choices(choices, [weight(choice) for choice in choices])[0]


class SeededScheduler(PhasedScheduler):
    """Chooses in any world of the kernel."""

    def __init__(self, seed: int) -> None:
        super().__init__(f"schedule {seed}")
        # Some runs have a slow source: its messages are seldom chosen, and much overtakes them.
        self._slow = self.random.random() < 0.3
        self._slow_source = self.random.randrange(1_000_000)

    def choose(self, world: World) -> Choice | None:
        """What happens next; None when the run is over."""
        names = list(world.sources)
        slow = names[self._slow_source % len(names)] if self._slow else None
        return self.picked(world.choices(), lambda choice: self._weight(choice, slow))

    def _weight(self, choice: Choice, slow: str | None) -> float:
        if isinstance(choice, Deliver):
            return 0.1 if choice.sender == slow else 1.0
        return self.phase.value if choice.odds is None else choice.odds


class Running(Protocol):
    """A world, as far as a scheduler's run is concerned."""

    def take(self, choice: Any, /) -> None: ...

    def require_finished(self) -> None: ...


AnyWorld = TypeVar("AnyWorld", bound=Running, contravariant=True)


class Scheduler(Protocol[AnyWorld]):
    """Says what happens next in a world of its kind; None when the run is over."""

    def choose(self, world: AnyWorld, /) -> Any: ...


def run_to_end(world: AnyWorld, scheduler: Scheduler[AnyWorld]) -> None:
    """Let things happen until nothing can; then everything must have come to rest."""
    steps = 0
    while (choice := scheduler.choose(world)) is not None:
        world.take(choice)
        steps += 1
        invariant(steps < STEPS_MAX, "the world does not come to rest")
    world.require_finished()
