"""Runs of MEDWRAP and its rivals: a seed and a verdict, and the same history through all of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.errors import invariant
from viewkeeper.protocols.inbox import TransactionMessage
from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.medwrap_mediator import MedwrapMediator, combined_level
from viewkeeper.protocols.medwrap_messages import Detection
from viewkeeper.protocols.medwrap_wrapper import MedwrapWrapper
from viewkeeper.protocols.mre import MreWrapper
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import WAREHOUSE, Choice, Deliver, Network
from viewkeeper.simulator.medwrap.world import MedwrapWorld
from viewkeeper.simulator.run import Outcome, judged
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.level import Level

SOURCES = 3
RELATIONS_PER_SOURCE_MAX = 3


@dataclass(frozen=True)
class MedwrapOptions:
    """Which wrapper, and what runs at the mediator. ``stores`` makes it MRE."""

    stores: bool = False
    nested: bool = False
    detection: Detection = Detection.REFLECTED_SETS
    snapshots: bool = False
    batch_max: int = 1

    @property
    def name(self) -> str:
        return "mre" if self.stores else "medwrap"

    @property
    def level(self) -> Level:
        wrapper = Level.COMPLETE if self.batch_max == 1 else Level.STRONG
        return combined_level(wrapper, (NestedSweep if self.nested else Sweep).level)

    def world(
        self, scenario: Scenario, network: Network, journal: Journal | None = None
    ) -> MedwrapWorld:
        """A world in which nothing has happened yet."""
        fifo_needed = self.detection is Detection.QUEUE_ORDER
        invariant(
            not fifo_needed or (network.fifo and not network.inversions),
            "conflicts can be found by queue order only on channels that keep order",
        )

        def wrapper(mediation: Mediation, source: str) -> MedwrapWrapper:
            settings: dict[str, Any] = {
                "detection": self.detection,
                "snapshots": self.snapshots,
                "batch_max": self.batch_max,
            }
            if self.stores:
                return MreWrapper(mediation, source, scenario.initial, **settings)
            return MedwrapWrapper(mediation, source, **settings)

        def mediator(mediation: Mediation, extent: Any) -> MedwrapMediator:
            return MedwrapMediator(mediation, extent, NestedSweep if self.nested else Sweep)

        return MedwrapWorld(scenario, wrapper, mediator, network, journal)


# -- seeds ------------------------------------------------------------------------------------------


def medwrap_scenario(
    seed: int, transactions: int = 4, shape: Shape = Shape.ANY, sources: int = SOURCES
) -> Scenario:
    """Sources with one to three relations each, and a view over all of them."""
    rng = random.Random(f"homes {seed}")
    homes = [
        f"s{source}"
        for source in range(1, sources + 1)
        for _ in range(rng.randint(1, RELATIONS_PER_SOURCE_MAX))
    ]
    rng.shuffle(homes)
    # Two values: a join of nine relations would else nearly always be empty.
    size = Size(len(homes), transactions, shape, one_source=True, values=2)
    scenario = random_scenario(seed, size)
    names = [RelationName("s", f"r{number}") for number in range(1, len(homes) + 1)]
    return rehomed(scenario, dict(zip(names, homes, strict=True)))


def rehomed(scenario: Scenario, homes: Mapping[RelationName, str]) -> Scenario:
    """The scenario with its relations at other sources; a transaction falls apart into one for each."""
    new = {name: RelationName(home, name.relation) for name, home in homes.items()}
    definition = ViewDefinition(
        scenario.definition.name, tuple(_moved(term, new) for term in scenario.definition.terms)
    )
    scripts: dict[str, list[Transaction]] = {source: [] for source in definition.sources}
    for transaction in itertools.chain.from_iterable(scenario.scripts.values()):
        moved = [(new[name], rows) for name, rows in transaction.changes]
        for source in dict.fromkeys(name.source for name, _ in moved):
            changes = tuple((name, rows) for name, rows in moved if name.source == source)
            script = scripts[source]
            script.append(Transaction(source, len(script) + 1, changes))
    return Scenario(
        definition,
        {new[name]: rows for name, rows in scenario.initial.items()},
        {source: tuple(script) for source, script in scripts.items()},
    )


def _moved(term: Term, new: Mapping[RelationName, RelationName]) -> Term:
    occurrences = tuple(Occurrence(o.alias, new[o.name], o.schema, o.key) for o in term.occurrences)
    return Term(occurrences, term.predicates, term.outputs)


def simulated_medwrap(
    options: MedwrapOptions,
    seed: int,
    scenario: Scenario | None = None,
    network: Network = Network(),  # noqa: B008  (immutable)
    *,
    search: bool = False,
    journal: Journal | None = None,
) -> Outcome:
    """Run one seed to its end and judge it."""
    scenario = medwrap_scenario(seed) if scenario is None else scenario
    world = run_medwrap(options, seed, scenario, network, journal)
    return judged(options, seed, scenario, world, search=search)


def run_medwrap(
    options: MedwrapOptions,
    seed: int,
    scenario: Scenario,
    network: Network,
    journal: Journal | None = None,
) -> MedwrapWorld:
    """The world at the end of the seed's run."""
    world = options.world(scenario, network, journal)
    run_to_end(world, SeededScheduler(seed))
    return world


# -- the same history through the simplistic approach ------------------------------------------------


def simplistic_changes(
    scenario: Scenario, order: list[tuple[str, int]], seed: int
) -> list[tuple[tuple[str, int], Bag]]:
    """The view changes of the simplistic approach when transactions reach it in this order.

    Everything else happens at random: how far the sources are when they are asked, and when.
    """
    world = World(scenario, Simplistic)
    rng = random.Random(f"simplistic {seed}")
    expected = list(order)
    changes: list[tuple[tuple[str, int], Bag]] = []
    while True:
        possible = [
            choice
            for choice in world.choices()
            if not _is_early(world, choice, expected[0] if expected else None)
        ]
        if not possible:
            break
        choice = rng.choice(possible)
        if expected and _announced(world, choice) is not None:
            expected.pop(0)
        before = len(world.states)
        world.take(choice)
        for number in range(before, len(world.states)):
            previous = world.claims[number - 1]
            (moved,) = ((s, n) for s, n in world.claims[number] if n != previous[s])
            changes.append((moved, world.states[number] - world.states[number - 1]))
    world.require_finished()
    return changes


def _is_early(world: World, choice: Choice, due: tuple[str, int] | None) -> bool:
    """Whether the choice would deliver a transaction whose turn has not come."""
    return _announced(world, choice) not in (None, due)


def _announced(world: World, choice: Choice) -> tuple[str, int] | None:
    """The transaction that would be delivered."""
    match choice:
        case Deliver(sender, to, index) if to == WAREHOUSE:
            message = world.channels[sender, to][index]
            if isinstance(message, TransactionMessage):
                return (message.transaction.source, message.transaction.number)
    return None
