"""Scenarios with several views: who maintains each, and what the sources will commit."""

from __future__ import annotations

import enum
import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Expression, Literal, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.consistency import SourceHistories
from viewkeeper.merging.global_transactions import Tie
from viewkeeper.merging.mixtures import Promise
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.recompute import Recompute
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.simulator.generator import Shape, Size, random_happening, random_relations
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.level import Level

RELATIONS_PER_VIEW_MAX = 3


class Painting(enum.Enum):
    """Which merge algorithm the managers of a scenario call for."""

    SPA = "spa"
    PA = "pa"
    COMPLETE_N = "complete-n"
    PASS_THROUGH = "pass-through"


@dataclass(frozen=True)
class ManagedView:
    """A view and its manager. ``every``: it is complete-N; ``periodic``: it replaces the view when
    its period is over; ``promised`` overrides what its protocol reaches."""

    definition: ViewDefinition
    protocol: type[Protocol]
    every: int = 1
    periodic: bool = False
    promised: Level | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def promise(self) -> Promise:
        level = min(self.protocol.level, Level.STRONG) if self.periodic else self.protocol.level
        return Promise(level if self.promised is None else self.promised, self.every)

    @property
    def manager(self) -> str:
        """A short name of its kind."""
        kind = f"{self.protocol.name}, periodic" if self.periodic else self.protocol.name
        return kind if self.every == 1 else f"{kind}, complete-{self.every}"


@dataclass(frozen=True)
class MergeScenario:
    """Views, initial contents, scripts; ``ties`` marks the parts of global transactions.

    Views that are ``added`` are not there from the start, views that are ``dropped`` not to the end.
    """

    views: tuple[ManagedView, ...]
    initial: Mapping[RelationName, Bag]
    scripts: Mapping[str, tuple[Transaction, ...]]
    ties: Mapping[tuple[str, int], Tie] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()

    def histories_of(self, views: tuple[str, ...]) -> SourceHistories:
        """What happened to the relations of these views, and nothing else, numbered anew."""
        read = {r for v in self.views if v.name in views for r in v.definition.relations}
        initial = {name: rows for name, rows in self.initial.items() if name in read}
        scripts: dict[str, list[Transaction]] = {name.source: [] for name in sorted(read)}
        for source, kept in scripts.items():
            for transaction in self.scripts.get(source, ()):
                changes = tuple(c for c in transaction.changes if c[0] in read)
                if changes:
                    kept.append(Transaction(source, len(kept) + 1, changes))
        return SourceHistories(initial, scripts)

    def views_tied(self) -> Iterator[frozenset[str]]:
        """Sets of views that one transaction, local or global, will change."""
        together: dict[object, set[str]] = {}
        for source, script in self.scripts.items():
            for transaction in script:
                tie = self.ties.get((source, transaction.number))
                key: object = (source, transaction.number) if tie is None else tie.id
                together.setdefault(key, set()).update(self.concerned(transaction))
        yield from (frozenset(views) for views in together.values() if len(views) > 1)

    def concerned(self, transaction: Transaction) -> tuple[str, ...]:
        changed = set(transaction.relations)
        return tuple(v.name for v in self.views if changed & set(v.definition.relations))


@dataclass(frozen=True)
class MergeSize:
    """How large a random scenario is; ``views`` 0 means two to six, by the seed."""

    views: int = 0
    sources: int = 3
    transactions: int = 6
    every: int = 3
    # How many pairs of transactions are made one global transaction.
    global_pairs: int = 0


def random_merge_scenario(seed: int, painting: Painting, size: MergeSize) -> MergeScenario:
    """The scenario that this seed means for these managers at this size."""
    rng = random.Random(f"merge scenario {seed}")
    shape = Size(sources=size.sources, transactions=size.transactions, shape=Shape.ANY)
    relations = random_relations(rng, shape)
    count = size.views or rng.randint(2, 6)
    definitions = [_definition(rng, f"v{n}", relations) for n in range(1, count + 1)]
    views = tuple(_managed(rng, definition, painting, size.every) for definition in definitions)
    if painting is Painting.PA and all(v.promise.level is Level.COMPLETE for v in views):
        views = (ManagedView(definitions[0], NestedSweep), *views[1:])
    if painting is Painting.COMPLETE_N and all(v.every == 1 for v in views):
        views = (ManagedView(definitions[0], Sweep, every=size.every), *views[1:])
    initial, scripts = random_happening(rng, shape, relations, definitions)
    ties = dict(_ties(rng, scripts, size.global_pairs))
    return MergeScenario(views, initial, scripts, ties)


def _definition(
    rng: random.Random, name: str, relations: Mapping[RelationName, Schema]
) -> ViewDefinition:
    """A join of a few of the relations; each view has its own."""
    count = rng.randint(1, min(RELATIONS_PER_VIEW_MAX, len(relations)))
    chosen = rng.sample(sorted(relations), count)
    occurrences = tuple(
        Occurrence(f"x{n}", relation, relations[relation]) for n, relation in enumerate(chosen, 1)
    )
    predicates: list[Expression] = []
    for left, right in itertools.pairwise(occurrences):
        operator = "<" if rng.random() < 0.15 else "="
        columns = Column(left.qualified("b")), Column(right.qualified("a"))
        predicates.append(Comparison(operator, *columns))
    if rng.random() < 0.3:
        column = Column(rng.choice(occurrences).qualified("a"))
        predicates.append(Comparison("<>", column, Literal(2, INTEGER)))
    first, last = occurrences[0], occurrences[-1]
    outputs = (Output("a", Column(first.qualified("a"))), Output("b", Column(last.qualified("b"))))
    return ViewDefinition(name, (Term(occurrences, tuple(predicates), outputs),))


def _managed(
    rng: random.Random, definition: ViewDefinition, painting: Painting, every: int
) -> ManagedView:
    complete = rng.choice((Sweep, BatchedSweep))
    match painting:
        case Painting.SPA:
            return ManagedView(definition, complete)
        case Painting.COMPLETE_N:
            return ManagedView(definition, complete, every=rng.choice((1, every)))
        case Painting.PASS_THROUGH:
            return ManagedView(definition, complete, promised=Level.CONVERGENT)
        case Painting.PA:
            protocol = rng.choice((Sweep, BatchedSweep, NestedSweep, NestedSweep, Recompute))
            periodic = protocol is Recompute and rng.random() < 0.5
            return ManagedView(definition, protocol, periodic=periodic)


def _ties(
    rng: random.Random, scripts: Mapping[str, tuple[Transaction, ...]], pairs: int
) -> Iterator[tuple[tuple[str, int], Tie]]:
    """Pairs of transactions of different sources, in whatever order the sources commit them."""
    free = {s: [t.number for t in script] for s, script in sorted(scripts.items()) if script}
    for number in range(1, pairs + 1):
        if len(free) < 2:
            return
        tie = Tie(f"g{number}", 2)
        for source in rng.sample(sorted(free), 2):
            chosen = free[source].pop(rng.randrange(len(free[source])))
            if not free[source]:
                del free[source]
            yield (source, chosen), tie
