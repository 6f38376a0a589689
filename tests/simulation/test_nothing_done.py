"""Seeds that prove something: who does nothing fails nearly every one of them, in every family.

*Silent* installs nothing at all; *empty-handed* installs an empty change for every transaction and claims
its cut. A seed on which either is right would let a wrong protocol pass as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from simulation import broken
from simulation.engine_worlds import is_found_out
from simulation.test_rings import size_of
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.errors import InvariantViolated
from viewkeeper.evolution.map_va import MapVA
from viewkeeper.protocols.medwrap_mediator import MedwrapMediator
from viewkeeper.protocols.medwrap_wrapper import MedwrapWrapper
from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.ring_machines import Machine, RingSystem
from viewkeeper.simulator.engine.world import EngineWorld
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.medwrap.run import MedwrapOptions, medwrap_scenario
from viewkeeper.simulator.medwrap.world import MedwrapWorld
from viewkeeper.simulator.rings.run import RingOptions, ring_scenario
from viewkeeper.simulator.rings.world import RingWorld
from viewkeeper.simulator.run import judged, simulated

SEEDS = 100
FAILED_MIN = 99
# What `lab run` and `lab swarm` take, beside the size that the tests take.
SIZES = {"any": Size(), "chain": Size(3, 10, Shape.CHAIN), "wide": Size(5, 10, Shape.CHAIN)}


def failed(is_good: Callable[[int], bool]) -> int:
    """On how many seeds it is found out; one that contradicts itself, or waits for ever, counts too."""
    found = 0
    for seed in range(SEEDS):
        try:
            found += not is_good(seed)
        except InvariantViolated:
            found += 1
    return found


@pytest.mark.parametrize("search", [False, True], ids=["claims", "search"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("idle", [broken.Silent, broken.EmptyHanded])
def test_nothing_done_in_the_worlds_of_sweep(idle, size, search):
    assert (
        failed(lambda seed: simulated(idle, seed, SIZES[size], search=search).is_good) >= FAILED_MIN
    )


@pytest.mark.parametrize("idle", [broken.KeyedSilent, broken.KeyedEmptyHanded])
def test_nothing_done_in_the_worlds_of_strobe(idle):
    assert failed(lambda seed: simulated(idle, seed, Size(keyed=True)).is_good) >= FAILED_MIN


@pytest.mark.parametrize("idle", [broken.Silent, broken.EmptyHanded])
def test_nothing_done_in_the_worlds_of_medwrap(idle):
    def is_good(seed: int) -> bool:
        scenario = medwrap_scenario(seed)
        world = MedwrapWorld(
            scenario,
            MedwrapWrapper,
            lambda mediation, extent: MedwrapMediator(mediation, extent, idle),
        )
        run_to_end(world, SeededScheduler(seed))
        return judged(MedwrapOptions(), seed, scenario, world).is_good

    assert failed(is_good) >= FAILED_MIN


class Idle(Machine):
    """A ring's warehouse whose changes are emptied, or left out."""

    def __init__(self, warehouse: Machine, *, silent: bool) -> None:
        self.warehouse, self.silent = warehouse, silent

    def step(self, event):
        actions = self.warehouse.step(event)
        installs = [a for a in actions if isinstance(a, InstallChange)]
        others = tuple(a for a in actions if a not in installs)
        emptied = (
            () if self.silent else tuple(replace(i, change=i.change - i.change) for i in installs)
        )
        return emptied + others

    @property
    def is_idle(self) -> bool:
        return self.warehouse.is_idle


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "empty-handed"])
@pytest.mark.parametrize("protocol", ["ring", "quiescent-ring", "ring-terms"])
def test_nothing_done_in_the_worlds_of_rings(protocol, silent):
    options = RingOptions(protocol)

    def system(*given) -> RingSystem:
        made = options.system(*given)
        return replace(made, warehouse=Idle(made.warehouse, silent=silent))

    def is_good(seed: int) -> bool:
        scenario = ring_scenario(seed, size_of(seed), options)
        world = RingWorld(scenario, system, checked=False)
        run_to_end(world, SeededScheduler(seed))
        return judged(options, seed, scenario, world).is_good

    assert failed(is_good) >= FAILED_MIN


class EmptyHandedWorld(EngineWorld):
    """View managers compute nothing, and an adaptation finds no row; names are followed."""

    def _commit_epoch(self, group, commit):
        contents = tuple(
            {view: {n: b - b for n, b in found.items()} for view, found in each.items()}
            for each in commit.contents
        )
        super()._commit_epoch(group, replace(commit, contents=contents))

    def _fill(self, group, fill):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MapVA, "new_extent", lambda self, v0, delta_v: v0 - v0)
            super()._fill(group, fill)


class SilentMachine(GroupMachine):
    def step(self, event, now):
        return ()


@pytest.mark.parametrize("idle", [EmptyHandedWorld, SilentMachine])
@pytest.mark.parametrize("family", ["schema", "adaptations"])
def test_nothing_done_in_the_worlds_of_schema_changes(family, idle):
    make, world = (idle, EngineWorld) if issubclass(idle, GroupMachine) else (GroupMachine, idle)
    found = sum(is_found_out(family, seed, make, world) for seed in range(SEEDS))
    assert found >= FAILED_MIN


def test_a_run_says_how_many_of_its_transactions_changed_the_view():
    outcomes = [simulated(broken.Silent, seed, Size()) for seed in range(SEEDS)]
    assert all(outcome.changing > 0 for outcome in outcomes)
    changing = sum(outcome.changing for outcome in outcomes)
    transactions = sum(outcome.transactions for outcome in outcomes)
    # Most do; some do not, for protocols must get over those as well.
    assert 0.5 < changing / transactions < 0.95
    assert outcomes[0].as_dict()["changing"] == outcomes[0].changing
