"""Every interleaving of small cases, counted; the worlds' snapshots; determinism of a seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from paper.figure5 import SCENARIO
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.exploration import explore
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.simulator.kernel.exploration import Snapshots
from viewkeeper.simulator.kernel.scheduling import SeededScheduler
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World


def chain_with_scripts_of(*lengths: int) -> Scenario:
    """The first random chain whose sources commit so many transactions, in some order."""
    size = Size(len(lengths), sum(lengths), Shape.CHAIN)
    scenarios = (random_scenario(seed, size) for seed in range(1000))
    return next(
        scenario
        for scenario in scenarios
        if sorted(len(script) for script in scenario.scripts.values()) == sorted(lengths)
    )


@pytest.mark.parametrize(
    "network", [Network(), Network(fifo=False), Network(inversions=True)], ids=str
)
@pytest.mark.parametrize("name", ["sweep", "nested-sweep"])
def test_all_interleavings_of_figure_5_are_right(name, network, record_property):
    result = explore(PROTOCOLS[name], SCENARIO, network)
    record_property("interleavings", result.interleavings)
    print(f"{name} {network}: {result.interleavings} interleavings, {result.worlds} worlds")  # noqa: T201
    assert result.violations == 0
    assert result.interleavings > 1000


@pytest.mark.parametrize("name", ["sweep", "nested-sweep"])
def test_all_interleavings_of_three_updates_at_one_source_and_two_elsewhere_are_right(name):
    scenario = chain_with_scripts_of(1, 1, 3)
    result = explore(PROTOCOLS[name], scenario)
    assert result.violations == 0
    assert result.interleavings > 10_000


def test_exploration_finds_what_naive_does_wrong_and_how_it_came_about():
    result = explore(PROTOCOLS["naive"], SCENARIO)
    assert result.violations > 0
    world = World(SCENARIO, PROTOCOLS["naive"])
    for choice in result.first_path:
        world.take(choice)
    assert not world.choices()


def test_the_number_of_interleavings_is_that_of_a_plain_enumeration():
    scenario = chain_with_scripts_of(1, 1)

    def paths(path: tuple) -> int:
        world = World(scenario, PROTOCOLS["sweep"])
        for choice in path:
            world.take(choice)
        choices = world.choices()
        return sum(paths((*path, choice)) for choice in choices) if choices else 1

    assert explore(PROTOCOLS["sweep"], scenario).interleavings == paths(())


def test_a_restored_world_goes_on_like_the_one_it_was_taken_from():
    snapshots = Snapshots()
    world = World(SCENARIO, PROTOCOLS["parallel-sweep"])
    scheduler = SeededScheduler(3)
    while (choice := scheduler.choose(world)) is not None:
        twin = snapshots.restored(snapshots.taken(world))
        world.take(choice)
        twin.take(choice)
        assert snapshots.taken(twin) == snapshots.taken(world)


def test_a_seed_means_the_same_run_under_every_hash_seed():
    program = """
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.generator import Size
from viewkeeper.simulator.run import digest
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.scenario import Scenario
for name, protocol in PROTOCOLS.items():
    size = Size(keyed=protocol.assumes.keys, one_source=protocol.assumes.one_source)
    print(name, [digest(protocol, seed, size, Network()) for seed in range(6)])
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
