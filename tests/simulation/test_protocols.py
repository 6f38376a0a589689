"""2,000 seeds for each protocol: safety (its level, by the checker), then liveness (it comes to rest)."""

from __future__ import annotations

import itertools

import pytest

from slices import seeds
from viewkeeper.consistency import check_order
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import Outcome, simulated
from viewkeeper.simulator.world import World
from viewkeeper.views import Level

SEEDS = seeds(2000)
CHUNK = min(250, SEEDS)
# MEDWRAP and its rivals have seeds of their own, with sources of several relations.
ELSEWHERE = ("naive", "medwrap", "simplistic")
SOUND = [protocol for name, protocol in PROTOCOLS.items() if name not in ELSEWHERE]


def networks(protocol: type[Protocol]) -> list[Network]:
    """The networks under which the protocol promises its level."""
    found = [Network(fifo=True)]
    if not protocol.assumes.fifo:
        found.append(Network(fifo=False))
    if not protocol.assumes.no_inversions:
        found.append(Network(fifo=False, inversions=True))
    return found


def size_for(protocol: type[Protocol], shape: Shape = Shape.ANY) -> Size:
    assumes = protocol.assumes
    return Size(shape=shape, keyed=assumes.keys, one_source=assumes.one_source)


def replay(outcome: Outcome, network: Network) -> str:
    flags = ("" if network.fifo else " --no-fifo") + (" --inversions" if network.inversions else "")
    return (
        f"{outcome.problem}\nviewkeeper lab run --protocol {outcome.protocol} --shape any "
        f"--sources 3 --transactions 5 --seed {outcome.seed}{flags}"
    )


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.parametrize("protocol", SOUND, ids=lambda protocol: protocol.name)
def test_every_seed_reaches_the_level_of_its_paper(protocol, first):
    # Networks take turns over the seeds; every fourth seed ignores the cuts that were claimed.
    turns = itertools.cycle(networks(protocol))
    for seed, network in zip(range(first, first + CHUNK), turns, strict=False):
        outcome = simulated(protocol, seed, size_for(protocol), network, search=seed % 4 == 0)
        assert outcome.is_good, replay(outcome, network)


def test_naive_is_caught():
    naive = PROTOCOLS["naive"]
    caught = [seed for seed in range(100) if not simulated(naive, seed, size_for(naive)).is_good]
    assert len(caught) > 20


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("eca", Network(fifo=False)),
        ("eca", Network(inversions=True)),
        ("strobe", Network(fifo=False, inversions=True)),
        ("c-strobe", Network(fifo=False, inversions=True)),
    ],
)
def test_a_protocol_fails_where_its_assumption_does_not_hold(name, network):
    """The assumptions are needed: beyond them some seed is wrong, or the protocol refuses to go on."""
    protocol = PROTOCOLS[name]
    assert any(
        not simulated(protocol, seed, size_for(protocol), network).is_good for seed in range(400)
    )


@pytest.mark.thorough
def test_the_seeds_have_all_they_should_have():
    """Concurrency, wide transactions, self-joins, unions and NULLs do occur in the seeds."""
    scenarios = [random_scenario(seed, Size()) for seed in range(200)]
    terms = [term for s in scenarios for term in s.definition.terms]
    assert any(len(s.definition.terms) > 1 for s in scenarios)
    assert any(len({o.name for o in t.occurrences}) < len(t.occurrences) for t in terms)
    transactions = [t for s in scenarios for script in s.scripts.values() for t in script]
    assert any(len(t.changes) > 1 for t in transactions)
    assert any(None in row for t in transactions for _, rows in t.changes for row, _ in rows)
    changing = sum(
        simulated(PROTOCOLS["nested-sweep"], seed, Size()).states < 6 for seed in range(200)
    )
    assert changing > 40  # runs in which updates met and were absorbed


def test_nested_sweep_keeps_the_order_of_arrival_on_a_chain():
    """Section 6 of its paper says so. Beyond its model, where a transaction changes several relations of
    a source, absorbed updates overtake waiting ones: it promises the order nowhere else."""
    size = Size(sources=4, transactions=8, shape=Shape.CHAIN)
    for seed in range(40):
        scenario = random_scenario(seed, size)
        world = World(scenario, PROTOCOLS["nested-sweep"])
        run_to_end(world, SeededScheduler(seed))
        verdict = check_order(
            [scenario.definition],
            scenario.histories,
            world.delivered,
            [(state,) for state in world.states],
            world.claims,
        )
        assert verdict.meets(Level.STRONG), f"seed {seed}: {verdict.problem}"


def test_an_answer_that_misses_an_insertion_but_not_its_deletion_leads_to_keys_all_the_same():
    size = Size(sources=3, transactions=24, shape=Shape.ANY, spread=True)
    network = Network(fifo=False, inversions=True)
    outcome = simulated(PROTOCOLS["batched-sweep"], 1363, size, network)
    assert outcome.is_good, outcome.verdict
