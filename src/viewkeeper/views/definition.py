"""What a view is, as data: the result of reading its SQL text, independent of how it is maintained.

A view is the sum (UNION ALL) of *terms*. A term joins *occurrences* of relations, keeps the rows that
satisfy its predicates, and computes its outputs; on top of that it may group or remove duplicates.
A relation that takes part twice has two occurrences: a self-join is nothing special.

What one SELECT of that form can't say (outer joins, EXISTS, aggregates of aggregates, views over views)
is said in *steps*: relations of the view's own, each a sum of terms over base relations and earlier
steps. A step is named by a `RelationName` whose source is `LOCAL`.

Columns of occurrences are named ``alias.column`` throughout a term.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from viewkeeper.algebra.expressions import TRUE, Aggregate, Expression, Output, columns_of
from viewkeeper.algebra.grouping import aggregate_fields
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import Field, Schema
from viewkeeper.views.level import Level

# The source of relations that the warehouse holds itself: steps, and copies of base relations.
LOCAL = "@"


class RelationName(NamedTuple):
    """A relation as the views name it: its source, and its name there (``table`` or ``schema.table``)."""

    source: str
    relation: str

    def __str__(self) -> str:
        return f"{self.source}.{self.relation}"


@dataclass(frozen=True)
class Occurrence:
    """One appearance of a relation in a term, under an alias that is unique in the term."""

    alias: str
    name: RelationName
    schema: Schema
    key: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return self.name.source

    def qualified(self, column: str) -> str:
        """The column's full name inside the term."""
        return f"{self.alias}.{column}"

    @cached_property
    def qualified_schema(self) -> Schema:
        """The relation's columns under their full names inside the term."""
        return self.schema.renamed(self.qualified(name) for name in self.schema.names)


@dataclass(frozen=True)
class Grouping:
    """GROUP BY: keys and aggregates over the joined rows, and a condition on the groups.

    ``copies`` names an integer aggregate that says how often a group's row is there, instead of once.
    So semi and anti joins are groupings: of the rows of L, tagged (1, 0), and those of L ⋈ R, tagged
    (0, 1), grouped by all columns of L, those groups remain whose second sum is positive (or zero), in
    as many copies as the first sum says.
    """

    keys: tuple[Output, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expression = TRUE
    copies: str | None = None


@dataclass(frozen=True)
class Term:
    """One SELECT: join, predicates (all must hold), outputs; then, perhaps, grouping or DISTINCT.

    With a grouping the outputs are expressions over the names of its keys and aggregates, else over
    the occurrences' columns.
    """

    occurrences: tuple[Occurrence, ...]
    predicates: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    grouping: Grouping | None = None
    distinct: bool = False

    @cached_property
    def joined_schema(self) -> Schema:
        """All columns of all occurrences, in order, under their full names."""
        return Schema(tuple(f for o in self.occurrences for f in o.qualified_schema))

    @cached_property
    def grouped_schema(self) -> Schema:
        """What the outputs are computed from: the groups' columns, or the joined ones."""
        if self.grouping is None:
            return self.joined_schema
        keys = tuple(
            Field(key.name, type_of(key.expression, self.joined_schema))
            for key in self.grouping.keys
        )
        return Schema(keys + aggregate_fields(self.grouping.aggregates, self.joined_schema))

    @cached_property
    def schema(self) -> Schema:
        """The columns that the term gives."""
        return Schema(
            tuple(Field(o.name, type_of(o.expression, self.grouped_schema)) for o in self.outputs)
        )

    @property
    def computed(self) -> Iterator[Expression]:
        """Everything that the term computes from its occurrences' own columns."""
        yield from self.predicates
        if self.grouping is None:
            yield from (output.expression for output in self.outputs)
        else:
            yield from (key.expression for key in self.grouping.keys)
            yield from (a.argument for a in self.grouping.aggregates if a.argument is not None)

    @property
    def columns_read(self) -> frozenset[str]:
        """The occurrences' columns that the term reads, under their full names."""
        return frozenset().union(*map(columns_of, self.computed))

    @property
    def is_linear(self) -> bool:
        """Whether the term's change is the sum of its inputs' changes: no grouping, no DISTINCT."""
        return self.grouping is None and not self.distinct

    def occurrence(self, alias: str) -> Occurrence:
        return next(o for o in self.occurrences if o.alias == alias)

    def aliases_in(self, expression: Expression) -> frozenset[str]:
        """The occurrences whose columns the expression reads."""
        aliases = self._aliases_in.get(expression)
        if aliases is None:
            aliases = frozenset(self._alias_of_column[name] for name in columns_of(expression))
            self._aliases_in[expression] = aliases
        return aliases

    @cached_property
    def _aliases_in(self) -> dict[Expression, frozenset[str]]:
        return {}

    @cached_property
    def _alias_of_column(self) -> dict[str, str]:
        return {f.name: o.alias for o in self.occurrences for f in o.qualified_schema}

    def local_predicates(self, alias: str) -> tuple[Expression, ...]:
        """The predicates that read this occurrence alone.

        A predicate that reads none at all counts with the first occurrence: it must be applied once.
        """
        first = self.occurrences[0].alias
        return tuple(p for p in self.predicates if (self.aliases_in(p) or {first}) == {alias})

    @cached_property
    def join_graph(self) -> dict[str, frozenset[str]]:
        """For each occurrence, those it shares a predicate with."""
        neighbours: dict[str, set[str]] = {o.alias: set() for o in self.occurrences}
        for predicate in self.predicates:
            aliases = self.aliases_in(predicate)
            for alias in aliases:
                neighbours[alias] |= aliases - {alias}
        return {alias: frozenset(others) for alias, others in neighbours.items()}


@dataclass(frozen=True)
class Step:
    """A relation of the view's own: the sum of its terms, over base relations and earlier steps."""

    name: RelationName
    terms: tuple[Term, ...]

    @property
    def schema(self) -> Schema:
        """Names of the first term, types common to all."""
        return self.terms[0].schema


@dataclass(frozen=True)
class ViewDefinition:
    """A named view: its steps, its terms over them, and what its user declares about it."""

    name: str
    terms: tuple[Term, ...]
    level: Level = Level.COMPLETE
    protocol: str | None = None
    # Further header settings, as (name, value) pairs in the order of the text.
    settings: tuple[tuple[str, str], ...] = field(default=())
    steps: tuple[Step, ...] = ()

    @property
    def all_terms(self) -> tuple[Term, ...]:
        """The terms of all steps, in order, and then the view's own."""
        return (*(term for step in self.steps for term in step.terms), *self.terms)

    @property
    def is_linear(self) -> bool:
        """Whether the view's change is the sum of its relations' changes."""
        return not self.steps and all(term.is_linear for term in self.terms)

    @property
    def schema(self) -> Schema:
        """The columns of the view: names of the first term, types common to all."""
        return self.terms[0].schema

    @cached_property
    def relations(self) -> tuple[RelationName, ...]:
        """Every base relation the view reads, once, in order of appearance."""
        names = (o.name for term in self.all_terms for o in term.occurrences)
        return tuple(dict.fromkeys(name for name in names if name.source != LOCAL))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Every source the view reads, once, in order of appearance."""
        return tuple(dict.fromkeys(name.source for name in self.relations))
