"""MEDWRAP's cost tables, counted from runs, beside the formulas of the paper.

Paper: MEDWRAP (2002), section 5. N sources, Z relations in all, X relational conflicts at every source
while it is asked on behalf of one update. Counted for that one update, up to its view change:

| here | the paper | counted |
|---|---|---|
| ``source_reads`` | T_i | questions that sources answered |
| ``wrapper_delays`` | T_w | messages that wrappers took in: updates, queries, answers of sources |
| ``mediator_delays`` | T_m | messages that the mediator took in, and queries it sent |
| ``stored_rows`` | ISV | rows that are kept beside the view before anything changes; ``view_rows`` is MV |

The paper derives its formulas in a report that we don't have; where counts and formulas differ, the
docs say why. Every approach runs the same history.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import invariant
from viewkeeper.protocols.inbox import AnswerMessage
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.simulator.kernel.world import WAREHOUSE, Commit, Deliver, Network
from viewkeeper.simulator.medwrap.run import MedwrapOptions
from viewkeeper.simulator.medwrap.world import MEDIATOR, MedwrapWorld, WrapperNode, wrapper_of
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

SCHEMA = Schema.of(a=INTEGER, b=INTEGER)
ROWS_PER_RELATION = 10


@dataclass(frozen=True)
class Counted:
    """What one update cost."""

    source_reads: int
    wrapper_delays: int
    mediator_delays: int
    view_rows: int
    stored_rows: int


@dataclass(frozen=True)
class MedwrapCost:
    """One row of the table: an approach at given N, Z and X, counted and by formula."""

    approach: str
    sources: int
    relations: int
    conflicts: int
    counted: Counted
    paper_source_reads: int
    paper_wrapper_delays: int
    paper_mediator_delays: int

    def as_dict(self) -> dict[str, object]:
        return {k: v for k, v in asdict(self).items() if k != "counted"} | asdict(self.counted)


def medwrap_costs(
    sources: Iterable[int] = (2, 3, 4),
    relations_per_source: Iterable[int] = (1, 2, 3),
    conflicts: Iterable[int] = (0, 1, 2),
) -> list[MedwrapCost]:
    """The table for every combination, all three approaches."""
    table = []
    for n, m, x in itertools.product(sources, relations_per_source, conflicts):
        z = n * m
        scenario = cost_scenario(n, m, x)
        for approach, counted, formula in (
            ("medwrap", _mediated(MedwrapOptions(), scenario, x), _medwrap_formula(n, x)),
            ("mre", _mediated(MedwrapOptions(stores=True), scenario, x), _mre_formula(n, x)),
            ("simplistic", _simplistic(scenario, x), _simplistic_formula(z)),
        ):
            table.append(MedwrapCost(approach, n, z, x, counted, *formula))
    return table


# The paper's table, as (T_i, T_w, T_m).


def _medwrap_formula(n: int, x: int) -> tuple[int, int, int]:
    return n + 2 * x, 2 * n + 6 * x - 1, 2 * n - 1


def _mre_formula(n: int, x: int) -> tuple[int, int, int]:
    return x + 1, 2 * n + 3 * x + 1, 2 * n - 1


def _simplistic_formula(z: int) -> tuple[int, int, int]:
    return 2 * z, 2 * z - 1, 2 * z - 1


def cost_scenario(sources: int, relations_per_source: int, conflicts: int) -> Scenario:
    """A chain over all relations; the first source has one update, then all have ``conflicts``.

    Conflicts change the last relation of their source, the update the first one.
    """
    names = [
        RelationName(f"s{source:02}", f"r{relation}")
        for source in range(1, sources + 1)
        for relation in range(1, relations_per_source + 1)
    ]
    occurrences = tuple(Occurrence(f"x{i}", name, SCHEMA) for i, name in enumerate(names, 1))
    predicates = tuple(
        Comparison("=", Column(left.qualified("b")), Column(right.qualified("a")))
        for left, right in itertools.pairwise(occurrences)
    )
    outputs = (Output("a", Column("x1.a")), Output("b", Column(f"x{len(names)}.b")))
    row = Bag.of(SCHEMA, [(0, 0)])
    scripts: dict[str, tuple[Transaction, ...]] = {}
    for source in dict.fromkeys(name.source for name in names):
        first, last = (
            next(name for name in order if name.source == source)
            for order in (names, reversed(names))
        )
        changed = [first] if not scripts else []
        changed += [last] * conflicts
        scripts[source] = tuple(
            Transaction(source, number, ((name, row),)) for number, name in enumerate(changed, 1)
        )
    rows = Bag.of(SCHEMA, [(i, i) for i in range(ROWS_PER_RELATION)])
    definition = ViewDefinition("v", (Term(occurrences, predicates, outputs),))
    return Scenario(definition, dict.fromkeys(names, rows), scripts)


# -- through wrappers and a mediator -----------------------------------------------------------------


def _mediated(options: MedwrapOptions, scenario: Scenario, conflicts: int) -> Counted:
    """One update through MEDWRAP or MRE; conflicts happen when a source is about to answer."""
    world = options.world(scenario, Network())
    stored = rows_held(world.wrappers)
    first, *_ = world.sources
    world.take(Commit(first))
    world.take(Deliver(first, wrapper_of(first)))
    _answered_with_conflicts(world, first, conflicts)
    while len(world.states) == 1:
        (asked,) = (name for name in world.sources if world.channels[MEDIATOR, wrapper_of(name)])
        world.take(Deliver(MEDIATOR, wrapper_of(asked)))
        _answered_with_conflicts(world, asked, conflicts)
    counters = world.counters
    # The conflicting updates' own arrival at their wrappers is a cost of theirs.
    wrappers = [node for node in world.nodes.values() if isinstance(node, WrapperNode)]
    foreign = sum(node.inbox.delivered for node in wrappers) - 1
    return Counted(
        source_reads=counters["source_reads"],
        wrapper_delays=counters["wrapper_messages"] - foreign,
        mediator_delays=counters["mediator_messages"] + counters["queries"],
        view_rows=world.states[-1].total,
        stored_rows=stored,
    )


def _answered_with_conflicts(world: MedwrapWorld, source: str, conflicts: int) -> None:
    """Let the conflicts happen, then the source answer, until the mediator has the wrapper's result."""
    for _ in range(conflicts):
        world.take(Commit(source))
    wrapper = wrapper_of(source)
    while not world.channels[wrapper, MEDIATOR]:
        # Questions first: FIFO then brings all conflicting updates before any answer.
        asked = bool(world.channels[wrapper, source])
        world.take(Deliver(wrapper, source) if asked else Deliver(source, wrapper))
    world.take(Deliver(wrapper, MEDIATOR))


# -- through the simplistic approach -----------------------------------------------------------------


def _simplistic(scenario: Scenario, conflicts: int) -> Counted:
    world = World(scenario, Simplistic)
    stored = rows_held(world.protocol)
    first, *others = world.sources
    world.take(Commit(first))
    world.take(Deliver(first, WAREHOUSE))
    questions = answers = 0
    for source in (first, *others):
        for _ in range(conflicts):
            world.take(Commit(source))
    while len(world.states) == 1:
        asked = next((s for s in world.sources if world.channels[WAREHOUSE, s]), None)
        invariant(asked is not None, "the simplistic approach waits for no one")
        source = str(asked)
        world.take(Deliver(WAREHOUSE, source))
        questions += 1
        while channel := world.channels[source, WAREHOUSE]:
            answers += isinstance(channel[0], AnswerMessage)
            world.take(Deliver(source, WAREHOUSE))
    # The update, each question and each answer pass a wrapper; the mediator gets or sends each of them.
    delays = 1 + questions + answers
    return Counted(questions, delays, delays, world.states[-1].total, stored)


def rows_held(machine: object) -> int:
    """How many rows a machine, and all that it is made of, keeps in relations."""
    seen: set[int] = set()
    waiting, rows = [machine], 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Bag):
            rows += each.total
        elif isinstance(each, Mapping):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset | deque):
            waiting += each
        elif type(each).__module__.startswith("viewkeeper."):
            waiting += [getattr(each, name, None) for name in _attributes(each)]
    return rows


def _attributes(thing: object) -> Iterable[str]:
    slots = (name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()))
    return (*getattr(thing, "__dict__", ()), *slots)
