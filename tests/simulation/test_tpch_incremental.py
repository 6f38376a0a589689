"""TPC-H's queries kept from changes: refreshes as the benchmark has them, and changed master data.

`tests/unit/views/test_tpch.py` compares what the whole queries mean with another engine; here every
transaction must leave what the whole query gives, by the checker.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from simulation.rich_runs import NETWORKS, run
from unit.views.tpch import CATALOG, QUERIES, contents
from viewkeeper.algebra import Bag
from viewkeeper.protocols.stores import SelfKeptView
from viewkeeper.simulator.run import judged
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.parser import parse_view
from viewkeeper.views.upkeep import Upkeep

REFRESHES = 20
ORDERS, LINES = RelationName("sales", "orders"), RelationName("sales", "lineitem")
Changes = list[tuple[RelationName, Bag]]


def view(path: Path) -> ViewDefinition:
    return parse_view(path.stem, path.read_text(), CATALOG)


def refreshed(definition: ViewDefinition, seed: int) -> Scenario:
    """Orders come and go with their lines; now and then another row is replaced by a new version."""
    rng = random.Random(f"refreshes {seed}")
    now, later = contents(seed), contents(seed + 1000)
    initial = {name: now[name] for name in definition.relations}
    scripts: dict[str, list[Transaction]] = {source: [] for source in definition.sources}
    for number in range(REFRESHES):
        changes = _replaced(rng, now, later) if number % 3 == 2 else _orders(rng, now, later)
        read = [(name, change) for name, change in changes if name in initial]
        for name, change in changes:
            now[name] = now[name] + change
        if read:
            script = scripts[read[0][0].source]
            script.append(Transaction(read[0][0].source, len(script) + 1, tuple(read)))
    return Scenario(definition, initial, {s: tuple(script) for s, script in scripts.items()})


def _orders(
    rng: random.Random, now: dict[RelationName, Bag], later: dict[RelationName, Bag]
) -> Changes:
    """Some orders with their lines become other ones with the same keys, or go altogether."""
    keys = {row[0] for row in rng.sample([row for row, _ in now[ORDERS].sorted()], 4)}
    come = keys if rng.random() < 0.7 else set()
    return [(n, _of(later[n], come) - _of(now[n], keys)) for n in (ORDERS, LINES)]


def _of(rows: Bag, orders: set) -> Bag:
    return Bag(rows.schema, ((row, count) for row, count in rows if row[0] in orders))


def _replaced(
    rng: random.Random, now: dict[RelationName, Bag], later: dict[RelationName, Bag]
) -> Changes:
    name = rng.choice(sorted(n for n in now if n not in (ORDERS, LINES)))
    old = rng.choice([row for row, _ in now[name].sorted()])
    new = next((row for row, _ in later[name].sorted() if row[0] == old[0]), old)
    return [(name, Bag(now[name].schema, [(old, -1), (new, 1)]))]


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_refresh_leaves_what_the_whole_query_gives(path):
    definition = view(path)
    assert Upkeep(definition).obstacles == ()
    different = 0
    for seed, network in enumerate(NETWORKS):
        scenario = refreshed(definition, seed)
        world = run(scenario, seed, network)
        assert judged(SelfKeptView, seed, scenario, world).is_good
        different = max(different, len(set(world.states)))
    assert different > 1, "the refreshes change nothing, so this shows nothing"
