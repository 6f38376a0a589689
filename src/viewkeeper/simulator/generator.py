"""Random scenarios from a seed: relations, a view over them, and what each source will commit.

Values are few, so that rows meet in joins, and NULL is among them. With ``keyed`` every relation has a
key that the view shows, as the Strobe family needs; otherwise rows have no key and repeat.
"""

from __future__ import annotations

import enum
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from viewkeeper.algebra import Bag, Row, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Expression, Literal, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

VALUES = (0, 1, 2)
NULL_SHARE = 0.05
ROWS_INITIALLY_MAX = 4
ROWS_CHANGED_MAX = 3
# Second relations of a source and self-joins: C-Strobe's cost is factorial in the occurrences.
EXTRA_OCCURRENCES_MAX = 1


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


def random_scenario(seed: int, size: Size) -> Scenario:
    """The scenario that this seed means at this size."""
    rng = random.Random(f"scenario {seed}")
    relations = _relations(rng, size)
    definition = _definition(rng, size, relations)
    read = {name: relations[name] for name in relations if name in definition.relations}
    counter = itertools.count(1)
    initial = {
        name: Bag.of(schema, _rows(rng, rng.randint(1, ROWS_INITIALLY_MAX), counter, size))
        for name, schema in read.items()
    }
    return Scenario(definition, initial, _scripts(rng, size, initial, counter))


def _relations(rng: random.Random, size: Size) -> dict[RelationName, Schema]:
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


def _rows(rng: random.Random, number: int, ids: Iterator[int], size: Size) -> list[Row]:
    return [_row(rng, ids, size) for _ in range(number)]


def _row(rng: random.Random, ids: Iterator[int], size: Size, key: int | None = None) -> Row:
    values = tuple(None if rng.random() < NULL_SHARE else rng.choice(VALUES) for _ in range(2))
    if not size.keyed:
        return values
    return (next(ids) if key is None else key, *values)


def _scripts(
    rng: random.Random, size: Size, initial: dict[RelationName, Bag], ids: Iterator[int]
) -> dict[str, tuple[Transaction, ...]]:
    contents = dict(initial)
    sources = list(dict.fromkeys(name.source for name in initial))
    scripts: dict[str, list[Transaction]] = {source: [] for source in sources}
    # Keys that were deleted may come back: key-based protocols must survive that.
    for number in range(size.transactions):
        source = sources[number % len(sources)] if size.spread else rng.choice(sources)
        changes = _changes(rng, size, [n for n in initial if n.source == source], contents, ids)
        scripts[source].append(Transaction(source, len(scripts[source]) + 1, changes))
    return {source: tuple(script) for source, script in scripts.items()}


def _changes(
    rng: random.Random,
    size: Size,
    names: list[RelationName],
    contents: dict[RelationName, Bag],
    ids: Iterator[int],
) -> tuple[tuple[RelationName, Bag], ...]:
    touched = rng.sample(names, rng.randint(1, len(names)) if size.shape is Shape.ANY else 1)
    changes: list[tuple[RelationName, Bag]] = []
    for name in touched:
        change = _change(rng, size, contents[name], ids)
        contents[name] = contents[name] + change
        changes.append((name, change))
    return tuple(changes)


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
