"""Conditions over joined rows as predicates: one for each part that must hold."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.evaluation import compiled
from viewkeeper.algebra.expressions import (
    FALSE,
    TRUE,
    Expression,
    Or,
    columns_of,
    conjunction,
    conjuncts,
)
from viewkeeper.algebra.types import Schema
from viewkeeper.errors import UsageError
from viewkeeper.sql.expressions.columns import resolved
from viewkeeper.sql.expressions.translation import Translator
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.where.subqueries import value_of


def predicates_of(
    text: SqlText, joined: Joined, node: exp.Expr, clause: str
) -> tuple[Expression, ...]:
    """A condition over joined rows as predicates that must all hold."""
    with text.locating(node):
        return settled(row_translator(text, joined, clause).condition(node))


def row_translator(text: SqlText, joined: Joined, clause: str) -> Translator:
    """For expressions over joined rows, where no aggregate may stand."""

    def no_aggregate(call: exp.Expr) -> Expression:
        raise misplaced_aggregate(text, call, clause)

    return Translator(
        text,
        lambda: joined.schema,
        lambda column: resolved(text, joined.scope, column).expression,
        no_aggregate,
        lambda node: value_of(text, joined.scope, node),
    )


def settled(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a condition; what is true of every row vanishes, and what is true of none is FALSE."""
    parts: list[Expression] = []
    for part in (p for each in conjuncts(condition) for p in _factored(each)):
        if columns_of(part):
            parts.append(part)
        elif compiled(part, Schema(()))(()) is not True:
            parts.append(FALSE)
    return tuple(parts)


def _factored(part: Expression) -> tuple[Expression, ...]:
    """What all branches of an OR demand, and the rest: a join must not hide in every one of them."""
    if not isinstance(part, Or):
        return (part,)
    branches = [conjuncts(branch) for branch in part.operands]
    shared = tuple(p for p in dict.fromkeys(branches[0]) if all(p in b for b in branches))
    if not shared:
        return (part,)
    rest = tuple(conjunction(tuple(p for p in b if p not in shared)) for b in branches)
    # Where a branch demands nothing more, the OR holds as soon as the shared part does.
    return shared if TRUE in rest else (*shared, Or(rest))


def misplaced_aggregate(text: SqlText, call: exp.Expr, clause: str) -> UsageError:
    return text.error(
        "misplaced-aggregate",
        f"an aggregate can't stand in {clause}",
        call,
        hint="group by columns and what is computed from them"
        if clause == "GROUP BY"
        else "put conditions on groups into HAVING",
    )
