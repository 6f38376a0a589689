"""Who happens next in a world of one view: a scheduler whose choices a seed determines entirely."""

from __future__ import annotations

from viewkeeper.simulator.choices import Commit, DeliverMessage, Reveal
from viewkeeper.simulator.scheduling import Moody
from viewkeeper.simulator.world import Choice, World


class SeededScheduler(Moody):
    """Chooses at random among what could happen; the same seed makes the same choices."""

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
        match choice:
            case Commit():
                return self.mood.value
            case Reveal():
                return 0.5
            case DeliverMessage(source, _) if source == slow:
                return 0.1
            case _:
                return 1.0
