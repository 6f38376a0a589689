"""A definition cut down to the columns it uses: what need not be read is not asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.algebra.expressions import columns_of
from viewkeeper.algebra.types import Schema
from viewkeeper.views.definition import Occurrence, RelationName, Step, Term, ViewDefinition


def pruned(definition: ViewDefinition) -> ViewDefinition:
    """The same view over narrower relations; all occurrences of a relation keep the same columns.

    Steps give no more columns than the terms after them read.
    """
    used: defaultdict[RelationName, set[str]] = defaultdict(set)
    _note_columns(definition.terms, used)
    steps: list[Step] = []
    for step in reversed(definition.steps):
        narrow = _narrowed_step(step, used[step.name])
        # What was only asked for by an output that is not read is not asked for either.
        used[step.name] = set(narrow.schema.names)
        _note_columns(narrow.terms, used)
        steps.insert(0, narrow)
    return replace(
        definition,
        terms=_over_narrowed(definition.terms, used),
        steps=tuple(replace(step, terms=_over_narrowed(step.terms, used)) for step in steps),
    )


Used = Mapping[RelationName, set[str]]


def _note_columns(terms: tuple[Term, ...], used: Used) -> None:
    """Add the columns that these terms read."""
    for term in terms:
        names = term.columns_read
        for occurrence in term.occurrences:
            columns = occurrence.schema.names
            used[occurrence.name].update(c for c in columns if occurrence.qualified(c) in names)


def _over_narrowed(terms: tuple[Term, ...], used: Used) -> tuple[Term, ...]:
    return tuple(
        replace(term, occurrences=tuple(_narrowed(o, used[o.name]) for o in term.occurrences))
        for term in terms
    )


def _narrowed_step(step: Step, used: set[str]) -> Step:
    if any(term.distinct for term in step.terms):
        return step  # which rows are equal depends on all columns
    kept = [i for i, name in enumerate(step.schema.names) if name in used] or [0]
    return replace(step, terms=tuple(_with_outputs(term, kept) for term in step.terms))


def _with_outputs(term: Term, kept: list[int]) -> Term:
    """The term with these of its outputs, and of its aggregates those that are still needed."""
    outputs = tuple(term.outputs[i] for i in kept)
    grouping = term.grouping
    if grouping is None:
        return replace(term, outputs=outputs)
    expressions = (grouping.having, *(output.expression for output in outputs))
    needed = {name for expression in expressions for name in columns_of(expression)}
    needed |= {grouping.copies or ""}
    aggregates = tuple(a for a in grouping.aggregates if a.name in needed)
    return replace(term, outputs=outputs, grouping=replace(grouping, aggregates=aggregates))


def _narrowed(occurrence: Occurrence, used: set[str]) -> Occurrence:
    fields = tuple(field for field in occurrence.schema if field.name in used)
    # Rows must be counted even if no column of them is read.
    schema = Schema(fields or occurrence.schema.fields[:1])
    key = occurrence.key if all(column in schema for column in occurrence.key) else ()
    return replace(occurrence, schema=schema, key=key)
