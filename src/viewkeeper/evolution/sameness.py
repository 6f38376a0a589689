"""Whether two definitions are the same view, whatever their steps call their columns.

A view that follows a rename keeps the names inside its steps; the same query, written with the new name, gives
those columns the new name. Nothing outside can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.algebra.expressions import Column, Expression, Output, substituted
from viewkeeper.views.definition import Grouping, Occurrence, RelationName, Term, ViewDefinition

_Names = Mapping[RelationName, Mapping[str, str]]


def canonical(definition: ViewDefinition) -> ViewDefinition:
    """The view with columns of steps, keys and aggregates named by their place."""
    names: dict[RelationName, Mapping[str, str]] = {}
    steps = []
    for step in definition.steps:
        terms = tuple(_renamed(term, names, is_step=True) for term in step.terms)
        names[step.name] = {f.name: f"c{i}" for i, f in enumerate(step.schema)}
        steps.append(replace(step, terms=terms))
    own = tuple(_renamed(term, names, is_step=False) for term in definition.terms)
    return replace(definition, steps=tuple(steps), terms=own)


def _renamed(term: Term, names: _Names, *, is_step: bool) -> Term:
    columns: dict[str, Expression] = {
        o.qualified(old): Column(o.qualified(new))
        for o in term.occurrences
        for old, new in names.get(o.name, {}).items()
    }
    grouping, grouped = _grouping(term.grouping, columns)
    outputs = tuple(
        Output(f"c{i}" if is_step else o.name, substituted(o.expression, grouped))
        for i, o in enumerate(term.outputs)
    )
    return replace(
        term,
        occurrences=tuple(_occurrence(o, names.get(o.name)) for o in term.occurrences),
        predicates=tuple(substituted(p, columns) for p in term.predicates),
        outputs=outputs,
        grouping=grouping,
    )


def _occurrence(occurrence: Occurrence, names: Mapping[str, str] | None) -> Occurrence:
    if names is None:
        return occurrence
    schema = occurrence.schema
    return replace(occurrence, schema=schema.renamed(names[c] for c in schema.names))


def _grouping(
    grouping: Grouping | None, columns: dict[str, Expression]
) -> tuple[Grouping | None, dict[str, Expression]]:
    """A grouping, and what its outputs' names become."""
    if grouping is None:
        return None, columns
    keys = {key.name: f"k{i}" for i, key in enumerate(grouping.keys)}
    names = keys | {a.name: f"a{i}" for i, a in enumerate(grouping.aggregates)}
    inside: dict[str, Expression] = {old: Column(new) for old, new in names.items()}
    renamed = Grouping(
        tuple(Output(names[k.name], substituted(k.expression, columns)) for k in grouping.keys),
        tuple(
            replace(
                a,
                name=names[a.name],
                argument=None if a.argument is None else substituted(a.argument, columns),
            )
            for a in grouping.aggregates
        ),
        substituted(grouping.having, inside),
        None if grouping.copies is None else names[grouping.copies],
    )
    return renamed, inside
