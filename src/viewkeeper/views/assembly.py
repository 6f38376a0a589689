"""How a term is put together from the contents of its occurrences, one occurrence at a time.

This is the ⊗ of the papers: a *partial* is the join of some of a term's occurrences, with every
predicate applied that reads only those. All predicates are applied exactly once, at the moment the
last occurrence they read joins in, so the order of joining does not matter.

Works on any `Relation`; it knows nothing of who holds the contents or when they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from viewkeeper.algebra.expressions import (
    TRUE,
    Column,
    Comparison,
    Expression,
    conjunction,
)
from viewkeeper.algebra.relation import JoinKeys
from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

# Relations of one body only ever meet relations of the same body; which one does not matter here.
AnyRelation = Any

# Who holds a relation's rows is not known here; this gives them.
Contents = Callable[[RelationName], AnyRelation]


# The partial of one occurrence of a base relation, in the term of that number.
PartialOf = Callable[[int, Occurrence], AnyRelation]


class Assembly:
    """Puts the occurrences of one term together. Immutable; plans are made once and kept."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self._aliases = tuple(o.alias for o in term.occurrences)
        self._local = {a: conjunction(term.local_predicates(a)) for a in self._aliases}
        self._joins: dict[tuple[frozenset[str], frozenset[str]], tuple[JoinKeys, Expression]] = {}

    @property
    def aliases(self) -> tuple[str, ...]:
        return self._aliases

    def prepared(self, alias: str, rows: AnyRelation) -> AnyRelation:
        """A partial of one occurrence: its rows under full names, local predicates applied."""
        occurrence = self.term.occurrence(alias)
        qualified = rows.renamed(occurrence.qualified_schema.names)
        local = self._local[alias]
        return qualified if local == TRUE else qualified.where(local)

    def joined(
        self,
        left: AnyRelation,
        left_covers: frozenset[str],
        right: AnyRelation,
        right_covers: frozenset[str],
    ) -> AnyRelation:
        """⊗ of two partials over different occurrences."""
        on, where = self.join_plan(left_covers, right_covers)
        return left.join(right, on, where)

    def extended(
        self, partial: AnyRelation, covers: frozenset[str], alias: str, rows: AnyRelation
    ) -> AnyRelation:
        """The partial joined with the contents ``rows`` of one more occurrence."""
        return self.joined(partial, covers, self.prepared(alias, rows), frozenset({alias}))

    def product(
        self,
        aliases: Iterable[str],
        contents: Contents,
        given: AnyRelation | None = None,
        covers: frozenset[str] = frozenset(),
    ) -> tuple[AnyRelation, frozenset[str]]:
        """The partial ``given``, where there is one, joined with these occurrences one after the other."""
        for alias in aliases:
            rows = self.prepared(alias, contents(self.term.occurrence(alias).name))
            mine = frozenset({alias})
            given = rows if given is None else self.joined(given, covers, rows, mine)
            covers |= mine
        return given, covers

    def finished(self, partial: AnyRelation) -> AnyRelation:
        """A partial of all occurrences, projected to the term's outputs (a linear term's rows)."""
        return partial.select(self.term.outputs)

    def arranged(self, partial: AnyRelation, covers: frozenset[str]) -> AnyRelation:
        """The partial with its columns in the order of the term, so that partials can be added."""
        names = (
            name
            for o in self.term.occurrences
            if o.alias in covers
            for name in o.qualified_schema.names
        )
        return partial.only(names)

    def evaluated(self, contents: Contents) -> AnyRelation:
        """The whole term over the given contents of its relations, grouping and DISTINCT included."""
        return self.completed(self.whole(contents))

    def completed(self, partial: AnyRelation) -> AnyRelation:
        """A partial of all occurrences as the term's rows, grouping and DISTINCT included."""
        grouping = self.term.grouping
        if grouping is not None:
            partial = self.chosen(partial.grouped(grouping.keys, grouping.aggregates))
        result = self.finished(partial)
        return result.support() if self.term.distinct else result

    def chosen(self, groups: AnyRelation) -> AnyRelation:
        """Of a grouped term's groups, those that remain, as often as they are there."""
        grouping = self.term.grouping
        if grouping is None:
            return groups
        kept = groups if grouping.having == TRUE else groups.where(grouping.having)
        return kept if grouping.copies is None else kept.copied(grouping.copies)

    def whole(self, contents: Contents) -> AnyRelation:
        """The partial of all occurrences over the given contents of their relations."""
        return self.whole_of(lambda o: self.prepared(o.alias, contents(o.name)))

    def whole_of(self, partial_of: Callable[[Occurrence], AnyRelation]) -> AnyRelation:
        """The partial of all occurrences, made from those of one occurrence each."""
        first, *rest = self.join_order(self._aliases[0])
        partial, covers = partial_of(self.term.occurrence(first)), frozenset({first})
        for alias in rest:
            other = partial_of(self.term.occurrence(alias))
            partial = self.joined(partial, covers, other, frozenset({alias}))
            covers |= {alias}
        return partial

    def join_order(self, start: str, within: Iterable[str] | None = None) -> tuple[str, ...]:
        """``start``, then the other occurrences, each joined to earlier ones where that is possible.

        For a chain it is the order of the SWEEP paper: leftwards to the end, then rightwards.
        """
        allowed = set(self._aliases if within is None else within)
        order = [start]
        remaining = [alias for alias in self._aliases if alias in allowed and alias != start]
        place = {alias: index for index, alias in enumerate(self._aliases)}
        while remaining:
            visited = set(order)
            joined = [a for a in remaining if self.term.join_graph[a] & visited]
            candidates = joined or remaining
            left = [alias for alias in candidates if place[alias] < place[start]]
            chosen = left[-1] if left else candidates[0]
            order.append(chosen)
            remaining.remove(chosen)
        return tuple(order)

    def join_plan(self, left: frozenset[str], right: frozenset[str]) -> tuple[JoinKeys, Expression]:
        """How partials over these occurrences meet: equal columns, and what else must hold."""
        plan = self._joins.get((left, right))
        if plan is None:
            plan = self._joins[left, right] = self._planned(left, right)
        return plan

    def _planned(self, left: frozenset[str], right: frozenset[str]) -> tuple[JoinKeys, Expression]:
        keys: list[tuple[str, str]] = []
        residual: list[Expression] = []
        for predicate in self.term.predicates:
            aliases = self.term.aliases_in(predicate)
            if not aliases <= left | right or aliases <= left or aliases <= right:
                continue
            pair = self._equal_columns(predicate, left)
            if pair is None:
                residual.append(predicate)
            else:
                keys.append(pair)
        return tuple(keys), conjunction(tuple(residual))

    def _equal_columns(self, predicate: Expression, left: frozenset[str]) -> tuple[str, str] | None:
        """The pair of columns, left one first, if the predicate is an equality found by hashing."""
        match predicate:
            case Comparison("=", Column(a), Column(b)):
                schema = self.term.joined_schema
                kinds = {schema.type_of(a).kind, schema.type_of(b).kind}
                if len(kinds) > 1 and kinds != {Kind.INTEGER, Kind.DECIMAL}:
                    return None
                return (a, b) if self.term.aliases_in(Column(a)) <= left else (b, a)
            case _:
                return None


class WholeView:
    """A view as its steps and the sum of its terms. Immutable; plans are made once and kept."""

    def __init__(self, definition: ViewDefinition) -> None:
        self.definition = definition
        # Of all terms, in order: those of the steps, then the view's own.
        self.assemblies = tuple(Assembly(term) for term in definition.all_terms)

    def evaluated(self, contents: Contents) -> AnyRelation:
        """The view over the given contents of its base relations."""
        return self.evaluated_from(
            lambda index, o: self.assemblies[index].prepared(o.alias, contents(o.name))
        )

    def evaluated_from(self, partial_of: PartialOf) -> AnyRelation:
        """The view, given the partial of each occurrence of a base relation."""
        steps: dict[RelationName, AnyRelation] = {}

        def known(index: int, occurrence: Occurrence) -> AnyRelation:
            if occurrence.name in steps:
                return self.assemblies[index].prepared(occurrence.alias, steps[occurrence.name])
            return partial_of(index, occurrence)

        places = iter(range(len(self.assemblies)))
        for step in self.definition.steps:
            steps[step.name] = self._summed(islice(places, len(step.terms)), step.schema, known)
        return self._summed(places, self.definition.schema, known)

    def _summed(self, places: Iterable[int], schema: Schema, partial_of: PartialOf) -> AnyRelation:
        """UNION ALL of some terms under common names."""
        total: AnyRelation = None
        for index in places:
            whole = self.assemblies[index].whole_of(partial(partial_of, index))
            rows = self.assemblies[index].completed(whole).renamed(schema.names)
            total = rows if total is None else total + rows
        return total


def evaluated(definition: ViewDefinition, contents: Contents) -> AnyRelation:
    """The view over the given contents of its relations, once; `WholeView` keeps its plans."""
    return WholeView(definition).evaluated(contents)
