"""The names of a grouping's keys and aggregates, which no text has but outputs refer to.

What an output shows as it is has that output's name; the rest is named by its text. So a query gives
the same names however it was spelled, and printing and parsing a definition changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.expressions import Column, Expression, Output, substituted
from viewkeeper.views.definition import Grouping, Term
from viewkeeper.views.spark_sql import aggregate_sql, expression_sql

Outputs = tuple[Output, ...]


def canonically_named(grouping: Grouping, outputs: Outputs) -> tuple[Grouping, Outputs]:
    """The same grouping and outputs under the names described above."""
    names = _names(grouping, outputs)
    final: dict[str, Expression] = {before: Column(after) for before, after in names.items()}
    renamed = Grouping(
        tuple(replace(key, name=names[key.name]) for key in grouping.keys),
        tuple(replace(aggregate, name=names[aggregate.name]) for aggregate in grouping.aggregates),
        substituted(grouping.having, final),
        None if grouping.copies is None else names[grouping.copies],
    )
    return renamed, tuple(Output(o.name, substituted(o.expression, final)) for o in outputs)


def with_outputs(term: Term, outputs: tuple[Output, ...]) -> Term:
    """The term with other outputs over the same rows or groups."""
    grouping = term.grouping
    if grouping is not None:
        grouping, outputs = canonically_named(grouping, outputs)
    return replace(term, outputs=outputs, grouping=grouping)


def _names(grouping: Grouping, outputs: Outputs) -> dict[str, str]:
    """Present to final names."""
    texts = {key.name: expression_sql(key.expression, str) for key in grouping.keys}
    texts |= {aggregate.name: aggregate_sql(aggregate, str) for aggregate in grouping.aggregates}
    names: dict[str, str] = {}
    for output in outputs:
        if isinstance(output.expression, Column) and output.expression.name in texts:
            names.setdefault(output.expression.name, output.name)
    taken = {output.name for output in outputs}
    for present, text in texts.items():
        if present not in names:
            while text in taken:
                text += "'"
            names[present] = text
            taken.add(text)
    return names
