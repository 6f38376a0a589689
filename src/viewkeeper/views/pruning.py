"""A definition cut down to the columns it uses: what need not be read is not asked for."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.expressions import columns_of
from viewkeeper.algebra.types import Schema
from viewkeeper.views.definition import Occurrence, Term, ViewDefinition


def pruned(definition: ViewDefinition) -> ViewDefinition:
    """The same view over narrower relations."""
    return replace(definition, terms=tuple(_pruned_term(term) for term in definition.terms))


def _pruned_term(term: Term) -> Term:
    used = set().union(*(columns_of(predicate) for predicate in term.predicates))
    if term.grouping is None:
        used |= set().union(*(columns_of(output.expression) for output in term.outputs))
    else:
        used |= set().union(*(columns_of(key.expression) for key in term.grouping.keys))
        arguments = [a.argument for a in term.grouping.aggregates if a.argument is not None]
        used |= set().union(*(columns_of(argument) for argument in arguments))
    occurrences = tuple(_pruned_occurrence(occurrence, used) for occurrence in term.occurrences)
    return replace(term, occurrences=occurrences)


def _pruned_occurrence(occurrence: Occurrence, used: set[str]) -> Occurrence:
    fields = tuple(f for f in occurrence.schema if occurrence.qualified(f.name) in used)
    # Rows must be counted even if no column of them is read.
    return replace(occurrence, schema=Schema(fields or occurrence.schema.fields[:1]))
