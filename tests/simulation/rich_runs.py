"""Runs of rich views in the simulator, and the verdict on each of their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.sqlite_oracle import Oracle
from viewkeeper.protocols.stores import SelfKeptView
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World
from viewkeeper.views.upkeep import Upkeep

NETWORKS = (Network(), Network(fifo=False), Network(fifo=False, inversions=True))


class Wrong(Exception):
    """A state of the view that is not what SQLite computes."""


def run(
    scenario: Scenario,
    seed: int,
    network: Network,
    kept_view: Callable[..., Any] = SelfKeptView,
    embody: Callable[[Any], Any] = lambda bag: bag,
) -> World:
    """One run to its end, with the view's stores beside it."""
    upkeep = Upkeep(scenario.definition)
    stores = upkeep.initial(lambda name: embody(scenario.initial[name])).stores
    world = World(
        scenario,
        lambda definition, extent: kept_view(definition, extent, stores),
        network,
        embody=embody,
    )
    run_to_end(world, SeededScheduler(seed))
    return world


def check(scenario: Scenario, world: World, text: str | None = None) -> None:
    """Every transaction is a state of the view, and each is right; then the stores are right too."""
    definition = scenario.definition
    oracle = Oracle(definition, dict(scenario.initial), text)
    assert len(world.states) == scenario.number_of_transactions + 1
    contents = dict(scenario.initial)
    before = world.claims[0]
    for cut, state in zip(world.claims, world.states, strict=True):
        for (source, number), (_, last) in zip(cut, before, strict=True):
            for transaction in scenario.scripts[source][last:number]:
                oracle.commit(transaction)
                for name, change in transaction.changes:
                    contents[name] = contents[name] + change
        before = cut
        expected, found = oracle.view(), state.to_bag()
        if expected != found:
            raise Wrong(f"at {cut}:\nfound    {found}\nexpected {expected}\n{oracle.sql}")
    kept = {name: rows.to_bag() for name, rows in world.protocol.held.contents.items()}
    assert kept == Upkeep(definition).initial(contents.__getitem__).stores
