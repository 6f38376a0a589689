"""Every protocol as a live manager: cuts ahead of the job, gaps in what they show, batches of any size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unit.runtime.live_world import LiveWorld
from viewkeeper.protocols.choice import LIVE, PERIODIC, VIRTUAL
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.simulator.medwrap_run import medwrap_scenario
from viewkeeper.views import Level

SEEDS = range(12)
KEYED = ("strobe", "c-strobe")
ONE_TERM = ("ring", "quiescent-ring")
KEPT = [name for name in LIVE if name not in (PERIODIC, VIRTUAL)]


def world_of(name: str, seed: int) -> LiveWorld:
    if name in ("medwrap", "mre", "simplistic"):
        scenario = medwrap_scenario(seed, transactions=6)
    elif name == "eca":
        scenario = random_scenario(seed, Size(transactions=8, one_source=True))
    elif name in ONE_TERM:
        scenario = random_scenario(seed, Size(transactions=10, shape=Shape.STAR))
    else:
        scenario = random_scenario(seed, Size(transactions=10, keyed=name in KEYED))
    definition = replace(scenario.definition, protocol=name, level=LIVE[name].level)
    return LiveWorld(scenario, definition, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", KEPT)
def test_a_live_protocol_reaches_the_right_state_after_every_job(name, seed):
    world = world_of(name, seed)
    states = world.run(batch_max=5)
    if world.manager.level is Level.COMPLETE:
        assert states == world.states
    else:
        assert states[-1] == world.states[-1]
        assert all(state in world.states for state in states)
    assert world.manager.counts.transactions == len(world.arrivals)
