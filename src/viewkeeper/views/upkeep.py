"""What must be kept beside a view so that it can be maintained: its *stores*, decided by its definition.

A linear view needs none. A grouped or DISTINCT term keeps an accumulator for each group, and the values
themselves where MIN, MAX or a DISTINCT aggregate is over them. A step that is joined with something
else keeps its rows, because no source could be asked for them. A base relation is kept where the
view says so.

Knows what is kept, not who keeps it nor when it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeeper.algebra.accumulation import GROUPS, Accumulation
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.algebra.types import Schema
from viewkeeper.views.assembly import Assembly, Contents
from viewkeeper.views.definition import LOCAL, RelationName, Term, ViewDefinition
from viewkeeper.views.kept_relations import KeptRelation, copies
from viewkeeper.views.planning import Route, routes
from viewkeeper.views.spark_sql import aggregate_sql, expression_sql


@dataclass(frozen=True)
class Store:
    """A relation that is kept beside a view; ``lookups`` are the columns it is asked by.

    ``holds`` says for people what a row of it is.
    """

    name: str
    schema: Schema
    lookups: tuple[tuple[str, ...], ...]
    holds: str


@dataclass(frozen=True)
class Stage:
    """An accumulation that a term's rows go through, and the names of what it keeps."""

    accumulation: Accumulation
    prefix: str

    def store(self, kept: str) -> str:
        return f"{self.prefix}.{kept}"

    def initial(self, rows: Any) -> dict[str, Any]:
        """What is kept of these rows, by the names of the stores."""
        return {self.store(kept): found for kept, found in self.accumulation.initial(rows).items()}


@dataclass(frozen=True)
class TermUpkeep:
    """A term by its place among all terms of the view, and the stages that its rows go through."""

    index: int
    term: Term
    grouping: Stage | None
    distinct: Stage | None

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in (self.grouping, self.distinct) if stage is not None)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What is computed of the joined rows: the term's outputs, or what it groups."""
        return self.term.outputs if self.grouping is None else self.grouping.accumulation.inputs


@dataclass(frozen=True)
class RelationUpkeep:
    """A step, or (without a name) the view itself."""

    name: RelationName | None
    schema: Schema
    terms: tuple[TermUpkeep, ...]

    @cached_property
    def reads(self) -> frozenset[RelationName]:
        """The steps that it is made from."""
        names = (o.name for upkeep in self.terms for o in upkeep.term.occurrences)
        return frozenset(name for name in names if name.source == LOCAL)


@dataclass(frozen=True)
class InitialContents:
    """A view and its stores over whole relations."""

    view: Any
    stores: dict[str, Any]


class Upkeep:
    """How one view can be kept, by its definition. Immutable."""

    def __init__(self, definition: ViewDefinition) -> None:
        self.definition = definition
        terms = iter(
            TermUpkeep(index, term, _grouping(index, term), _distinct(index, term))
            for index, term in enumerate(definition.all_terms)
        )

        def taken(number: int) -> tuple[TermUpkeep, ...]:
            return tuple(next(terms) for _ in range(number))

        steps = [RelationUpkeep(s.name, s.schema, taken(len(s.terms))) for s in definition.steps]
        view = RelationUpkeep(None, definition.schema, taken(len(definition.terms)))
        self.relations = (*steps, view)
        self.terms = tuple(upkeep for relation in self.relations for upkeep in relation.terms)

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        """All that is kept, in the order in which it comes to be."""
        found: list[Store] = [self._copy(relation) for relation in self.kept.values()]
        for relation in self.relations:
            found += [s for u in relation.terms for stage in u.stages for s in _stores_of(stage)]
            lookups = self._joined_by(relation.name)
            if relation.name is not None and lookups:
                rows = f"the rows of step {relation.name.relation}, which is joined"
                found.append(Store(relation.name.relation, relation.schema, lookups, rows))
        return tuple(found)

    @cached_property
    def kept(self) -> dict[RelationName, KeptRelation]:
        """The base relations that are kept as copies."""
        asked = (hop.name for route in self._routes for hop in route.hops)
        return {relation.name: relation for relation in copies(self.definition, asked)}

    def _copy(self, relation: KeptRelation) -> Store:
        rows = f"the rows of {relation.name}, so that its source need not be asked"
        return Store(relation.store, relation.schema, self._joined_by(relation.name), rows)

    def store_of(self, name: RelationName) -> str:
        """The store that has the rows of a step, or of a base relation that is kept."""
        return self.kept[name].store if name in self.kept else name.relation

    def keeps(self, name: RelationName | None) -> bool:
        """Whether the rows of that step are kept."""
        return bool(self._joined_by(name))

    def _joined_by(self, name: RelationName | None) -> tuple[tuple[str, ...], ...]:
        """The columns by which a step is looked up when something that it is joined with changes."""
        found = (
            tuple(column[len(hop.alias) + 1 :] for column in hop.key_columns)
            for route in self._routes
            for hop in route.hops
            if hop.name == name
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def _routes(self) -> tuple[Route, ...]:
        return routes(self.definition)

    @cached_property
    def obstacles(self) -> tuple[str, ...]:
        """Why the view can't be maintained from changes; empty when it can."""
        found = (
            f"{aggregate_sql(aggregate, str)} is over doubles: what was added to a sum of them can't be "
            "taken out again without a trace; CAST to a decimal"
            for upkeep in self.terms
            for stage in upkeep.stages
            for aggregate in stage.accumulation.sums_of_doubles
        )
        return tuple(dict.fromkeys(found))

    # -- from whole relations ----------------------------------------------------------------------

    def initial(
        self, contents: Contents, shared: Callable[[Any], Any] = lambda rows: rows
    ) -> InitialContents:
        """The view and its stores over the given contents of its base relations.

        ``shared`` is given each relation from which several others are computed; where relations are
        lazy, it is the place to have them computed once.
        """
        steps: dict[RelationName, Any] = {}
        stores: dict[str, Any] = {k.store: k.of(contents(n)) for n, k in self.kept.items()}
        rows: Any = None
        for relation in self.relations:
            rows = None
            for upkeep in relation.terms:
                term = _evaluated(
                    upkeep, lambda n: steps[n] if n in steps else contents(n), stores, shared
                )
                named = term.renamed(relation.schema.names)
                rows = named if rows is None else rows + named
            if relation.name is not None:
                steps[relation.name] = rows = shared(rows)
                if self.keeps(relation.name):
                    stores[relation.name.relation] = rows
        return InitialContents(rows, stores)


def _evaluated(
    upkeep: TermUpkeep, contents: Contents, stores: dict[str, Any], shared: Callable[[Any], Any]
) -> Any:
    """A term over whole relations; what it keeps goes into ``stores``."""
    assembly = Assembly(upkeep.term)
    rows = assembly.whole(contents)
    if upkeep.grouping is not None:
        grouped = shared(rows.select(upkeep.grouping.accumulation.inputs))
        stores |= upkeep.grouping.initial(grouped)
        rows = assembly.chosen(upkeep.grouping.accumulation.grouped(grouped))
    rows = assembly.finished(rows)
    if upkeep.distinct is not None:
        rows = shared(rows)
        stores |= upkeep.distinct.initial(rows.select(upkeep.distinct.accumulation.inputs))
        rows = rows.support()
    return rows


def _grouping(index: int, term: Term) -> Stage | None:
    grouping = term.grouping
    if grouping is None:
        return None
    accumulation = Accumulation(grouping.keys, grouping.aggregates, term.joined_schema)
    return Stage(accumulation, f"t{index}")


def _distinct(index: int, term: Term) -> Stage | None:
    if not term.distinct:
        return None
    keys = tuple(Output(name, Column(name)) for name in term.schema.names)
    return Stage(Accumulation(keys, (), term.schema), f"t{index}.distinct")


def _stores_of(stage: Stage) -> Iterator[Store]:
    accumulation = stage.accumulation
    for kept, schema in accumulation.stores.items():
        if kept == GROUPS:
            holds = _groups_text(accumulation)
        else:
            index = accumulation.values_by_store[kept]
            argument = expression_sql(accumulation.arguments[index], str)
            holds = f"every value of {argument} by group, {_reason(accumulation, index)}"
        yield Store(stage.store(kept), schema, accumulation.lookups(kept), holds)


def _groups_text(accumulation: Accumulation) -> str:
    if not accumulation.aggregates:
        return "each row once, and how often it is there"
    what = ", ".join(aggregate_sql(a, str) for a in accumulation.aggregates)
    keys = ", ".join(key.name for key in accumulation.keys)
    return f"one accumulator for each {keys}: {what}" if keys else f"one accumulator: {what}"


def _reason(accumulation: Accumulation, index: int) -> str:
    wanted = accumulation.wanted[index]
    reasons = [("MIN", wanted.least), ("MAX", wanted.greatest), ("DISTINCT", wanted.distinct)]
    return "for " + " and ".join(name for name, needed in reasons if needed)
