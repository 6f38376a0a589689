"""The simulated world of an evolving view: sources, channels, its management, and the states it shows.

As `simulator.world`, for updates that change schemas too. Channels keep their order (the paper's assumption 1);
questions take their time, so that everything may change before they are answered. With ``inversions``
transactions become visible to queries later than they are announced, and not in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewkeeper.algebra import Bag
from viewkeeper.errors import invariant
from viewkeeper.evolution.adaptation import Method
from viewkeeper.evolution.changes import Update
from viewkeeper.evolution.management import Management
from viewkeeper.evolution.messages import (
    Action,
    Event,
    InstallVersion,
    QueryBroken,
    ReadRelation,
    RetireView,
    UpdateArrived,
)
from viewkeeper.evolution.versions import ViewVersion
from viewkeeper.protocols.messages import InstallChange, SourceSettled
from viewkeeper.simulator.choices import DeliverMessage, DeliverQuestion
from viewkeeper.simulator.evolution.scenario import EvolutionScenario
from viewkeeper.simulator.evolution.source import EvolvingSource
from viewkeeper.simulator.kernel.scheduling import PhasedScheduler
from viewkeeper.simulator.kernel.world import Commit, Reveal
from viewkeeper.timeline import Cut

Choice = Commit | Reveal | DeliverQuestion | DeliverMessage
MakeManagement = Callable[..., Management]


@dataclass(frozen=True)
class Record:
    """A state that a reader could see: which version, at which cut, with which rows.

    ``method``: how its extent came about, where it was adapted and not maintained.
    """

    version: ViewVersion
    cut: Cut
    extent: Bag
    method: Method | None = None


@dataclass
class EvolutionCounters:
    """How many queries were sent, and how many of them broke."""

    queries: int = 0
    broken: int = 0


class EvolutionWorld:
    """Everything there is in a run."""

    def __init__(
        self,
        scenario: EvolutionScenario,
        make: MakeManagement = Management,
        *,
        inversions: bool = False,
    ) -> None:
        self.scenario = scenario
        self.sources = {
            name: EvolvingSource(name, scenario.initial, script, inversions=inversions)
            for name, script in sorted(scenario.scripts.items())
        }
        self.to_warehouse: dict[str, list[Event]] = {name: [] for name in self.sources}
        self.to_source: dict[str, list[ReadRelation]] = {name: [] for name in self.sources}
        extent = scenario.extent
        self.management = make(
            scenario.view, extent, scenario.catalog, scenario.knowledge, scenario.start
        )
        self.records = [Record(self.management.versions.latest, scenario.start, extent)]
        # For every install, the updates that came in with it.
        self.included: list[tuple[Update, ...]] = []
        self.retired: RetireView | None = None
        self.counters = EvolutionCounters()

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that could happen next, in a fixed order; empty when the run is over."""
        found: list[Choice] = []
        for name, source in self.sources.items():
            found += source.choices
            if self.to_source[name]:
                found.append(DeliverQuestion(name, 0))
            if self.to_warehouse[name]:
                found.append(DeliverMessage(name, 0))
        return found

    def take(self, choice: Choice) -> None:
        """Make it happen."""
        match choice:
            case Commit(name):
                self._commit(self.sources[name])
            case Reveal(name, number):
                self.sources[name].reveal(number)
                self._tell_settled(self.sources[name])
            case DeliverQuestion(name):
                answer = self.sources[name].answer(self.to_source[name].pop(0))
                self.counters.broken += isinstance(answer, QueryBroken)
                self.to_warehouse[name].append(answer)
            case DeliverMessage(name):
                channel = self.to_warehouse[name]
                self._deliver(channel.pop(0))
                # What only lets the warehouse forget comes along: it makes no order of its own.
                while channel and isinstance(channel[0], SourceSettled):
                    self._deliver(channel.pop(0))

    def _deliver(self, event: Event) -> None:
        for action in self.management.step(event):
            self._carry_out(action)

    def _commit(self, source: EvolvingSource) -> None:
        update = source.commit()
        self.to_warehouse[source.name].append(UpdateArrived(update))
        self._tell_settled(source)

    def _tell_settled(self, source: EvolvingSource) -> None:
        self.to_warehouse[source.name].append(SourceSettled(source.name, source.settled))

    def _carry_out(self, action: Action) -> None:
        latest = self.records[-1]
        match action:
            case ReadRelation():
                self.counters.queries += 1
                self.to_source[action.source].append(action)
            case InstallChange(change, cut, transactions):
                self.records.append(Record(latest.version, cut, latest.extent + change))
                self.included.append(transactions)
            case InstallVersion(version, extent, cut, included, method):
                self.records.append(Record(version, cut, extent, method))
                self.included.append(included)
            case RetireView():
                self.retired = action

    def require_finished(self) -> None:
        """Nothing can happen any more: then nothing may be waiting either (liveness)."""
        invariant(not self.choices(), "the run is not over")
        invariant(self.management.is_idle, "nothing can happen, and the management waits")


class EvolutionScheduler(PhasedScheduler):
    """Chooses at random among what could happen; moods as in `SeededScheduler`."""

    def __init__(self, seed: int) -> None:
        super().__init__(f"evolution schedule {seed}")

    def choose(self, world: EvolutionWorld) -> Choice | None:
        """What happens next; None when the run is over."""
        return self.picked(world.choices(), self._weight)

    def _weight(self, choice: Choice) -> float:
        match choice:
            case Commit():
                return self.phase.value
            case DeliverQuestion() | Reveal():
                return 0.3  # much happens on the way
            case DeliverMessage():
                return 1.0
