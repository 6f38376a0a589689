"""Seeded runs of MEDWRAP and its rivals: three sources with one to three relations each.

`VIEWKEEPER_MEDWRAP_SEEDS=2000` runs that many seeds of each kind.
"""

from __future__ import annotations

import pytest

from slices import seeds
from viewkeeper.protocols.medwrap import Medwrap
from viewkeeper.protocols.medwrap_messages import Detection
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.medwrap.run import MedwrapOptions, medwrap_scenario, simulated_medwrap
from viewkeeper.simulator.run import simulated

SEEDS = seeds(64, "VIEWKEEPER_MEDWRAP_SEEDS", least=16)
CHUNKS = 4

FIFO, LOOSE = Network(), Network(fifo=False)
INVERTED = Network(fifo=False, inversions=True)
PRINTED = Detection.QUEUE_ORDER

KINDS = {
    "as printed": (MedwrapOptions(detection=PRINTED), FIFO),
    "no order": (MedwrapOptions(), LOOSE),
    "inversions": (MedwrapOptions(), INVERTED),
    "snapshots": (MedwrapOptions(snapshots=True), INVERTED),
    "nested": (MedwrapOptions(nested=True), LOOSE),
    "batches": (MedwrapOptions(batch_max=3), FIFO),
    "mre as printed": (MedwrapOptions(stores=True, detection=PRINTED), FIFO),
    "mre": (MedwrapOptions(stores=True), INVERTED),
}


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", KINDS)
def test_every_seed_reaches_its_level_with_conflicts_on_both_layers(kind: str, chunk: int) -> None:
    options, network = KINDS[kind]
    relational = between_sources = 0
    for seed in range(chunk, SEEDS, CHUNKS):
        outcome = simulated_medwrap(options, seed, network=network)
        assert outcome.is_good, f"{kind}, seed {seed}: {outcome.verdict}"
        relational += outcome.messages["relational_conflicts"]
        between_sources += outcome.messages["source_conflicts"]
    assert relational > 0
    assert between_sources > 0


@pytest.mark.parametrize("network", [FIFO, LOOSE, INVERTED], ids=["fifo", "loose", "inverted"])
@pytest.mark.parametrize("protocol", [Medwrap, Simplistic])
def test_as_one_view_manager_it_is_complete_in_the_world_of_all_protocols(
    protocol: type[Medwrap | Simplistic], network: Network
) -> None:
    for seed in range(SEEDS):
        outcome = simulated(protocol, seed, Size(shape=Shape.ANY), network)
        assert outcome.is_good, f"{protocol.name}, seed {seed}: {outcome.verdict}"


def test_sources_have_one_to_three_relations() -> None:
    numbers = set()
    for seed in range(30):
        relations = medwrap_scenario(seed).definition.relations
        sources = [name.source for name in relations]
        numbers |= {sources.count(source) for source in set(sources)}
    assert numbers == {1, 2, 3}


def test_without_the_claimed_cuts_the_checker_finds_the_same_level() -> None:
    for seed in range(6):
        outcome = simulated_medwrap(MedwrapOptions(), seed, network=LOOSE, search=True)
        assert outcome.is_good, f"seed {seed}: {outcome.verdict}"


def test_a_seed_means_one_run() -> None:
    first, second = (simulated_medwrap(MedwrapOptions(), 5, network=LOOSE) for _ in range(2))
    assert first.as_dict() == second.as_dict()
