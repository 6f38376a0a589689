"""What the ring protocols cost, counted: latency in message delays, messages per update, idle traffic.

As in the paper (Rings, section 4.2): every message takes one unit of time, processing takes none. The
formulas of the paper stand beside what was counted, where it gives one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import invariant
from viewkeeper.protocols.quiescent_ring import QuiescentRing
from viewkeeper.protocols.ring import Ring
from viewkeeper.simulator.kernel.world import Commit, Deliver
from viewkeeper.simulator.rings.run import RingOptions
from viewkeeper.simulator.rings.world import RingWorld
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

DELAYS_MAX = 1_000
IDLE_DELAYS = 100


@dataclass(frozen=True)
class RingCost:
    """One row of the table: ``case`` is "one" (source updated) or "all".

    Delays run from the update to the moment at which it is in the view; the worst and the mean over
    all places where the token can be when the update happens.
    """

    protocol: str
    sources: int
    case: str
    delays_worst: int
    delays_mean: float
    paper_delays: int
    visits_worst: int
    messages_mean: float
    idle_messages_per_delay: float

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def ring_costs(sources: Iterable[int]) -> list[RingCost]:
    """The table for rings of these sizes, both protocols, one source updated and all of them."""
    return [
        _cost(protocol, number, case)
        for number in sources
        for protocol in (Ring.name, QuiescentRing.name)
        for case in ("one", "all")
    ]


def chain_scenario(sources: int, updated: Iterable[int]) -> Scenario:
    """A chain in which every row meets every row; a source commits once for each time it is listed."""
    schema = Schema.of(a=INTEGER, b=INTEGER)
    names = [RelationName(f"s{number:02}", "r") for number in range(1, sources + 1)]
    occurrences = tuple(Occurrence(f"x{i}", name, schema) for i, name in enumerate(names, 1))
    predicates = tuple(
        Comparison("=", Column(left.qualified("b")), Column(right.qualified("a")))
        for left, right in itertools.pairwise(occurrences)
    )
    outputs = (Output("a", Column("x1.a")), Output("b", Column(f"x{sources}.b")))
    rows = Bag.of(schema, [(0, 0)])
    scripts: dict[str, tuple[Transaction, ...]] = {name.source: () for name in names}
    for number in updated:
        name = names[number]
        script = scripts[name.source]
        scripts[name.source] = (*script, Transaction(name.source, len(script) + 1, ((name, rows),)))
    return Scenario(
        ViewDefinition("v", (Term(occurrences, predicates, outputs),)),
        dict.fromkeys(names, rows),
        scripts,
    )


@dataclass(frozen=True)
class _Run:
    delays: int
    visits: int
    messages: int
    idle_messages: int


def _cost(protocol: str, sources: int, case: str) -> RingCost:
    # The quiescent ring has no token before the update, so there is only one place to start from.
    phases = range(sources) if protocol == Ring.name else range(1)
    runs = [_timed(protocol, sources, case, phase) for phase in phases]
    # Section 4.2: 2n in both cases; n for a quiescent ring with one update, "not increased" with all.
    paper = sources if (protocol, case) == (QuiescentRing.name, "one") else 2 * sources
    return RingCost(
        protocol=protocol,
        sources=sources,
        case=case,
        delays_worst=max(run.delays for run in runs),
        delays_mean=sum(run.delays for run in runs) / len(runs),
        paper_delays=paper,
        visits_worst=max(run.visits for run in runs),
        messages_mean=sum(run.messages for run in runs) / len(runs),
        idle_messages_per_delay=max(run.idle_messages for run in runs) / IDLE_DELAYS,
    )


def _timed(protocol: str, sources: int, case: str, phase: int) -> _Run:
    """One run in lockstep: ``phase`` delays pass, the update happens, and we wait to see it."""
    updated = range(sources) if case == "all" else range(1)
    scenario = chain_scenario(sources, updated)
    world = RingWorld(scenario, RingOptions(protocol).system)
    clock = Lockstep(world)
    for _ in range(phase):
        clock.tick()
    visits, messages = world.counters["visits"], world.counters["messages"]
    for source, script in scenario.scripts.items():
        if script:
            world.take(Commit(source))
    while world.claims[-1] != world.committed:
        clock.tick()
        invariant(clock.time < DELAYS_MAX, "the update never reaches the view")
    delays = clock.time - phase
    visits = world.counters["visits"] - visits
    messages = world.counters["messages"] - messages
    while not world.is_settled:
        clock.tick()
    before = world.counters["messages"]
    for _ in range(IDLE_DELAYS):
        clock.tick()
    return _Run(delays, visits, messages, world.counters["messages"] - before)


class Lockstep:
    """A clock for a world: every message takes one delay. ``installed_at``: when each state was first there."""

    def __init__(self, world: RingWorld) -> None:
        self.world = world
        self.time = 0
        self.installed_at = [0] * len(world.states)

    def tick(self) -> None:
        """One message delay passes: everything that is on its way arrives."""
        self.time += 1
        on_the_way = {link: len(channel) for link, channel in self.world.channels.items()}
        for (sender, to), number in on_the_way.items():
            for _ in range(number):
                self.world.take(Deliver(sender, to))
        new = len(self.world.states) - len(self.installed_at)
        self.installed_at += [self.time] * new


# -- under load -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RingLatencies:
    """Message delays from each update to the first state that includes it, in a run under load."""

    protocol: str
    seed: int
    sources: int
    delays: tuple[int, ...]
    messages: int

    @property
    def mean(self) -> float:
        return sum(self.delays) / len(self.delays) if self.delays else 0.0


def ring_latencies(
    options: RingOptions, seed: int, sources: int, updates: int, commits_per_delay: float
) -> RingLatencies:
    """Run in lockstep while sources commit at random, about so many updates in each delay.

    Every row of the chain meets every row, so that every update is seen in the view.
    """
    rng = random.Random(f"latencies {seed}")
    scenario = chain_scenario(sources, rng.choices(range(sources), k=updates))
    world = RingWorld(scenario, options.system, checked=False)
    clock = Lockstep(world)
    committed_at: dict[tuple[str, int], int] = {}
    while len(committed_at) < updates or world.claims[-1] != world.committed:
        clock.tick()
        invariant(clock.time < DELAYS_MAX + 100 * updates, "an update never reaches the view")
        for choice in world.choices():
            if isinstance(choice, Commit) and rng.random() < commits_per_delay / sources:
                world.take(choice)
                committed_at[choice.node, world.committed[choice.node]] = clock.time
    delays = tuple(
        next(
            at for at, claim in zip(clock.installed_at, world.claims, strict=True) if claim[s] >= n
        )
        - since
        for (s, n), since in committed_at.items()
    )
    return RingLatencies(options.protocol, seed, sources, delays, world.counters["messages"])
