"""Every interleaving of a small scenario of one protocol, and the checker's verdict on each.

A world includes the history of states that a reader saw, so no two interleavings with different
histories are ever taken for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.consistency import Verdict, check, check_order
from viewkeeper.protocols.messages import Protocol
from viewkeeper.simulator.kernel.exploration import explore_all
from viewkeeper.simulator.kernel.world import Choice, Network
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World
from viewkeeper.timeline import CutVector


@dataclass
class Exploration:
    """What the search saw. ``first_violation`` comes with the choices that lead to it."""

    protocol: str
    interleavings: int = 0
    worlds: int = 0
    histories: int = 0
    violations: int = 0
    levels: dict[str, int] = field(default_factory=dict)
    first_violation: Verdict | None = None
    first_path: tuple[Choice, ...] = ()


def explore(
    protocol: type[Protocol],
    scenario: Scenario,
    network: Network = Network(),  # noqa: B008  (immutable)
    on_progress: Callable[[int], None] = lambda worlds: None,
) -> Exploration:
    """Search all interleavings; raises UsageError when the scenario is too large for that."""
    judging = _Judging(protocol, scenario)
    found = explore_all(World(scenario, protocol, network), judging.judge, on_progress)
    result = judging.result
    result.interleavings, result.worlds = found.interleavings, found.worlds
    result.histories = len({key[:2] for key in judging.verdicts})
    return result


class _Judging:
    """Judges every end; the same history only once."""

    def __init__(self, protocol: type[Protocol], scenario: Scenario) -> None:
        self.protocol = protocol
        self.scenario = scenario
        self.histories = scenario.histories
        self.result = Exploration(protocol.name)
        self.verdicts: dict[Any, tuple[Verdict, Verdict | None]] = {}

    def judge(self, world: World, path: tuple[Choice, ...]) -> None:
        order = tuple(world.delivered) if self.protocol.in_order else None
        key = (tuple(world.states), tuple(world.claims), order)
        if key not in self.verdicts:
            self.verdicts[key] = self._judged(*key)
        verdict, in_order = self.verdicts[key]
        level = str(verdict.level)
        self.result.levels[level] = self.result.levels.get(level, 0) + 1
        missed = [v for v in (verdict, in_order) if v and not v.meets(self.protocol.level)]
        if missed:
            self.result.violations += 1
            if self.result.first_violation is None:
                self.result.first_violation, self.result.first_path = missed[0], path

    def _judged(
        self,
        states: tuple[Any, ...],
        claims: tuple[CutVector, ...],
        delivered: tuple[str, ...] | None,
    ) -> tuple[Verdict, Verdict | None]:
        """The verdict on a history, and that over the order of delivery where it is promised."""
        views, shown = [self.scenario.definition], [(state,) for state in states]
        verdict = check(views, self.histories, shown, claims)
        if delivered is None:
            return verdict, None
        return verdict, check_order(views, self.histories, delivered, shown, claims)
