"""SWEEP's Table 1, measured: which level each protocol reaches, and what an update costs.

Costs are counted in schedules that are built, not drawn by lot: one update starts, the warehouse asks,
and before any answer is computed a number of other updates commit and arrive. Everything joins with
everything, so that no interference is without effect. Two kinds of interference, because protocols
differ in which one hurts them: insertions, and deletions of rows that the update would have met.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.world import WAREHOUSE, Commit, Deliver
from viewkeeper.simulator.run import judged, simulated
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.schedule import settle
from viewkeeper.simulator.world import World
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.level import Level

SOURCES = (2, 3, 4, 5, 6)
CONCURRENT = (0, 1, 2, 3, 4, 5, 6)
# The number of sources while the number of concurrent updates grows.
SOURCES_FIXED = 5
LEVEL_SEEDS = range(1, 41)

_SCHEMA = Schema.of(id=INTEGER, a=INTEGER, b=INTEGER)


class Interference(enum.Enum):
    """What the concurrent updates do."""

    INSERTIONS = "insertions"
    DELETIONS = "deletions"


@dataclass(frozen=True)
class Claim:
    """A row of the paper's Table 1, in our words."""

    level: Level
    messages: str
    remark: str


CLAIMS: dict[str, Claim] = {
    "sweep": Claim(Level.COMPLETE, "O(n)", "corrects locally"),
    "nested-sweep": Claim(Level.STRONG, "O(n)", "corrects locally; shares work among updates"),
    "c-strobe": Claim(Level.COMPLETE, "O(n!)", "keys in the view; does not scale"),
    "strobe": Claim(Level.STRONG, "O(n)", "keys in the view; waits for quiet"),
    "eca": Claim(Level.STRONG, "O(1)", "one source; message size quadratic; waits for quiet"),
}
# Not in the table, for scale: the paper's own variant, and what people do without either.
COMPARED = (*CLAIMS, "parallel-sweep", "recompute")


@dataclass(frozen=True)
class Cost:
    """What a built schedule cost; ``sources`` counts relations where all are at one source."""

    protocol: str
    sources: int
    concurrent: int
    interference: Interference
    updates: int
    queries: int
    parts: int
    rows_asked: int
    states: int

    @property
    def queries_per_update(self) -> float:
        return self.queries / self.updates


@dataclass(frozen=True)
class Measured:
    """All that was measured, for all protocols."""

    levels: dict[str, Level]
    alone: tuple[Cost, ...]
    by_sources: tuple[Cost, ...]
    by_deletions: tuple[Cost, ...]
    by_insertions: tuple[Cost, ...]
    two_relations: tuple[Cost, ...]


def compared(protocols: Sequence[str] = COMPARED) -> Measured:
    """Measure everything; takes a few seconds."""
    chosen = [PROTOCOLS[name] for name in protocols]
    insertions, deletions = Interference.INSERTIONS, Interference.DELETIONS
    return Measured(
        levels={protocol.name: reached_level(protocol) for protocol in chosen},
        alone=tuple(cost(p, n, 0, insertions) for p in chosen for n in SOURCES),
        by_sources=tuple(cost(p, n, n - 1, deletions) for p in chosen for n in SOURCES),
        by_deletions=tuple(
            cost(p, SOURCES_FIXED, c, deletions) for p in chosen for c in CONCURRENT
        ),
        by_insertions=tuple(
            cost(p, SOURCES_FIXED, c, insertions) for p in chosen for c in CONCURRENT
        ),
        two_relations=tuple(
            cost(p, 3, c, insertions, relations_changed=2) for p in chosen for c in CONCURRENT
        ),
    )


def reached_level(protocol: type[Protocol], seeds: range = LEVEL_SEEDS) -> Level:
    """The lowest level that the checker found in random runs; nothing that is claimed is believed."""
    size = Size(3, 8, Shape.CHAIN, protocol.assumes.keys, protocol.assumes.one_source)
    return min(simulated(protocol, seed, size, search=True).verdict.level for seed in seeds)


def cost(
    protocol: type[Protocol],
    sources: int,
    concurrent: int,
    interference: Interference,
    relations_changed: int | None = None,
) -> Cost:
    """One update, and ``concurrent`` others that arrive before its first answer is computed.

    They go round the other relations, or, with ``relations_changed``, round only so many relations,
    the update's own included.
    """
    scenario, order = _interfering(
        sources,
        _changed(sources, concurrent, relations_changed),
        interference,
        one_source=protocol.assumes.one_source,
    )
    world = World(scenario, protocol)
    for source in order:
        world.take(Commit(source))
        # At once: the warehouse asks about the first, and hears of the others while it waits.
        world.take(Deliver(source, WAREHOUSE))
    settle(world)
    world.require_finished()
    outcome = judged(protocol, 0, scenario, world)
    invariant(outcome.is_good, f"{protocol.name} missed its level in a built schedule")
    counted = world.counters
    return Cost(
        protocol=protocol.name,
        sources=sources,
        concurrent=concurrent,
        interference=interference,
        updates=outcome.transactions,
        queries=counted["queries"],
        parts=counted["parts"],
        rows_asked=counted["rows_asked"],
        states=len(world.states) - 1,
    )


# -- the scenario -----------------------------------------------------------------------------------


def _changed(sources: int, concurrent: int, relations_changed: int | None) -> list[int]:
    """Which relation each update changes, the first one's first."""
    if relations_changed is not None:
        return [1 + number % relations_changed for number in range(concurrent + 1)]
    return [1] + [2 + number % (sources - 1) for number in range(concurrent)]


def _interfering(
    sources: int, changed: Sequence[int], interference: Interference, *, one_source: bool
) -> tuple[Scenario, list[str]]:
    """The scenario, and the sources in the order in which they commit."""
    names = [
        RelationName("s", f"r{i}") if one_source else RelationName(f"s{i}", "r")
        for i in range(1, sources + 1)
    ]
    rows_each = 1 + max(changed.count(i) for i in range(1, sources + 1))
    initial = {
        name: Bag.of(_SCHEMA, ((i * 100 + k, 0, 0) for k in range(rows_each)))
        for i, name in enumerate(names, 1)
    }
    scripts: dict[str, list[Transaction]] = {name.source: [] for name in names}
    for number, change in enumerate(_rows_changed(changed, interference)):
        name = names[changed[number] - 1]
        script = scripts[name.source]
        script.append(Transaction(name.source, len(script) + 1, ((name, change),)))
    frozen = {source: tuple(script) for source, script in scripts.items()}
    order = [names[i - 1].source for i in changed]
    return Scenario(_chain(names), initial, frozen), order


def _rows_changed(changed: Sequence[int], interference: Interference) -> Iterator[Bag]:
    """The first update inserts a row; each later one inserts one too, or deletes one that is there."""
    for number, relation in enumerate(changed):
        times = changed[:number].count(relation)
        if number == 0 or interference is Interference.INSERTIONS:
            yield Bag(_SCHEMA, [((relation * 100 + 50 + number, 0, 0), 1)])
        else:
            yield Bag(_SCHEMA, [((relation * 100 + times, 0, 0), -1)])


def _chain(names: Sequence[RelationName]) -> ViewDefinition:
    """Each relation joined to the next; the view shows all keys, which only some protocols need."""
    occurrences = tuple(
        Occurrence(f"x{index}", name, _SCHEMA, ("id",)) for index, name in enumerate(names, 1)
    )
    predicates = tuple(
        Comparison("=", Column(left.qualified("b")), Column(right.qualified("a")))
        for left, right in itertools.pairwise(occurrences)
    )
    outputs = tuple(Output(f"{o.alias}_id", Column(o.qualified("id"))) for o in occurrences)
    return ViewDefinition("v", (Term(occurrences, predicates, outputs),))
