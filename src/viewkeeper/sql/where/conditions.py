"""WHERE with subqueries: each conjunct that asks one keeps rows, or has its value joined to them.

In a subquery that reads the row around it, that row is put aside while further ones are joined.
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.expressions import Expression
from viewkeeper.sql.expressions.calls import is_aggregate
from viewkeeper.sql.expressions.translation import operands_of
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.where.aside import put_aside
from viewkeeper.sql.where.membership import Membership, Operands
from viewkeeper.sql.where.predicates import row_translator
from viewkeeper.sql.where.scalars import needs_a_value, valued
from viewkeeper.sql.where.subqueries import Context, is_subquery, subqueries_in


def conjuncts_of(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that must all hold."""
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
        return conjuncts_of(node.this)
    if isinstance(node, exp.And):
        return [part for operand in operands_of(node) for part in conjuncts_of(operand)]
    return [node]


def filtered(here: Context, joined: Joined, conjuncts: list[exp.Expr]) -> Joined:
    """The rows, joined with what the conjuncts ask; those that only compare values are left to do."""
    aside, (rows,) = put_aside((joined,))
    for conjunct in conjuncts:
        node, is_wanted = _stripped(conjunct)
        if is_kept_by(conjunct):
            operand = node.this if isinstance(node, exp.In) else exp.Null()
            rows = with_values(here, rows, subqueries_in(operand))
            membership = Membership.of(here, rows, node, _operands(here, node))
            rows = membership.kept(rows, is_wanted=is_wanted)
        else:
            rows = with_values(here, rows, subqueries_in(conjunct), conjunct)
    return aside.back(rows)


def is_kept_by(conjunct: exp.Expr) -> bool:
    """Whether `filtered` does all that the conjunct asks for."""
    node, _ = _stripped(conjunct)
    return is_subquery(node) and isinstance(node, exp.Exists | exp.In)


def with_values(
    here: Context,
    joined: Joined,
    nodes: list[exp.Expr],
    condition: exp.Expr | None = None,
) -> Joined:
    """The rows with the values of these subqueries in scope; ``condition`` must hold for a row."""
    for node in nodes:
        if isinstance(node, exp.Exists | exp.In):
            joined = Membership.of(here, joined, node, _operands(here, node)).valued(joined)
        else:
            is_needed = condition is not None and needs_a_value(condition, node)
            joined = valued(here, joined, node, is_needed=is_needed)
    return joined


def is_grouped(select: exp.Select) -> bool:
    """Whether the SELECT gives groups: by GROUP BY, HAVING, or an aggregate among its outputs."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(
        is_aggregate(node)
        for item in select.expressions
        for node in item.walk(prune=is_subquery)
        if not is_subquery(node)
    )


def is_inside_aggregate(node: exp.Expr) -> bool:
    """Whether a subquery of a SELECT stands in the argument of an aggregate there."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Select):
        if is_aggregate(parent):
            return True
        parent = parent.parent
    return False


def _stripped(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """The condition inside NOTs and parentheses, and whether it is wanted to be true."""
    is_wanted = True
    while isinstance(node, exp.Not | exp.Paren):
        is_wanted ^= isinstance(node, exp.Not)
        node = node.this
    return node, is_wanted


def _operands(here: Context, node: exp.Expr) -> Operands:
    if not isinstance(node, exp.In):
        return lambda joined: ()
    row = node.this.unnest()
    parts = row.expressions if isinstance(row, exp.Tuple) else [row]

    def translated(joined: Joined) -> tuple[Expression, ...]:
        translator = row_translator(here.text, joined, "WHERE")
        return tuple(translator.translated(part) for part in parts)

    return translated
