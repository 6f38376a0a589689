"""Runs of the ring protocols: a seed and a verdict, latencies in message delays, idle costs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.consistency.histories import ViewStates
from viewkeeper.protocols.quiescent_ring import QuiescentRing, Refresh
from viewkeeper.protocols.registry import RINGS
from viewkeeper.protocols.ring import Ring
from viewkeeper.protocols.ring_machines import RingSystem
from viewkeeper.protocols.ring_terms import RingTerms
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.rings.world import Demands, MakeSystem, RingWorld
from viewkeeper.simulator.run import Outcome, judged
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.views.definition import Term, ViewDefinition
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class RingOptions:
    """Which ring, and how it is used. The two refreshes of the warehouse are for the quiescent one."""

    protocol: str = Ring.name
    one_at_a_time: bool = False
    refresh: Refresh = Refresh.ON_UPDATE
    # How many questions of readers, and ends of periods, happen in a run.
    queries: int = 0
    ticks: int = 0

    @property
    def name(self) -> str:
        return self.protocol

    @property
    def level(self) -> Level:
        """Strong; one update at a time leaves no state out."""
        return Level.COMPLETE if self.one_at_a_time else RINGS[self.protocol].level

    def system(self, definition: ViewDefinition, extent: Any, contents: Any) -> RingSystem:
        """The machines for one view."""
        settings: dict[str, Any] = {"one_at_a_time": self.one_at_a_time}
        if self.protocol == QuiescentRing.name:
            settings["refresh"] = self.refresh
        return RINGS[self.protocol].system(definition, extent, contents, **settings)

    @property
    def demands(self) -> Demands:
        return Demands(self.queries, self.ticks)


@dataclass(frozen=True)
class RingOutcome(Outcome):
    """An outcome, and whether readers who made the warehouse refresh saw all that was committed."""

    fresh_queries: bool = True

    @property
    def is_good(self) -> bool:
        return super().is_good and self.fresh_queries


# -- seeds ------------------------------------------------------------------------------------------


def ring_scenario(seed: int, size: Size, options: RingOptions) -> Scenario:
    """The scenario that the seed means: one term, or several over some of the sources each."""

    def shaped(definition: ViewDefinition) -> ViewDefinition:
        terms = definition.terms[:1]
        if options.protocol == RingTerms.name:
            terms = _terms(random.Random(f"terms {seed}"), definition.terms[0])
        return ViewDefinition(definition.name, terms)

    return random_scenario(seed, size, shaped)


def _terms(rng: random.Random, term: Term) -> tuple[Term, ...]:
    """Two to four terms, each over some occurrences of this one, in any order."""
    terms = []
    for _ in range(rng.randint(2, 4)):
        chosen = rng.sample(term.occurrences, rng.randint(1, len(term.occurrences)))
        aliases = {occurrence.alias for occurrence in chosen}
        kept = tuple(p for p in term.predicates if term.aliases_in(p) <= aliases)
        outputs = (
            Output("a", Column(chosen[0].qualified("a"))),
            Output("b", Column(chosen[-1].qualified("b"))),
        )
        terms.append(Term(tuple(chosen), kept, outputs))
    return tuple(terms)


def simulated_ring(
    options: RingOptions,
    seed: int,
    size: Size,
    *,
    search: bool = False,
    make_system: MakeSystem | None = None,
    journal: Journal | None = None,
) -> RingOutcome:
    """Run one seed to its end, invariants checked at every step, and judge it."""
    scenario = ring_scenario(seed, size, options)
    world = RingWorld(scenario, make_system or options.system, options.demands, journal=journal)
    run_to_end(world, SeededScheduler(seed))
    outcome = judged(options, seed, scenario, world, search=search)
    fresh = options.refresh is not Refresh.ON_QUERY or _queries_are_fresh(scenario, world)
    return RingOutcome(**vars(outcome), fresh_queries=fresh)


def _queries_are_fresh(scenario: Scenario, world: RingWorld) -> bool:
    """Whether every answer is the view at a cut that has all that was committed before the question."""
    histories = scenario.histories
    views = ViewStates([scenario.definition], histories)
    return all(
        query.state is not None
        and any(
            cut.includes(query.committed) and views.at(cut) == (world.states[query.state],)
            for cut in histories.all_cuts()
        )
        for query in world.warehouse.queries.values()
    )
