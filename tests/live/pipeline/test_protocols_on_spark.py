"""Live protocols whose every row goes through Spark, from job to job with other files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unit.live.live_world import LiveWorld
from viewkeeper.protocols.registry import LIVE
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.views import Level

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# Each of its transactions changes the view.
SEED = 4


@pytest.mark.parametrize(
    "name", ["nested-sweep", "c-strobe", "ring", "medwrap", "mre", "recompute"]
)
def test_a_protocol_is_right_when_nothing_is_small_enough_for_this_process(
    name, spark, monkeypatch
):
    # So that Spark has more to do than to read rows that travel inside the plan.
    monkeypatch.setattr("viewkeeper.spark.staged.IN_PLAN_ROWS_MAX", 1)
    size = Size(sources=2, transactions=4, shape=Shape.CHAIN, keyed=name == "c-strobe")
    scenario = random_scenario(SEED, size)
    definition = replace(scenario.definition, protocol=name, level=LIVE[name].level)
    world = LiveWorld(scenario, definition, SEED, spark)
    states = world.run(batch_max=3)
    if world.manager.level is Level.COMPLETE:
        assert states == world.states
    else:
        assert all(state in world.states for state in states)
    assert states[-1] == world.states[-1] != world.states[0]
