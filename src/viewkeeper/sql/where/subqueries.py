"""Subqueries in conditions and outputs: where they stand, and how what they say reaches that place.

A condition that is a conjunct of WHERE keeps rows. Anywhere else a subquery becomes a value of the
scope, a column like any other, under a name made of its place in the text; the expression around it
finds it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.expressions import Expression
from viewkeeper.sql.expressions.scope import Scope
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.joins.gathering import Layout, Mentioned, gathered, layout
from viewkeeper.sql.joins.outer_joins import label
from viewkeeper.sql.refusals import refused_expression
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.steps import Steps, Terms
from viewkeeper.sql.where.correlation import outer_row
from viewkeeper.views.names import free_name


def is_subquery(node: exp.Expr) -> bool:
    """Whether the node asks a query: EXISTS, IN (SELECT …), or a query as a value."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists | exp.Subquery | exp.Select)


def subqueries_in(node: exp.Expr) -> list[exp.Expr]:
    """The subqueries of an expression, each after those in its operand, not those inside of them."""
    found: list[exp.Expr] = []
    if isinstance(node, exp.In) and is_subquery(node):
        return [*subqueries_in(node.this), node]
    if is_subquery(node):
        return [node]
    for child in node.iter_expressions():
        found += subqueries_in(child)
    return found


def query_of(node: exp.Expr) -> exp.Expr:
    """The query that a subquery asks."""
    query = node.args.get("query") if isinstance(node, exp.In) else node
    while isinstance(query, exp.Exists | exp.Subquery) and not query.args.get("with_"):
        query = query.this
    return query or node


def value_name(text: SqlText, node: exp.Expr) -> str:
    """The name of a subquery's value in the scope."""
    return f"{node.key} at {text.offset(node)}"


def value_of(text: SqlText, scope: Scope, node: exp.Expr) -> Expression:
    """What a subquery is worth here; raises UsageError where it can't stand."""
    name = value_name(text, node)
    for value in scope.values:
        if value.name == name:
            return value.expression
    raise refused_expression(text, node)


@dataclass(frozen=True)
class Asked:
    """A subquery's terms, and how they read the rows around: ``shape`` are the columns in reach."""

    terms: Terms
    mentioned: Mentioned

    def shape(self, joined: Joined) -> Layout:
        """The columns in reach, of the rows in the form in which they are now."""
        return layout((joined,), self.mentioned)


@dataclass(frozen=True)
class Context:
    """What a subquery needs to know of the SELECT that it stands in."""

    text: SqlText
    steps: Steps
    mentioned: Mentioned
    read: Callable[[exp.Expr, Joined], Terms]

    def asked(self, joined: Joined, node: exp.Expr) -> Asked:
        """The subquery ``node`` read beside the rows of ``joined``; raises UsageError."""
        query = query_of(node)
        inner = Mentioned.by(query)
        mentioned = replace(inner, tables=inner.tables | self.mentioned.tables)
        with self.text.locating(node):
            terms = self.read(query, outer_row(joined, layout((joined,), mentioned)))
        return Asked(terms, mentioned)

    def one(self, joined: Joined) -> Joined:
        """The rows as one relation, for what needs them twice."""
        name = label(joined.scope)
        return gathered(self.steps, (joined,), self.mentioned, name, lambda: name)

    def shape(self, joined: Joined) -> Layout:
        """The columns of the rows that the SELECT may still read."""
        return layout((joined,), self.mentioned)


def apart(joined: Joined, alias: str) -> str:
    """An alias like this one that the rows do not have yet."""
    taken = {o.alias.casefold() for o in joined.occurrences + joined.afterwards}
    return free_name(alias, taken)
