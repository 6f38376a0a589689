"""The outputs of a SELECT, and what it groups by: a term over rows that FROM and WHERE have left."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.expressions import TRUE, Expression, Output
from viewkeeper.errors import UsageError
from viewkeeper.sql.expressions.columns import path_of, starred
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.joins.gathering import distinct_predicates
from viewkeeper.sql.refusals import require_only
from viewkeeper.sql.select.aggregation import (
    Aggregation,
    Selected,
    group_keys,
    grouped,
    having_condition,
)
from viewkeeper.sql.select.regrouping import joined_after_grouping
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.steps import Steps
from viewkeeper.views.definition import Grouping, Term


def term_of(text: SqlText, steps: Steps, node: exp.Select, joined: Joined, named: bool) -> Term:
    """The term of a SELECT over its rows; ``named``: whether it must name its outputs itself."""
    aggregation = Aggregation(text, joined)
    selected = _selected(text, node, joined, aggregation)
    selected = _named(text, selected, named)
    outputs = tuple(Output(s.name, s.expression) for s in selected)
    grouping, outputs = _grouping(text, node, aggregation, selected) or (None, outputs)
    distinct = node.args.get("distinct")
    if distinct is not None:
        require_only(text, distinct, (), "DISTINCT")
    term = Term(
        joined.occurrences,
        distinct_predicates(joined),
        outputs,
        grouping,
        distinct is not None,
    )
    if grouping is None or not joined.afterwards:
        return term
    return joined_after_grouping(steps, term, grouping, joined.afterwards)


def _selected(
    text: SqlText, node: exp.Select, joined: Joined, aggregation: Aggregation
) -> tuple[Selected, ...]:
    selected: list[Selected] = []
    for item in node.expressions:
        if isinstance(item, exp.Star) or (
            isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        ):
            columns = starred(text, joined.scope, item)
            selected += [Selected(c.name, c.expression, item) for c in columns]
        else:
            selected.append(_output(item, joined, aggregation))
    return tuple(selected)


def _output(item: exp.Expr, joined: Joined, aggregation: Aggregation) -> Selected:
    value = item.this if isinstance(item, exp.Alias) else item
    expression = aggregation.translator().translated(value)
    if isinstance(item, exp.Alias):
        return Selected(item.alias, expression, item)
    plain = value.unnest() if isinstance(value, exp.Paren) else value
    if isinstance(plain, exp.Column):
        return Selected(joined.scope.found(*path_of(plain))[0].name, expression, item)
    return Selected("", expression, item)


def _named(text: SqlText, selected: tuple[Selected, ...], named: bool) -> tuple[Selected, ...]:
    """The outputs under different names; where the query need not name them, under made-up ones."""
    seen: set[str] = set()
    result: list[Selected] = []
    for index, output in enumerate(selected):
        name = output.name
        if not name or name.casefold() in seen:
            if named:
                raise _badly_named(text, output)
            name = f"#{index}"
        seen.add(name.casefold())
        result.append(replace(output, name=name))
    return tuple(result)


def _badly_named(text: SqlText, output: Selected) -> UsageError:
    if not output.name:
        return text.error(
            "unnamed-output", "this output has no name", output.node, hint="name it: … AS name"
        )
    return text.error(
        "duplicate-output",
        f"two outputs are named {output.name}",
        output.node,
        hint="list the columns and rename one: … AS other_name",
    )


def _grouping(
    text: SqlText, node: exp.Select, aggregation: Aggregation, selected: tuple[Selected, ...]
) -> tuple[Grouping, tuple[Output, ...]] | None:
    group, having = node.args.get("group"), node.args.get("having")
    keys = group_keys(aggregation, group, selected)
    condition: Expression = TRUE
    if having is not None:
        condition = having_condition(aggregation, having.this, keys, selected)
    if group is None and not aggregation.aggregates:
        if having is None:
            return None
        raise _having_without_groups(text, having)
    return grouped(aggregation, keys, condition, selected)


def _having_without_groups(text: SqlText, having: exp.Expr) -> UsageError:
    return text.error(
        "having-without-group",
        "HAVING without GROUP BY or an aggregate",
        text.keyword(having, "HAVING"),
        hint="write WHERE",
    )
