"""Relations that a view keeps a copy of: their sources are not asked, and every state is right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from simulation.broken_incremental import BROKEN_COPIES
from simulation.rich import CLASSES, random_rich_scenario
from simulation.rich_runs import NETWORKS, Wrong, check, run
from viewkeeper.errors import ViewkeeperError
from viewkeeper.protocols.messages import AskSource
from viewkeeper.protocols.stores import SelfKeptView
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.views.definition import RelationName

SEEDS = range(6 * len(CLASSES))


def keeping(scenario: Scenario, names: tuple[RelationName, ...]) -> Scenario:
    """The same scenario, with a view that keeps these relations."""
    settings = (("keep", ", ".join(map(str, names))),)
    return replace(scenario, definition=replace(scenario.definition, settings=settings))


def some_kept(seed: int, transactions: int = 20) -> tuple[Scenario, tuple[RelationName, ...]]:
    scenario = random_rich_scenario(seed, transactions)
    rng = random.Random(f"kept {seed}")
    relations = scenario.definition.relations
    names = tuple(rng.sample(relations, rng.randint(1, len(relations))))
    return keeping(scenario, names), names


class Asking(SelfKeptView):
    """Notes the relations that sources are asked for."""

    def step(self, event):
        actions = super().step(event)
        self.asked = getattr(self, "asked", set()) | {
            self.occurrence((part.term, part.alias)).name
            for action in actions
            if isinstance(action, AskSource)
            for part in action.parts
        }
        return actions


def test_every_transaction_is_right_and_no_source_is_asked_for_what_is_kept():
    asked_for_others = 0
    for seed in SEEDS:
        scenario, names = some_kept(seed)
        world = run(scenario, seed, NETWORKS[seed % len(NETWORKS)], Asking)
        try:
            check(scenario, world)
        except (Wrong, AssertionError) as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert world.protocol.asked.isdisjoint(names)
        asked_for_others += bool(world.protocol.asked)
    assert asked_for_others


def test_a_view_that_keeps_everything_asks_nobody():
    would_ask = 0
    for seed in SEEDS:
        plain = random_rich_scenario(seed, 10)
        world = run(plain, seed, NETWORKS[0], Asking)
        scenario = keeping(plain, plain.definition.relations)
        itself = run(scenario, seed, NETWORKS[seed % len(NETWORKS)], Asking)
        check(scenario, itself)
        assert itself.protocol.asked == set()
        would_ask += bool(world.protocol.asked)
    assert would_ask > len(SEEDS) // 3


@pytest.mark.parametrize("broken", BROKEN_COPIES, ids=lambda broken: broken.__name__)
def test_wrong_variants_are_caught(broken):
    def is_caught(seed: int) -> bool:
        scenario, _ = some_kept(seed)
        network = NETWORKS[seed % len(NETWORKS)]
        try:
            check(scenario, run(scenario, seed, network, broken))
        except (Wrong, AssertionError, ViewkeeperError):
            return True
        return False

    assert any(is_caught(seed) for seed in SEEDS)
