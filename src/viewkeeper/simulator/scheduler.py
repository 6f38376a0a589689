"""Who happens next: a scheduler whose choices a seed determines entirely.

Time is the order of events. A run passes through moods: in a burst sources commit much faster than
messages travel, in a quiet phase messages travel until hardly anything is left on the way. So a run
has many concurrent updates at times and none at others, as real days do.
"""

from __future__ import annotations

import enum
import random

from viewkeeper.simulator.world import Choice, Commit, DeliverMessage, Reveal, World


class Mood(enum.Enum):
    """How much likelier a commit is than any one message."""

    QUIET = 0.05
    MIXED = 0.6
    BURST = 6.0


MOOD_STEPS_MAX = 25


class SeededScheduler:
    """Chooses at random among what could happen; the same seed makes the same choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"schedule {seed}")
        self._mood = Mood.MIXED
        self._steps_left = 0
        # Some runs have a slow source: its messages are seldom chosen, and much overtakes them.
        self._slow = self._random.random() < 0.3
        self._slow_source = self._random.randrange(1_000_000)

    def choose(self, world: World) -> Choice | None:
        """What happens next; None when the run is over."""
        choices = world.choices()
        if not choices:
            return None
        if self._steps_left == 0:
            self._mood = self._random.choice(list(Mood))
            self._steps_left = self._random.randint(1, MOOD_STEPS_MAX)
        self._steps_left -= 1
        names = list(world.sources)
        slow = names[self._slow_source % len(names)] if self._slow else None
        weights = [self._weight(choice, slow) for choice in choices]
        return self._random.choices(choices, weights)[0]

    def _weight(self, choice: Choice, slow: str | None) -> float:
        match choice:
            case Commit():
                return self._mood.value
            case Reveal():
                return 0.5
            case DeliverMessage(source, _) if source == slow:
                return 0.1
            case _:
                return 1.0


def run_to_end(world: World, scheduler: SeededScheduler) -> None:
    """Let things happen until nothing can; then everything must have come to rest."""
    while (choice := scheduler.choose(world)) is not None:
        world.take(choice)
    world.require_finished()
