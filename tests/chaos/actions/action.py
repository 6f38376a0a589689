"""What an action is: something that happens to the sources, to `run`, or between them."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from chaos.run_process import RunProcess
from chaos.witness import Witness
from chaos.world import World
from viewkeeper.views import Level


@dataclass
class Rig:
    """All that an action may lay its hands on."""

    world: World
    witness: Witness
    run: RunProcess
    # Set when the storm is over before its time: waits end.
    ending: threading.Event
    bulk_rows: int
    # The number of the state that the present histories begin with.
    first_txn: int = 0

    def wait(self, seconds: float) -> None:
        """Let a fault last; an end cuts it short."""
        self.ending.wait(seconds)


class Action(ABC):
    """Drawn once per round. ``rng`` is its own: what it draws depends on the seed alone."""

    name: ClassVar[str]
    kind: ClassVar[str]
    weight: ClassVar[float] = 1.0
    # The least that must hold for the states of a round with it.
    level: ClassVar[Level] = Level.COMPLETE
    # Codes of errors with which `run` may end because of it; it is started again then.
    may_end_with: ClassVar[frozenset[str]] = frozenset()
    # Whether it must be the only action of its round.
    is_alone: ClassVar[bool] = False
    # The source whose server is away from `do` to `undo`, and the one that it needs for itself.
    stops: str | None = None
    needs: str | None = None

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.draw()

    def draw(self) -> None:  # noqa: B027  (most have nothing to draw)
        """Choose the particulars. Must not look at the world: a seed names them all."""

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def do(self, rig: Rig) -> None: ...

    def undo(self, rig: Rig) -> None:  # noqa: B027  (some are over by themselves)
        """Take the fault away again; called once, also when `do` failed."""


class Permanent(Action):
    """A fault that only people can mend: `run` must end with a named error, and be set up anew."""

    # The source that has to be read anew.
    source: str
    kind = "permanent"
    level = Level.STRONG
    is_alone = True
    weight = 0.4
