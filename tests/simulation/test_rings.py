"""Seeded runs of the ring protocols: safety and the proof's invariants at every step, then liveness.

The channels have no order at all. `VIEWKEEPER_RING_SEEDS=2000` runs that many seeds of each kind.
"""

from __future__ import annotations

import pytest

from slices import seeds
from viewkeeper.protocols.quiescent_ring import Refresh
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.rings.run import (
    RingOptions,
    ring_scenario,
    simulated_ring,
)
from viewkeeper.simulator.rings.world import Demands, RingWorld, explored
from viewkeeper.views.level import Level

SEEDS = seeds(96, "VIEWKEEPER_RING_SEEDS", least=4)
CHUNKS = 4

KINDS = {
    "ring": RingOptions("ring"),
    "ring, one at a time": RingOptions("ring", one_at_a_time=True),
    "quiescent": RingOptions("quiescent-ring"),
    "quiescent, one at a time": RingOptions("quiescent-ring", one_at_a_time=True),
    "quiescent, periodic": RingOptions(
        "quiescent-ring", refresh=Refresh.PERIODIC, queries=2, ticks=3
    ),
    "quiescent, on query": RingOptions("quiescent-ring", refresh=Refresh.ON_QUERY, queries=4),
    "terms": RingOptions("ring-terms"),
    "terms, one at a time": RingOptions("ring-terms", one_at_a_time=True),
}


def size_of(seed: int) -> Size:
    """Two to four sources; mostly any kind of view, sometimes the chain of the papers."""
    shape = Shape.ANY if seed % 4 else Shape.CHAIN
    return Size(sources=2 + seed % 3, transactions=8, shape=shape)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", KINDS)
def test_every_state_is_a_view_in_order_and_all_updates_arrive(kind: str, chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        outcome = simulated_ring(KINDS[kind], seed, size_of(seed))
        assert outcome.is_good, f"{kind}, seed {seed}: {outcome.verdict}"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("quiescent")])
def test_after_the_last_update_a_quiescent_ring_is_silent(kind: str) -> None:
    options = KINDS[kind]
    for seed in range(8):
        scenario = ring_scenario(seed, size_of(seed), options)
        world = RingWorld(scenario, options.system, options.demands)
        run_to_end(world, SeededScheduler(seed))
        assert world.on_the_way == []
        assert world.tokens == ()


def test_without_the_claimed_cuts_the_checker_finds_the_same_level() -> None:
    for seed in range(8):
        outcome = simulated_ring(KINDS["quiescent"], seed, size_of(seed), search=True)
        assert outcome.verdict.meets(Level.STRONG), f"seed {seed}: {outcome.verdict}"


def test_a_seed_means_one_run() -> None:
    first, second = (simulated_ring(KINDS["terms"], 7, size_of(7)) for _ in range(2))
    assert first.as_dict() == second.as_dict()


def test_gathering_skips_states_that_one_at_a_time_shows() -> None:
    levels = {
        simulated_ring(KINDS["terms"], seed, size_of(seed)).verdict.level for seed in range(9)
    }
    assert Level.STRONG in levels


@pytest.mark.parametrize("refresh", [Refresh.PERIODIC, Refresh.ON_QUERY])
def test_in_every_interleaving_a_refresh_by_the_warehouse_comes_to_rest(refresh: Refresh) -> None:
    options = RingOptions("quiescent-ring", refresh=refresh)
    demands = Demands(queries=1) if refresh is Refresh.ON_QUERY else Demands(ticks=1)
    scenario = ring_scenario(3, Size(sources=2, transactions=2, shape=Shape.CHAIN), options)
    assert explored(RingWorld(scenario, options.system, demands)).ends >= 1
