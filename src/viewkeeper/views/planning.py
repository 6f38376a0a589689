"""What is asked of whom when something changes: the way of a change through the other occurrences.

Pure, and decided by the definition alone. `protocols.batched_sweep` asks exactly these questions, and
a test holds the two together; people read them in ``viewkeeper explain``.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.expressions import Column
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName, Term, ViewDefinition
from viewkeeper.views.pruning import pruned


@dataclass(frozen=True)
class Hop:
    """One question: rows of ``alias`` whose ``key_columns`` are among the values of ``from_columns``.

    Names are full (``alias.column``). Without keys the whole relation is asked for.
    """

    alias: str
    name: RelationName
    key_columns: tuple[str, ...]
    from_columns: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return not self.key_columns


@dataclass(frozen=True)
class Route:
    """The questions, in order, that a change of one occurrence leads to.

    ``step``: the step that has the term, None where it is the view's own. What is asked of a step or
    comes from one (`LOCAL`) travels nowhere: the warehouse holds it.
    """

    step: str | None
    term: int
    alias: str
    name: RelationName
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class Read:
    """The columns of a relation that the view reads, and those that it leaves alone."""

    name: RelationName
    columns: tuple[str, ...]
    left_out: tuple[str, ...]


def routes(definition: ViewDefinition) -> tuple[Route, ...]:
    """One route for each occurrence of each term, steps first, in the order of the text."""
    owners: list[tuple[str | None, tuple[Term, ...]]]
    owners = [(step.name.relation, step.terms) for step in definition.steps]
    return tuple(
        _route(step, index, assembly, occurrence.alias)
        for step, terms in [*owners, (None, definition.terms)]
        for index, term in enumerate(terms)
        for assembly in (Assembly(term),)
        for occurrence in term.occurrences
    )


def _route(step: str | None, index: int, assembly: Assembly, start: str) -> Route:
    _, *order = assembly.join_order(start)
    visited = [start]
    hops: list[Hop] = []
    for alias in order:
        hops.append(_hop(assembly, tuple(visited), alias))
        visited.append(alias)
    return Route(step, index, start, assembly.term.occurrence(start).name, tuple(hops))


def _hop(assembly: Assembly, visited: tuple[str, ...], alias: str) -> Hop:
    """Keys are taken from one occurrence: the one that gives the most of them."""
    pairs, _ = assembly.join_plan(frozenset(visited), frozenset({alias}))
    by_owner: dict[str, list[tuple[str, str]]] = {}
    for mine, theirs in pairs:
        (owner,) = assembly.term.aliases_in(Column(mine))
        by_owner.setdefault(owner, []).append((mine, theirs))
    chosen = max(by_owner.values(), key=len, default=[])
    return Hop(
        alias,
        assembly.term.occurrence(alias).name,
        tuple(theirs for _, theirs in chosen),
        tuple(mine for mine, _ in chosen),
    )


def reads(definition: ViewDefinition) -> tuple[Read, ...]:
    """What is read of each relation, in order of appearance."""
    whole = {o.name: o.schema.names for t in definition.all_terms for o in t.occurrences}
    narrow = {o.name: o.schema.names for t in pruned(definition).all_terms for o in t.occurrences}
    return tuple(
        Read(name, narrow[name], tuple(c for c in whole[name] if c not in narrow[name]))
        for name in definition.relations
    )


def obstacles(definition: ViewDefinition) -> tuple[str, ...]:
    """Why the view's change is not the sum of its relations' changes; empty when it is."""
    found = dict.fromkeys(reason for term in definition.all_terms for reason in _obstacles(term))
    return tuple(found)


def _obstacles(term: Term) -> list[str]:
    reasons = []
    if term.grouping is not None and term.grouping.copies is not None:
        reasons.append(
            "outer joins, EXISTS, IN and EXCEPT are not linear: whether a row is there depends on "
            "others that did not change"
        )
    elif term.grouping is not None:
        reasons.append(
            "GROUP BY is not linear: the change of a group depends on rows that did not change"
            if term.grouping.keys
            else "an aggregate is not linear: its change depends on rows that did not change"
        )
    if term.distinct:
        reasons.append(
            "DISTINCT is not linear: whether a row goes depends on how often it was there"
        )
    return reasons
