"""Random rich views × random histories: after every transaction what SQLite computes anew.

300 views of 40 transactions each; with VIEWKEEPER_RICH_VIEWS another number (`make soak`).
"""

from __future__ import annotations

import itertools

import pytest

from simulation.broken_incremental import BROKEN
from simulation.rich import CLASSES, random_rich_scenario
from simulation.rich_runs import NETWORKS, Wrong, check, run
from simulation.rich_texts import TEMPLATES, random_text_scenario
from slices import seeds
from viewkeeper.errors import ViewkeeperError
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.recompute import Recompute
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.run import judged
from viewkeeper.simulator.world import World
from viewkeeper.views.upkeep import Upkeep

VIEWS = seeds(300, "VIEWKEEPER_RICH_VIEWS", least=30)
TRANSACTIONS = 40
CHUNKS = 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_transaction_leaves_what_sqlite_computes_anew(chunk):
    for seed in range(chunk, VIEWS, CHUNKS):
        scenario = random_rich_scenario(seed, TRANSACTIONS)
        world = run(scenario, seed, NETWORKS[seed // len(CLASSES) % len(NETWORKS)])
        try:
            check(scenario, world)
        except (Wrong, AssertionError) as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_seeds_have_all_they_should_have():
    """Every class, steps on steps, joined steps, self-joins, and transactions over several relations."""
    scenarios = [random_rich_scenario(seed, TRANSACTIONS) for seed in range(300)]
    upkeeps = [Upkeep(s.definition) for s in scenarios]
    terms = [term for s in scenarios for term in s.definition.all_terms]
    aggregates = [a for t in terms if t.grouping for a in t.grouping.aggregates]
    assert {len(s.definition.sources) for s in scenarios} == {1, 2, 3}
    assert {(a.function, a.distinct) for a in aggregates} == {
        *itertools.product(("count", "sum", "avg"), (False, True)),
        ("min", False),
        ("max", False),
    }
    assert any(len({o.name for o in t.occurrences}) < len(t.occurrences) for t in terms)
    assert any(t.grouping and not t.grouping.keys for t in terms)
    assert any(t.grouping and t.distinct for t in terms)
    assert any(u.keeps(r.name) for u in upkeeps for r in u.relations)
    assert any(len(r.reads) > 1 for u in upkeeps for r in u.relations)
    transactions = [t for s in scenarios for script in s.scripts.values() for t in script]
    assert any(len(t.changes) > 1 for t in transactions)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_wrong_variants_are_caught(broken):
    def is_caught(seed: int) -> bool:
        scenario = random_rich_scenario(seed, 20)
        try:
            check(scenario, run(scenario, seed, NETWORKS[0], broken))
        except (Wrong, AssertionError, ViewkeeperError):
            return True
        return False

    assert any(is_caught(seed) for seed in range(100))


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.thorough
def test_a_linear_view_asks_what_batched_sweep_asks_and_stores_nothing(network):
    for seed in range(40):
        scenario = random_scenario(seed, Size(transactions=8))
        plain = World(scenario, BatchedSweep, network)
        run_to_end(plain, SeededScheduler(seed))
        rich = run(scenario, seed, network)
        assert rich.counters == plain.counters
        assert rich.states == plain.states
        assert rich.protocol.held.contents == {}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_transaction_leaves_what_sqlite_makes_of_the_same_text(chunk):
    for seed in range(chunk, VIEWS // 3, CHUNKS):
        text, scenario = random_text_scenario(seed, TRANSACTIONS)
        world = run(scenario, seed, NETWORKS[seed // len(TEMPLATES) % len(NETWORKS)])
        try:
            check(scenario, world, text)
        except (Wrong, AssertionError) as error:
            raise AssertionError(f"seed {seed}, {text}: {error}") from error


def test_recompute_takes_every_view():
    for seed in range(5 * len(CLASSES)):
        scenario = random_rich_scenario(seed, 10)
        world = World(scenario, Recompute, NETWORKS[seed % len(NETWORKS)])
        run_to_end(world, SeededScheduler(seed))
        assert judged(Recompute, seed, scenario, world).is_good, f"seed {seed}"
