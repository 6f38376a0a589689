"""Fragments: the parts of a term that one source can answer by itself.

Occurrences of one source that its own predicates connect stay together, for the source's engine can
join them; what nothing connects would be a product there, so it is asked for separately.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.expressions import And, Expression, columns_of
from viewkeeper.views.definition import Occurrence, Term
from viewkeeper.views.printing import identifier, joined_names
from viewkeeper.views.spark_sql import expression_sql


@dataclass(frozen=True)
class Fragment:
    """``predicates`` read these aliases alone; ``columns`` are what the rest of the term needs."""

    source: str
    aliases: tuple[str, ...]
    predicates: tuple[Expression, ...]
    columns: tuple[str, ...]


def fragments(term: Term) -> tuple[Fragment, ...]:
    """The term's fragments, in the order of their first occurrences; each alias is in exactly one."""
    return tuple(_fragment(term, aliases) for aliases in _components(term))


def fragment_sql(fragment: Fragment, term: Term) -> str:
    """The fragment as a query over the source's own relations, for people to read."""
    named = joined_names(term)
    columns = ", ".join(map(named, fragment.columns)) or "1"
    tables = ", ".join(_table(term.occurrence(alias)) for alias in fragment.aliases)
    text = f"SELECT {columns} FROM {tables}"
    if not fragment.predicates:
        return text
    return f"{text} WHERE {expression_sql(And(fragment.predicates), named)}"


def _table(occurrence: Occurrence) -> str:
    name = ".".join(map(identifier, occurrence.name.relation.split(".")))
    return f"{name} AS {identifier(occurrence.alias)}"


def _fragment(term: Term, aliases: tuple[str, ...]) -> Fragment:
    inside = tuple(p for p in term.predicates if _reads(term, p) <= set(aliases))
    needed = _read_after(term)
    for predicate in term.predicates:
        if predicate not in inside:
            needed |= columns_of(predicate)
    columns = tuple(
        occurrence.qualified(name)
        for alias in aliases
        for occurrence in (term.occurrence(alias),)
        for name in occurrence.schema.names
        if occurrence.qualified(name) in needed
    )
    return Fragment(term.occurrence(aliases[0]).source, aliases, inside, columns)


def _components(term: Term) -> list[tuple[str, ...]]:
    """Aliases of one source, connected by predicates that read that source alone."""
    component = {o.alias: {o.alias} for o in term.occurrences}
    for predicate in term.predicates:
        aliases = _reads(term, predicate)
        if len({term.occurrence(alias).source for alias in aliases}) == 1:
            merged = set().union(*(component[alias] for alias in aliases))
            component.update(dict.fromkeys(merged, merged))
    order = [o.alias for o in term.occurrences]
    found = (tuple(a for a in order if a in component[alias]) for alias in order)
    return list(dict.fromkeys(found))


def _reads(term: Term, predicate: Expression) -> frozenset[str]:
    """The predicate's aliases; one that reads none is applied with the first occurrence."""
    return term.aliases_in(predicate) or frozenset({term.occurrences[0].alias})


def _read_after(term: Term) -> frozenset[str]:
    """The joined columns that outputs, or keys and aggregates, are computed from."""
    read: list[Expression]
    if term.grouping is None:
        read = [output.expression for output in term.outputs]
    else:
        read = [key.expression for key in term.grouping.keys]
        read += [a.argument for a in term.grouping.aggregates if a.argument is not None]
    return frozenset().union(*map(columns_of, read))
