"""Groups that are compared with values from elsewhere: HAVING and outputs that ask subqueries."""

from __future__ import annotations

import re
from dataclasses import replace

from viewkeeper.algebra.expressions import (
    Column,
    Expression,
    Output,
    columns_of,
    conjunction,
    conjuncts,
    substituted,
)
from viewkeeper.sql.naming import canonically_named
from viewkeeper.sql.steps import Steps, occurrence_of
from viewkeeper.views.definition import Grouping, Occurrence, Term
from viewkeeper.views.names import free_name


def joined_after_grouping(
    steps: Steps, term: Term, grouping: Grouping, values: tuple[Occurrence, ...]
) -> Term:
    """A grouped term whose HAVING and outputs read ``values``: its groups a step, joined with them."""
    foreign = {name for value in values for name in value.qualified_schema.names}
    parts = conjuncts(grouping.having)
    own = tuple(part for part in parts if not columns_of(part) & foreign)
    names = _column_names(grouping)
    groups, outputs = canonically_named(
        replace(grouping, having=conjunction(own)),
        tuple(Output(name, Column(before)) for before, name in names.items()),
    )
    step = steps.add("groups", (replace(term, outputs=outputs, grouping=groups, distinct=False),))
    taken = {value.alias.casefold() for value in values}
    occurrence = occurrence_of(step, free_name("groups", taken))
    columns: dict[str, Expression] = {
        before: Column(occurrence.qualified(name)) for before, name in names.items()
    }
    return Term(
        (occurrence, *values),
        tuple(substituted(part, columns) for part in parts if part not in own),
        tuple(Output(o.name, substituted(o.expression, columns)) for o in term.outputs),
        None,
        term.distinct,
    )


def _column_names(grouping: Grouping) -> dict[str, str]:
    """A plain name for every key and aggregate, by its present name, which may be a text."""
    names: dict[str, str] = {}
    for before in [k.name for k in grouping.keys] + [a.name for a in grouping.aggregates]:
        wanted = re.sub(r"\W+", "_", before).strip("_") or "column"
        names[before] = free_name(wanted, {name.casefold() for name in names.values()})
    return names
