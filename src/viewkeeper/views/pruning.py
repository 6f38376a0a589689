"""A definition cut down to the columns it uses: what need not be read is not asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from viewkeeper.algebra.expressions import Expression, columns_of
from viewkeeper.algebra.types import Schema
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition


def pruned(definition: ViewDefinition) -> ViewDefinition:
    """The same view over narrower relations; all occurrences of a relation keep the same columns."""
    used: defaultdict[RelationName, set[str]] = defaultdict(set)
    for term in definition.terms:
        names = {name for e in _expressions(term) for name in columns_of(e)}
        for occurrence in term.occurrences:
            columns = occurrence.schema.names
            used[occurrence.name] |= {c for c in columns if occurrence.qualified(c) in names}
    terms = tuple(
        replace(term, occurrences=tuple(_narrowed(o, used[o.name]) for o in term.occurrences))
        for term in definition.terms
    )
    return replace(definition, terms=terms)


def _expressions(term: Term) -> Iterator[Expression]:
    """Everything that is computed from the occurrences' own columns."""
    yield from term.predicates
    if term.grouping is None:
        yield from (output.expression for output in term.outputs)
    else:
        yield from (key.expression for key in term.grouping.keys)
        yield from (a.argument for a in term.grouping.aggregates if a.argument is not None)


def _narrowed(occurrence: Occurrence, used: set[str]) -> Occurrence:
    fields = tuple(field for field in occurrence.schema if field.name in used)
    # Rows must be counted even if no column of them is read.
    schema = Schema(fields or occurrence.schema.fields[:1])
    key = occurrence.key if all(column in schema for column in occurrence.key) else ()
    return replace(occurrence, schema=schema, key=key)
