"""Random scenarios from a seed: relations, a view over them, and what each source will commit.

Values are few, so that rows meet in joins, and NULL is among them; most transactions change the view. With ``keyed`` every relation has a
key that the view shows, as the Strobe family needs; otherwise rows have no key and repeat.
"""

from __future__ import annotations

import enum
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra import Bag, Row, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Expression, Literal, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

VALUES = (0, 1, 2)
NULL_SHARE = 0.05
ROWS_INITIALLY_MAX = 4
ROWS_CHANGED_MAX = 3
# Second relations of a source and self-joins: C-Strobe's cost is factorial in the occurrences.
EXTRA_OCCURRENCES_MAX = 1
# A transaction that no view would show is drawn again, at most so often; but some stay as they are.
DRAWS_MAX = 8
UNSEEN_SHARE = 0.2
# And so is a whole world that leaves its views as they were.
WORLDS_DRAWN_MAX = 20


class Shape(enum.Enum):
    """CHAIN: one relation per source, each joined to the next, as in the SWEEP paper. STAR: all
    joined to the first. ANY: cycles, self-joins, inequality joins, several relations per source,
    transactions over several of them, UNION ALL."""

    CHAIN = "chain"
    STAR = "star"
    ANY = "any"


@dataclass(frozen=True)
class Size:
    """How large a random scenario is."""

    sources: int = 3
    transactions: int = 5
    shape: Shape = Shape.ANY
    keyed: bool = False
    # All relations at one source, as ECA has it; then ``sources`` counts relations.
    one_source: bool = False
    # Transactions go round the sources instead of falling on any: then updates do interfere.
    spread: bool = False
    # How many different values there are, beside NULL: with fewer, more rows meet.
    values: int = len(VALUES)


def random_scenario(
    seed: int,
    size: Size,
    shaped: Callable[[ViewDefinition], ViewDefinition] = lambda definition: definition,
) -> Scenario:
    """The scenario that this seed means at this size; ``shaped`` may take terms from the view."""
    rng = random.Random(f"scenario {seed}")
    relations = random_relations(rng, size)
    definition = shaped(_definition(rng, size, relations))
    read = {name: relations[name] for name in relations if name in definition.relations}
    initial, scripts = random_happening(rng, size, read, (definition,))
    return Scenario(definition, initial, scripts)


def random_relations(rng: random.Random, size: Size) -> dict[RelationName, Schema]:
    """Relations at each source; their contents come later."""
    schema = Schema.of(**dict.fromkeys(("id", "a", "b") if size.keyed else ("a", "b"), INTEGER))
    relations: dict[RelationName, Schema] = {}
    for number in range(1, size.sources + 1):
        if size.one_source:
            relations[RelationName("s", f"r{number}")] = schema
            continue
        relations[RelationName(f"s{number}", "r")] = schema
        room = len(relations) + size.sources - number < size.sources + EXTRA_OCCURRENCES_MAX
        if size.shape is Shape.ANY and room and rng.random() < 0.3:
            relations[RelationName(f"s{number}", "q")] = schema
    return relations


# -- the view ---------------------------------------------------------------------------------------


def _definition(
    rng: random.Random, size: Size, relations: dict[RelationName, Schema]
) -> ViewDefinition:
    terms = [_term(rng, size, relations)]
    if size.shape is Shape.ANY and not size.keyed and rng.random() < 0.2:
        terms.append(_term(rng, size, relations))
    return ViewDefinition("v", tuple(terms))


def _term(rng: random.Random, size: Size, relations: dict[RelationName, Schema]) -> Term:
    names = list(relations)
    room = len(names) < size.sources + EXTRA_OCCURRENCES_MAX
    if size.shape is Shape.ANY and room and rng.random() < 0.3:
        names.insert(rng.randrange(len(names) + 1), rng.choice(names))
    key = ("id",) if size.keyed else ()
    occurrences = tuple(
        Occurrence(f"x{index}", name, relations[name], key) for index, name in enumerate(names, 1)
    )
    predicates = tuple(_predicates(rng, size, occurrences))
    first, last = occurrences[0], occurrences[-1]
    outputs = [Output("a", Column(first.qualified("a"))), Output("b", Column(last.qualified("b")))]
    if size.keyed:
        outputs += [Output(f"{o.alias}_id", Column(o.qualified("id"))) for o in occurrences]
    return Term(occurrences, predicates, tuple(outputs))


def _predicates(
    rng: random.Random, size: Size, occurrences: tuple[Occurrence, ...]
) -> Iterator[Expression]:
    for index, occurrence in enumerate(occurrences[1:], 1):
        match size.shape:
            case Shape.CHAIN:
                partner = occurrences[index - 1]
            case Shape.STAR:
                partner = occurrences[0]
            case Shape.ANY:
                partner = rng.choice(occurrences[:index])
        yield _join(rng, size, partner, occurrence)
    if size.shape is Shape.ANY:
        if len(occurrences) > 2 and rng.random() < 0.3:
            left, right = rng.sample(occurrences, 2)
            yield Comparison("<=", Column(left.qualified("b")), Column(right.qualified("a")))
        if rng.random() < 0.3:
            chosen = rng.choice(occurrences)
            yield Comparison("<>", Column(chosen.qualified("a")), Literal(2, INTEGER))


def _join(rng: random.Random, size: Size, left: Occurrence, right: Occurrence) -> Expression:
    operator = "="
    if size.shape is Shape.ANY and rng.random() < 0.15:
        operator = "<"
    return Comparison(operator, Column(left.qualified("b")), Column(right.qualified("a")))


# -- what happens -----------------------------------------------------------------------------------

Happening = tuple[dict[RelationName, Bag], dict[str, tuple[Transaction, ...]]]


def random_happening(
    rng: random.Random,
    size: Size,
    relations: Mapping[RelationName, Schema],
    views: Sequence[ViewDefinition],
) -> Happening:
    """Initial contents and scripts by which the views are not at the end what they were at the start.

    A run in which the views never change proves nothing: then even who does nothing is right.
    """
    for _ in range(WORLDS_DRAWN_MAX):
        happening = _Happening(rng, size, relations, views)
        scripts = happening.scripts()
        if happening.views_now != happening.views_at_start:
            break
    return happening.initial, scripts


class _Happening:
    """Contents as they are while the scripts are written, and the views over them."""

    def __init__(
        self,
        rng: random.Random,
        size: Size,
        relations: Mapping[RelationName, Schema],
        views: Sequence[ViewDefinition],
    ) -> None:
        self.rng, self.size, self.ids = rng, size, itertools.count(1)
        self._views = tuple(WholeView(view) for view in views)
        for _ in range(self._draws()):
            self.initial = {name: self._filled(schema) for name, schema in relations.items()}
            self.contents = self.initial
            self.views_at_start = self.views_now = self._seen(self.initial)
            if not all(rows.is_empty() for rows in self.views_now):
                break

    def scripts(self) -> dict[str, tuple[Transaction, ...]]:
        sources = list(dict.fromkeys(name.source for name in self.initial))
        scripts: dict[str, list[Transaction]] = {source: [] for source in sources}
        # Keys that were deleted may come back: key-based protocols must survive that.
        for number in range(self.size.transactions):
            spread = self.size.spread
            source = sources[number % len(sources)] if spread else self.rng.choice(sources)
            changes = self._changes([n for n in self.initial if n.source == source])
            scripts[source].append(Transaction(source, len(scripts[source]) + 1, changes))
        return {source: tuple(script) for source, script in scripts.items()}

    def _draws(self) -> int:
        """How often to draw in search of something that can be seen: some things stay unseen."""
        return 1 if self.rng.random() < UNSEEN_SHARE else DRAWS_MAX

    def _seen(self, contents: Mapping[RelationName, Bag]) -> tuple[Bag, ...]:
        return tuple(view.evaluated(contents.__getitem__) for view in self._views)

    def _filled(self, schema: Schema) -> Bag:
        number = self.rng.randint(1, ROWS_INITIALLY_MAX)
        rows = [_row(self.rng, self.ids, self.size) for _ in range(number)]
        return Bag.of(schema, rows)

    def _changes(self, names: list[RelationName]) -> tuple[tuple[RelationName, Bag], ...]:
        """What one transaction changes: drawn again, a few times, while no view would show it."""
        for _ in range(self._draws()):
            changes, contents = self._drawn(names)
            views = self._seen(contents)
            if views != self.views_now:
                break
        self.contents, self.views_now = contents, views
        return changes

    def _drawn(
        self, names: list[RelationName]
    ) -> tuple[tuple[tuple[RelationName, Bag], ...], dict[RelationName, Bag]]:
        several = self.size.shape is Shape.ANY
        touched = self.rng.sample(names, self.rng.randint(1, len(names)) if several else 1)
        contents = dict(self.contents)
        changes: list[tuple[RelationName, Bag]] = []
        for name in touched:
            change = _change(self.rng, self.size, contents[name], self.ids)
            contents[name] = contents[name] + change
            changes.append((name, change))
        return tuple(changes), contents


def _row(rng: random.Random, ids: Iterator[int], size: Size, key: int | None = None) -> Row:
    known = VALUES[: size.values]
    values = tuple(None if rng.random() < NULL_SHARE else rng.choice(known) for _ in range(2))
    if not size.keyed:
        return values
    return (next(ids) if key is None else key, *values)


def _change(rng: random.Random, size: Size, contents: Bag, ids: Iterator[int]) -> Bag:
    """A few rows in, out, or modified; never a row out that is not there."""
    change = Bag(contents.schema)
    for _ in range(rng.randint(1, ROWS_CHANGED_MAX if size.shape is Shape.ANY else 1)):
        present = [row for row, count in (contents + change).sorted() if count > 0]
        kind = rng.choice(("insert", "delete", "modify")) if present else "insert"
        signed: list[tuple[Row, int]] = []
        chosen = rng.choice(present) if present else ()
        if kind != "insert":
            signed.append((chosen, -1))
        if kind != "delete":
            key = chosen[0] if kind == "modify" and size.keyed else None
            signed.append((_row(rng, ids, size, key if isinstance(key, int) else None), 1))
        change = change + Bag(contents.schema, signed)
    return change
