"""Random rich views over a few relations, and random histories for them.

Definitions are made as the parser makes them: semi, anti and outer joins, aggregates of aggregates and
views over views are steps. Averages appear only in the view itself: what SQLite computes of them in
doubles would not meet our decimals in a join.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from viewkeeper.algebra import Bag, Field, Schema, Type, Value
from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
    Arithmetic,
    Case,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    Output,
)
from viewkeeper.algebra.types import INTEGER, decimal_type
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction
from viewkeeper.views import Grouping, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.definition import LOCAL, Step

MONEY = decimal_type(9, 2)
SCHEMA = Schema.of(a=INTEGER, b=INTEGER, d=MONEY)
NUMBERS = (0, 1, 2)
# Quarters: SQLite adds them exactly, as doubles.
AMOUNTS = tuple(Decimal(n).scaleb(-2) for n in (-25, 0, 25, 150, 1075))
NULL_SHARE = 0.08
ROWS_MAX = 7
CLASSES = ("join", "union", "group", "distinct", "semi", "anti", "left", "full", "over")


def number(value: int | None) -> Literal:
    return Literal(value, INTEGER)


@dataclass
class Builder:
    """Makes the steps and terms of one view."""

    rng: random.Random
    relations: Sequence[RelationName]
    steps: list[Step] = field(default_factory=list)

    def definition(self, kind: str, name: str) -> ViewDefinition:
        terms = self.terms(kind, is_step=False)
        return ViewDefinition(name, terms, steps=tuple(self.steps))

    def terms(self, kind: str, *, is_step: bool) -> tuple[Term, ...]:
        match kind:
            case "join":
                return (self.join(self.rng.randint(1, 3)),)
            case "union":
                return self.union()
            case "group":
                return (self.group(self.rng.randint(1, 2), averages=not is_step),)
            case "distinct":
                return (self.distinct(),)
            case "semi" | "anti":
                left, right = self.occurrence("l"), self.occurrence("r")
                return (self.semi(left, right, self.match(left, right), keep=kind == "semi"),)
            case "left" | "full":
                return self.outer(full=kind == "full")
            case _:
                inner = self.rng.choice([k for k in CLASSES if k != "over"])
                self.step(self.terms(inner, is_step=True))
                outer = self.rng.choice([k for k in CLASSES if k != "over"])
                return self.terms(outer, is_step=is_step)

    def step(self, terms: tuple[Term, ...]) -> Step:
        step = Step(RelationName(LOCAL, f"step{len(self.steps)}"), terms)
        self.steps.append(step)
        return step

    # -- what terms are made of --------------------------------------------------------------------

    def occurrence(self, alias: str) -> Occurrence:
        """A base relation or, where there are some, a step (but not one that only tags rows)."""
        usable = [s for s in self.steps if "met" not in s.schema]
        if usable and self.rng.random() < 0.6:
            step = self.rng.choice(usable)
            return Occurrence(alias, step.name, step.schema)
        return Occurrence(alias, self.rng.choice(self.relations), SCHEMA)

    def of_step(self, alias: str, step: Step) -> Occurrence:
        return Occurrence(alias, step.name, step.schema)

    def column(self, *occurrences: Occurrence, type: Type = INTEGER) -> Column | None:
        names = [o.qualified(f.name) for o in occurrences for f in o.schema if f.type == type]
        return Column(self.rng.choice(names)) if names else None

    def integer(self, *occurrences: Occurrence) -> Expression:
        column = self.column(*occurrences)
        assert column is not None
        if self.rng.random() < 0.2:
            other = self.column(*occurrences) or number(1)
            return Arithmetic("+", column, other)
        if self.rng.random() < 0.1:
            return Case(((Comparison("=", column, number(1)), number(7)),), column)
        return column

    def match(self, left: Occurrence, right: Occurrence) -> tuple[Expression, ...]:
        mine, theirs = self.column(left), self.column(right)
        assert mine is not None
        assert theirs is not None
        found: list[Expression] = []
        if self.rng.random() < 0.85:
            found.append(Comparison("=", mine, theirs))
        else:
            found.append(Comparison(self.rng.choice(("<", "<>", "<=>")), mine, theirs))
        if self.rng.random() < 0.2:
            found.append(Comparison("<=", self.integer(left), self.integer(right)))
        return tuple(found)

    def local(self, occurrence: Occurrence) -> tuple[Expression, ...]:
        if self.rng.random() < 0.7:
            return ()
        column = self.column(occurrence)
        assert column is not None
        bound = Comparison(self.rng.choice(("<=", ">", "<>")), column, number(1))
        return (self.rng.choice((bound, bound, Not(IsNull(column)), IsNull(column))),)

    def joined(self, size: int) -> tuple[tuple[Occurrence, ...], tuple[Expression, ...]]:
        occurrences = [self.occurrence(f"x{i}") for i in range(size)]
        predicates: list[Expression] = []
        for index, occurrence in enumerate(occurrences):
            predicates += self.local(occurrence)
            if index:
                predicates += self.match(self.rng.choice(occurrences[:index]), occurrence)
        return tuple(occurrences), tuple(predicates)

    # -- the classes -------------------------------------------------------------------------------

    def join(self, size: int, columns: int | None = None) -> Term:
        occurrences, predicates = self.joined(size)
        wanted = columns or self.rng.randint(1, 3)
        outputs = [Output(f"c{i}", self.integer(*occurrences)) for i in range(wanted)]
        amount = self.column(*occurrences, type=MONEY)
        if columns is None and amount is not None and self.rng.random() < 0.5:
            outputs.append(Output("m", amount))
        return Term(occurrences, predicates, tuple(outputs))

    def union(self) -> tuple[Term, ...]:
        columns = self.rng.randint(1, 2)
        terms = [self.join(self.rng.randint(1, 2), columns) for _ in range(2)]
        if self.rng.random() < 0.3:
            terms.append(self.distinct(columns))
        if self.rng.random() < 0.3 and columns == 1:
            occurrences, predicates = self.joined(1)
            count = Grouping((), (Aggregate("n", "count"),))
            terms.append(Term(occurrences, predicates, (Output("n", Column("n")),), count))
        return tuple(terms)

    def distinct(self, columns: int | None = None) -> Term:
        if columns is None and self.rng.random() < 0.3:
            grouped = self.group(1, averages=False)
            return Term(*_parts(grouped), distinct=True)
        return Term(*_parts(self.join(self.rng.randint(1, 2), columns)), distinct=True)

    def group(self, size: int, *, averages: bool) -> Term:
        occurrences, predicates = self.joined(size)
        number_of_keys = self.rng.choice((0, 1, 1, 2))
        keys = tuple(Output(f"k{i}", self.integer(*occurrences)) for i in range(number_of_keys))
        functions = ["count", "sum", "min", "max", "count distinct", "sum distinct"]
        functions += ["avg", "avg distinct"] if averages else []
        aggregates = [Aggregate("n", "count")]
        for index in range(self.rng.randint(1, 3)):
            amount = self.column(*occurrences, type=MONEY)
            argument = self.integer(*occurrences)
            if amount is not None and self.rng.random() < 0.4:
                argument = amount
            function, *distinct = self.rng.choice(functions).split()
            aggregates.append(Aggregate(f"v{index}", function, argument, bool(distinct)))
        having: Expression = TRUE
        if self.rng.random() < 0.4:
            having = Comparison(self.rng.choice((">", "<=", "<>")), Column("n"), number(1))
        shown = self.rng.sample(aggregates, self.rng.randint(1, len(aggregates)))
        shown = shown if aggregates[0] in shown else [aggregates[0], *shown]
        names = [k.name for k in keys if self.rng.random() < 0.8] + [a.name for a in shown]
        outputs = tuple(Output(name, Column(name)) for name in names)
        grouping = Grouping(keys, tuple(aggregates), having)
        return Term(occurrences, predicates, outputs, grouping)

    def semi(
        self, left: Occurrence, right: Occurrence, match: tuple[Expression, ...], *, keep: bool
    ) -> Term:
        """The rows of ``left`` that match some row of ``right``, or none; in all their copies."""
        columns = tuple(Output(n, Column(left.qualified(n))) for n in left.schema.names)
        here = (Output("here", number(1)), Output("met", number(0)))
        met = (Output("here", number(0)), Output("met", number(1)))
        alone = Term((left,), (), (*columns, *here))
        tagged = self.step((alone, Term((left, right), match, (*columns, *met))))
        rows = self.of_step("g", tagged)
        grouping = Grouping(
            tuple(Output(n, Column(rows.qualified(n))) for n in left.schema.names),
            (
                Aggregate("copies", "sum", Column("g.here")),
                Aggregate("met", "sum", Column("g.met")),
            ),
            Comparison(">" if keep else "=", Column("met"), number(0)),
            copies="copies",
        )
        outputs = tuple(Output(n, Column(n)) for n in left.schema.names)
        return Term((rows,), (), outputs, grouping)

    def outer(self, *, full: bool) -> tuple[Term, ...]:
        left, right = self.occurrence("l"), self.occurrence("r")
        match = self.match(left, right)
        both = [(o, f) for o in (left, right) for f in o.schema]
        joined = Term(
            (left, right),
            match,
            tuple(Output(f"c{i}", Column(o.qualified(f.name))) for i, (o, f) in enumerate(both)),
        )
        terms = [joined, self._padded(left, right, match, both)]
        if full:
            terms.append(self._padded(right, left, match, both))
        return tuple(terms)

    def _padded(
        self,
        kept: Occurrence,
        other: Occurrence,
        match: tuple[Expression, ...],
        both: list[tuple[Occurrence, Field]],
    ) -> Term:
        anti = self.step((self.semi(kept, other, match, keep=False),))
        rows = self.of_step("u", anti)
        outputs = tuple(
            Output(f"c{i}", Column(rows.qualified(f.name)) if o is kept else Literal(None, f.type))
            for i, (o, f) in enumerate(both)
        )
        return Term((rows,), (), outputs)


def _parts(term: Term) -> tuple:
    return term.occurrences, term.predicates, term.outputs, term.grouping


# -- histories --------------------------------------------------------------------------------------


def random_rich_scenario(seed: int, transactions: int) -> Scenario:
    """The view and the history that this seed means; classes take turns."""
    rng = random.Random(f"rich {seed}")
    builder = Builder(rng, random_relations(rng))
    definition = builder.definition(CLASSES[seed % len(CLASSES)], "v")
    return random_history(rng, definition, transactions)


def random_relations(rng: random.Random) -> list[RelationName]:
    """Two to four relations over one to three sources."""
    sources = [f"s{i}" for i in range(1, rng.randint(1, 3) + 1)]
    return [
        RelationName(sources[i % len(sources)], f"r{i}")
        for i in range(max(len(sources), rng.randint(2, 4)))
    ]


def random_history(rng: random.Random, definition: ViewDefinition, transactions: int) -> Scenario:
    """What the view's relations hold, and what happens to them."""
    initial = {
        name: Bag.of(SCHEMA, [_row(rng) for _ in range(rng.randint(0, 4))])
        for name in definition.relations
    }
    return Scenario(definition, initial, _scripts(rng, initial, transactions))


def _row(rng: random.Random) -> tuple[Value, ...]:
    def some(values: tuple) -> Value:
        return None if rng.random() < NULL_SHARE else rng.choice(values)

    return some(NUMBERS), some(NUMBERS), some(AMOUNTS)


def _scripts(
    rng: random.Random, initial: dict[RelationName, Bag], transactions: int
) -> dict[str, tuple[Transaction, ...]]:
    contents = dict(initial)
    scripts: dict[str, list[Transaction]] = {name.source: [] for name in initial}
    for _ in range(transactions):
        source = rng.choice(sorted(scripts))
        own = [name for name in initial if name.source == source]
        changes = []
        for name in rng.sample(own, rng.randint(1, len(own))):
            change = _change(rng, contents[name])
            contents[name] = contents[name] + change
            changes.append((name, change))
        scripts[source].append(Transaction(source, len(scripts[source]) + 1, tuple(changes)))
    return {source: tuple(script) for source, script in scripts.items()}


def _change(rng: random.Random, contents: Bag) -> Bag:
    change = Bag(contents.schema)
    for _ in range(rng.randint(1, 3)):
        present = [row for row, count in (contents + change).sorted() for _ in range(count)]
        kinds = ["insert", "delete", "modify"] if present else ["insert"]
        if len(present) > ROWS_MAX:
            kinds = ["delete", "modify"]
        kind = rng.choice(kinds)
        if kind != "insert":
            change = change - Bag(contents.schema, [(rng.choice(present), 1)])
        if kind != "delete":
            change = change + Bag.of(contents.schema, [_row(rng)])
    return change
