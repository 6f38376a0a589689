"""Outer, semi and anti joins in FROM, as sums of joins.

The pairs that meet the condition are a step. An outer join is these pairs, and the rows of a preserved
side that are in none of them, padded with NULLs: alternatives of FROM, like the branches of a UNION ALL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from viewkeeper.algebra.expressions import Call, Column, Expression, Literal
from viewkeeper.algebra.inference import type_of
from viewkeeper.sql.expressions.scope import Scope, Visible
from viewkeeper.sql.joins.flattening import Alternatives, Joined
from viewkeeper.sql.joins.gathering import Layout, Mentioned, gathered, layout
from viewkeeper.sql.joins.partners import Lookup, Pairs
from viewkeeper.sql.steps import Steps


@dataclass(frozen=True)
class Sides:
    """Two sides of a join and the pairs that meet its condition; ``using`` are the shared columns."""

    left: Joined
    right: Joined
    pairs: Joined
    using: tuple[str, ...] = ()


@dataclass(frozen=True)
class SideJoiner:
    """Joins the sides of one FROM. ``fresh`` gives an alias that nothing there has."""

    steps: Steps
    mentioned: Mentioned
    fresh: Callable[[str], str]

    def one(self, alternatives: Alternatives, *, is_preserved: bool) -> Joined:
        """A side as one alternative, and as one relation where its rows are needed twice."""
        if len(alternatives) == 1 and not is_preserved:
            return alternatives[0]
        name = label(alternatives[0].scope)
        return gathered(self.steps, alternatives, self.mentioned, name, lambda: self.fresh(name))

    def outer(self, sides: Sides, side: str) -> Alternatives:
        """LEFT, RIGHT or FULL OUTER JOIN."""
        sides = replace(sides, pairs=_seen_by(sides, side))
        left, right = (layout((part,), self.mentioned) for part in (sides.left, sides.right))
        pairs, left_columns, right_columns = self._pairs(sides, left, right)
        found = [pairs]
        if side in ("LEFT", "FULL"):
            alone = self._alone(sides.left, left, Pairs(pairs, left_columns), sides)
            padded = _padding(sides.right, right)
            found.append(replace(alone, scope=_merged(alone.scope, padded, sides.using, side)))
        if side in ("RIGHT", "FULL"):
            alone = self._alone(sides.right, right, Pairs(pairs, right_columns), sides)
            padded = _padding(sides.left, left)
            found.append(replace(alone, scope=_merged(padded, alone.scope, sides.using, side)))
        return tuple(found)

    def kept(self, sides: Sides, *, with_partner: bool) -> Joined:
        """LEFT SEMI and LEFT ANTI JOIN."""
        shape = layout((sides.left,), self.mentioned)
        columns = tuple(output.expression for output in shape.outputs(0))
        lookup = Lookup(sides.left, shape, (Pairs(sides.pairs, columns),))
        name = f"{label(sides.left.scope)}_{'with' if with_partner else 'without'}_{label(sides.right.scope)}"
        return lookup.kept(self.steps, name, self.fresh(name), with_partner=with_partner)

    def _pairs(
        self, sides: Sides, left: Layout, right: Layout
    ) -> tuple[Joined, tuple[Expression, ...], tuple[Expression, ...]]:
        """The pairs as a step, and both sides' columns there."""
        before = sides.pairs.scope.values
        # Carried through as values, the columns of both sides can be found again behind the step.
        columns = [Visible(o.name, o.expression) for o in (*left.outputs(0), *right.outputs(0))]
        name = f"{label(sides.left.scope)}_{label(sides.right.scope)}"
        pairs = gathered(
            self.steps,
            (sides.pairs.valuing(tuple(columns)),),
            self.mentioned,
            name,
            lambda: self.fresh(name),
        )
        values = pairs.scope.values
        found = tuple(value.expression for value in values[len(before) :])
        pairs = replace(pairs, scope=replace(pairs.scope, values=values[: len(before)]))
        return pairs, found[: len(left.columns)], found[len(left.columns) :]

    def _alone(self, side: Joined, shape: Layout, pairs: Pairs, sides: Sides) -> Joined:
        """The rows of a side that are in no pair."""
        other = sides.right if side is sides.left else sides.left
        name = f"{label(side.scope)}_without_{label(other.scope)}"
        lookup = Lookup(side, shape, (pairs,))
        return lookup.kept(self.steps, name, self.fresh(name), with_partner=False)


def label(scope: Scope) -> str:
    """A short name for what a scope offers, from the names of its tables."""
    names = [item.path[-1] for item in scope.items if item.path] or ["rows"]
    return names[0] if len(names) == 1 else f"{names[0]}_{names[-1]}"


def _padding(side: Joined, shape: Layout) -> Scope:
    """The names of a side, all standing for NULL."""
    values = {name: alike[0] for name, alike in shape.columns}

    def null(expression: Expression) -> Expression:
        if isinstance(expression, Column):
            expression = values[expression.name]
        return Literal(None, type_of(expression, side.schema))

    return shape.scope.mapped(null)


def _seen_by(sides: Sides, side: str) -> Joined:
    scope = _merged(sides.left.scope, sides.right.scope, sides.using, side)
    return replace(sides.pairs, scope=replace(scope, enclosing=sides.pairs.scope.enclosing))


def _merged(left: Scope, right: Scope, using: tuple[str, ...], side: str) -> Scope:
    """The names of both; the shared ones, first, are those of the preserved side, or of either."""
    if not using:
        return left.beside(right)
    both = left.merged(right, using)
    shared = tuple(
        Visible(column.name, _shared(column.expression, _named(right, column.name), side))
        for column in both.visible[: len(using)]
    )
    return replace(both, visible=shared + both.visible[len(using) :])


def _shared(left: Expression, right: Expression, side: str) -> Expression:
    match side:
        case "LEFT":
            return left
        case "RIGHT":
            return right
        case _:
            return Call("coalesce", (left, right))


def _named(scope: Scope, name: str) -> Expression:
    return next(v.expression for v in scope.visible if v.name.casefold() == name.casefold())
