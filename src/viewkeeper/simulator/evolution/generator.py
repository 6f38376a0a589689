"""Random scenarios with schema changes, from a seed.

Some relations that a view joins in a chain; for each of them one or two that can stand for it, and others
that can stand for those; what the view can do without; and scripts in which data and schemas change.
Names come from a small pool and are used again, so that a rename may give a column the name that another
one had. Values are few, so that rows meet.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import (
    Arithmetic,
    Column,
    Comparison,
    Expression,
    Literal,
    Output,
)
from viewkeeper.algebra.types import INTEGER
from viewkeeper.evolution.knowledge import Containment, JoinConstraint, Knowledge, Replacement
from viewkeeper.evolution.preferences import Parts, Preferences
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.simulator.evolution.scenario import EvolutionScenario
from viewkeeper.simulator.evolution.scripts import ScriptWriter
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

VALUES = (0, 1, 2)
ROWS_MAX = 4
ATTRIBUTES = ("id", "a", "b")
# So many data changes at least can be seen in the view before it loses something that it reads.
SEEN_MIN = 5
# A world in which fewer can be seen is drawn again, at most so often.
WORLDS_DRAWN_MAX = 100


@dataclass(frozen=True)
class EvolutionSize:
    """How large a random scenario is."""

    sources: int = 3
    relations: int = 3
    updates: int = 14
    # How many of the updates are schema changes.
    schema_share: float = 0.4


def random_evolution(seed: int, size: EvolutionSize = EvolutionSize()) -> EvolutionScenario:
    """The scenario that this seed means at this size."""
    rng = random.Random(f"evolution {seed}")
    for _ in range(WORLDS_DRAWN_MAX):
        generator = _Generator(rng, size)
        scenario = generator.scenario()
        if generator.seen >= SEEN_MIN:
            break
    return scenario


class _Generator:
    def __init__(self, rng: random.Random, size: EvolutionSize) -> None:
        self.rng = rng
        self.size = size
        self.sources = [f"s{number}" for number in range(1, size.sources + 1)]
        self.relations: dict[RelationName, CatalogRelation] = {}
        self.initial: dict[RelationName, Bag] = {}
        self.replacements: list[Replacement] = []
        # Relations that change together with another one, in its transactions.
        self.mirrors: dict[RelationName, RelationName] = {}
        self.ids = 0
        self.seen = 0

    def scenario(self) -> EvolutionScenario:
        count = self.rng.randint(2, self.size.relations)
        base = [self._base(number) for number in range(1, count + 1)]
        for name in base:
            self._stand_ins(name)
        joins = tuple(
            JoinConstraint(r.relation, r.by, ((attribute, expression.name),))
            for r in self.replacements
            for attribute, expression in r.attributes[:1]
            if isinstance(expression, Column)
        )
        knowledge = Knowledge(tuple(self.replacements), joins)
        definition = self._definition(base)
        catalog = Catalog(tuple(self.relations.values()))
        writer = ScriptWriter(
            self.rng, catalog, self.initial, self.mirrors, self.size.schema_share, definition
        )
        preferences = self._preferences(definition)
        scripts = writer.scripts(self.sources, self.size.updates)
        self.seen = writer.seen if writer.has_moved else 0
        view = EvolvingView(definition, preferences)
        return EvolutionScenario(view, catalog, knowledge, self.initial, scripts)

    # -- relations ---------------------------------------------------------------------------------

    def _base(self, number: int) -> RelationName:
        name = RelationName(self.rng.choice(self.sources), f"r{number}")
        schema = Schema.of(id=INTEGER, a=INTEGER, b=INTEGER, c=INTEGER)
        self._add(name, schema, [self._row(len(schema)) for _ in range(self._count())])
        return name

    def _add(self, name: RelationName, schema: Schema, rows: list[tuple[int | None, ...]]) -> None:
        self.relations[name] = CatalogRelation(name, schema, schema.names[:1])
        self.initial[name] = Bag.of(schema, rows)

    def _count(self) -> int:
        return self.rng.randint(1, ROWS_MAX)

    def _row(self, width: int) -> tuple[int | None, ...]:
        self.ids += 1
        values = [self.rng.choice((*VALUES, *VALUES, None)) for _ in range(width - 1)]
        return (self.ids, *values)

    def _stand_ins(self, name: RelationName) -> None:
        """One or two relations that can replace this one, and perhaps one that can replace them."""
        lost = name
        for number in range(self.rng.randint(1, 2)):
            by = self._stand_in(name, lost, f"{name.relation}_{number}")
            if self.rng.random() < 0.5:
                lost = by  # a chain: the next one replaces the replacement

    def _stand_in(self, name: RelationName, lost: RelationName, text: str) -> RelationName:
        trusted = self.rng.random() < 0.2 and lost == name and name not in self.mirrors
        source = name.source if trusted else self.rng.choice(self.sources)
        by = RelationName(source, text)
        names = self.rng.choice((("id", "a", "b"), ("k", "x", "y"), ("id", "b", "a")))
        rows = [row[:3] for row, _ in self.initial[name].sorted()]
        if not trusted:
            rows = [row for row in rows if self.rng.random() < 0.7]
            rows += [self._row(3) for _ in range(self.rng.randint(0, 2))]
        self._add(by, Schema.of(**dict.fromkeys(names, INTEGER)), rows)  # type: ignore[arg-type]
        mine = [_attribute(self.replacements, lost, a) for a in ATTRIBUTES]
        pairs = [(m, n) for m, n in zip(mine, names, strict=True) if m is not None]
        if not trusted and self.rng.random() < 0.2:
            pairs.pop()
        containment = Containment.EQUAL if trusted else self.rng.choice(list(Containment))
        attributes = tuple((m, Column(n)) for m, n in pairs)
        self.replacements.append(Replacement(lost, by, attributes, containment, trusted))
        if trusted:
            self.mirrors[name] = by
        return by

    # -- the view ----------------------------------------------------------------------------------

    def _definition(self, base: list[RelationName]) -> ViewDefinition:
        terms = [self._term(base)]
        if self.rng.random() < 0.1:
            terms.append(self._term(base, shown=len(terms[0].outputs)))
        return ViewDefinition("v", tuple(terms))

    def _term(self, base: list[RelationName], shown: int | None = None) -> Term:
        names = list(base)
        if self.rng.random() < 0.1:
            names.append(self.rng.choice(base))
        occurrences = tuple(
            Occurrence(f"x{i}", name, self.relations[name].schema, self.relations[name].key)
            for i, name in enumerate(names, 1)
        )
        predicates: list[Expression] = [
            Comparison("=", Column(left.qualified("b")), Column(right.qualified("a")))
            for left, right in itertools.pairwise(occurrences)
        ]
        if self.rng.random() < 0.4:
            chosen = self.rng.choice(occurrences)
            column = Column(chosen.qualified(self.rng.choice(("a", "b"))))
            predicates.append(Comparison("<>", column, Literal(2, INTEGER)))
        columns = [(o, c) for o in occurrences for c in ATTRIBUTES]
        # Most views show keys and join columns; the others can't be adapted by Map-VA.
        if self.rng.random() < 0.25:
            columns = [pair for pair in columns if self.rng.random() < 0.6] or columns[:1]
        if shown is not None:
            columns = (columns * (shown // len(columns) + 1))[:shown]
        outputs = [Output(f"o{i}", Column(o.qualified(c))) for i, (o, c) in enumerate(columns, 1)]
        if self.rng.random() < 0.15:
            owner = self.rng.choice(occurrences)
            sum_of = Arithmetic("+", Column(owner.qualified("a")), Column(owner.qualified("b")))
            outputs[-1] = Output(outputs[-1].name, sum_of)
        return Term(occurrences, tuple(predicates), tuple(outputs))

    def _preferences(self, definition: ViewDefinition) -> Preferences:
        share = self.rng.choice((0.0, 0.3, 0.8))
        term = definition.terms[0]

        def some(names: tuple[str, ...], chance: float) -> frozenset[str]:
            return frozenset(name for name in names if self.rng.random() < chance)

        aliases = tuple(o.alias for o in term.occurrences)
        dispensable = Parts(
            some(definition.schema.names, share),
            some(aliases, share / 2),
            some(term.joined_schema.names, share / 2),
        )
        irreplaceable = Parts(some(definition.schema.names, 0.05))
        extent = self.rng.choice((Extent.ANY, Extent.ANY, Extent.ANY, *Extent))
        return Preferences(dispensable, irreplaceable, extent)


def _attribute(known: list[Replacement], name: RelationName, attribute: str) -> str | None:
    """What a base relation's attribute is called in the relation that stands for it."""
    for replacement in known:
        if replacement.by == name:
            before = _attribute(known, replacement.relation, attribute)
            expression = None if before is None else replacement.expression(before)
            return expression.name if isinstance(expression, Column) else None
    return attribute
