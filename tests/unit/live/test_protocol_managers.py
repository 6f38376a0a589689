"""Every protocol as a live manager: cuts ahead of the job, gaps in what they show, batches of any size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slices import seeds
from unit.live.live_world import LiveWorld
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.errors import UsageError
from viewkeeper.live.managers import buffering
from viewkeeper.live.managers.buffering import BufferedManager
from viewkeeper.live.questions.batch_end import BatchEnd
from viewkeeper.protocols.medwrap import Medwrap
from viewkeeper.protocols.ordered_medwrap import OrderedMedwrap
from viewkeeper.protocols.registry import LIVE, PERIODIC, VIRTUAL
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.simulator.medwrap.run import medwrap_scenario
from viewkeeper.views import Level

SEEDS = range(seeds(12, least=4))
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
    assert is_right(world)
    assert world.manager.counts.transactions == len(world.arrivals)


def test_a_protocol_that_has_no_manager_is_refused_and_not_run_as_another(monkeypatch):
    """It ran as MEDWRAP, whatever it was."""
    monkeypatch.setitem(
        LIVE, "forgotten", replace(LIVE["medwrap"], other_name="forgotten", manager=None)
    )
    with pytest.raises(UsageError) as caught:
        world_of("forgotten", 0)
    assert caught.value.code == "unknown-protocol"
    assert "medwrap, mre" in caught.value.detail


def is_right(world: LiveWorld) -> bool:
    """Whether all states are right that a manager of its level promises."""
    states = world.run(batch_max=5)
    if world.manager.level is Level.COMPLETE:
        return states == world.states
    return all(state in world.states for state in states) and states[-1] == world.states[-1]


@pytest.mark.parametrize("name", ["sweep", "nested-sweep", "strobe", "eca", "medwrap", "ring"])
def test_answers_from_cuts_that_are_ahead_would_be_noticed(name, monkeypatch):
    monkeypatch.setattr(BufferedManager, "ahead", lambda manager, questions: ())
    assert not all(is_right(world_of(name, seed)) for seed in SEEDS)


def test_keys_whose_signs_cancel_would_be_missed(monkeypatch):
    def keys(end, partial, by_column):
        outputs = tuple(Output(theirs, Column(mine)) for theirs, mine in by_column.items())
        return end.questions.staging.taken(partial.select(outputs).support())

    monkeypatch.setattr(BatchEnd, "_keys", keys)
    assert not all(is_right(world_of("simplistic", seed)) for seed in SEEDS)


def test_reports_that_overtake_each_other_would_be_noticed(monkeypatch):
    monkeypatch.setattr(OrderedMedwrap, "due", Medwrap.due)
    assert not all(is_right(world_of("medwrap", seed)) for seed in SEEDS)


def test_a_large_batch_is_handed_on_in_pieces(monkeypatch):
    monkeypatch.setattr(buffering, "TOGETHER_MAX", 2)
    for seed in SEEDS:
        assert is_right(world_of("eca", seed))
        assert is_right(world_of("medwrap", seed))


@pytest.mark.thorough
def test_medwrap_asks_a_source_once_where_simplistic_asks_each_of_its_relations():
    asked = {"medwrap": 0, "simplistic": 0, "mre": 0}
    for name in asked:
        for seed in SEEDS:
            world = world_of(name, seed)
            # One transaction at a time: nothing has to be compensated for.
            world.run(batch_max=1)
            asked[name] += world.manager.counts.questions
    assert asked["mre"] < asked["medwrap"] < asked["simplistic"]
