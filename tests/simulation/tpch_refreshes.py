"""Histories for TPC-H's queries: refreshes as the benchmark has them, and changed master data."""

from __future__ import annotations

import random
from pathlib import Path

from unit.sql.tpch import CATALOG, contents
from viewkeeper.algebra import Bag
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName, ViewDefinition

REFRESHES = 20
ORDERS, LINES = RelationName("sales", "orders"), RelationName("sales", "lineitem")
Tables = dict[RelationName, Bag]
Changes = list[tuple[RelationName, Bag]]


def view(path: Path) -> ViewDefinition:
    return parse_view(path.stem, path.read_text(), CATALOG)


def refreshed(definition: ViewDefinition, seed: int, scale: int = 1) -> Scenario:
    """Orders come and go with their lines; now and then another row is replaced by a new version.

    Each of the refreshes changes something that the view reads.
    """
    rng = random.Random(f"refreshes {seed}")
    now, later = contents(seed, scale), contents(seed + 1000, scale)
    initial = {name: now[name] for name in definition.relations}
    scripts: dict[str, list[Transaction]] = {source: [] for source in definition.sources}
    number = 0
    while sum(map(len, scripts.values())) < REFRESHES:
        changes = _replaced(rng, now, later, scale) if number % 3 == 2 else _orders(rng, now, later)
        read = [(name, change) for name, change in changes if name in initial]
        for name, change in changes:
            now[name] = now[name] + change
        if any(not change.is_empty() for _, change in read):
            script = scripts[read[0][0].source]
            script.append(Transaction(read[0][0].source, len(script) + 1, tuple(read)))
        number += 1
    return Scenario(definition, initial, {s: tuple(script) for s, script in scripts.items()})


def _orders(rng: random.Random, now: Tables, later: Tables) -> Changes:
    """Some orders with their lines become other ones with the same keys, or go altogether."""
    known = {row[0] for tables in (now, later) for row, _ in tables[ORDERS].sorted()}
    keys = set(rng.sample(sorted(known), 4))  # type: ignore[type-var]
    come = keys if rng.random() < 0.7 else set()
    return [(n, _of(later[n], come) - _of(now[n], keys)) for n in (ORDERS, LINES)]


def _of(rows: Bag, orders: set) -> Bag:
    return Bag(rows.schema, ((row, count) for row, count in rows if row[0] in orders))


def _replaced(rng: random.Random, now: Tables, later: Tables, rows: int) -> Changes:
    name = rng.choice(sorted(n for n in now if n not in (ORDERS, LINES)))
    known = [row for row, _ in now[name].sorted()]
    change = Bag(now[name].schema)
    for old in rng.sample(known, min(rows, len(known))):
        new = next((row for row, _ in later[name].sorted() if row[0] == old[0]), old)
        change = change + Bag(change.schema, [(old, -1), (new, 1)])
    return [(name, change)]
