"""Scalar expressions of the syntax tree as expressions of the algebra, typed on the way.

What a name means and whether an aggregate may stand here is decided by the caller that starts a translation;
this file knows operators, predicates, CASE and CAST. Calls are in `viewkeeper.sql.expressions.calls`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from viewkeeper.algebra.evaluation import compiled
from viewkeeper.algebra.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Comparison,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
)
from viewkeeper.algebra.inference import common_type, type_of
from viewkeeper.algebra.types import BOOLEAN, INTEGER, STRING, Kind, Schema, Type
from viewkeeper.errors import UsageError
from viewkeeper.sql.expressions import literals
from viewkeeper.sql.expressions.calls import call_of, is_narrow_call
from viewkeeper.sql.expressions.constants import (
    constant,
    is_null,
    is_string,
    number_written,
    text_of,
    type_written,
)
from viewkeeper.sql.expressions.intervals import shifted
from viewkeeper.sql.refusals import refused_expression
from viewkeeper.sql.sqltext import SqlText

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_PREDICATES = (*_COMPARISONS, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like)
_TEMPORAL = (Kind.DATE, Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP)


class Translator:
    """Translates expressions of one place in a query.

    ``column`` resolves a name, ``aggregate`` takes a call of an aggregate function, ``subquery`` a
    subquery; ``schema`` gives the types of everything those three return.
    """

    def __init__(
        self,
        text: SqlText,
        schema: Callable[[], Schema],
        column: Callable[[exp.Column], Expression],
        aggregate: Callable[[exp.Expr], Expression],
        subquery: Callable[[exp.Expr], Expression],
    ) -> None:
        self.text = text
        self.schema = schema
        self._column = column
        self.aggregate = aggregate
        self._subquery = subquery

    def condition(self, node: exp.Expr) -> Expression:
        """A condition; raises UsageError when it is no boolean."""
        if is_null(node):
            return Literal(None, BOOLEAN)
        condition = self.translated(node)
        with self.text.locating(node):
            type_of(Not(condition), self.schema())
        return condition

    def type(self, expression: Expression) -> Type:
        return type_of(expression, self.schema())

    def translated(self, node: exp.Expr) -> Expression:
        """The node as an expression; raises UsageError, with the place, where it has no meaning."""
        expression = self._untyped(node)
        with self.text.locating(node):
            type_of(expression, self.schema())
        return expression

    def _untyped(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Exists() | exp.Subquery() | exp.Select():
                return self._subquery(node)
            case exp.In() if node.args.get("query"):
                return self._subquery(node)
            case exp.Paren():
                return self.translated(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal() | exp.Boolean() | exp.RawString() | exp.HexString():
                return constant(self.text, node)
            case exp.Neg():
                return self._negated(node)
            case exp.And() | exp.Or():
                operands = tuple(self.condition(part) for part in operands_of(node))
                return And(operands) if isinstance(node, exp.And) else Or(operands)
            case exp.Not():
                return Not(self.condition(node.this))
            case exp.Cast() if type(node) is exp.Cast:
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                branches = [(node.this, node.args["true"])]
                return self._branches(None, branches, node.args.get("false"))
            case exp.DPipe():
                sides = (self.translated(node.this), self.translated(node.expression))
                return Call("concat", sides)
            case exp.Null():
                raise untyped_null(self.text, node)
        if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
            return self._shifted(node, node.expression)
        if isinstance(node, _PREDICATES):
            return self._predicate(node)
        if type(node) in _ARITHMETIC:
            left, right = self.together([node.this, node.expression])
            return Arithmetic(_ARITHMETIC[type(node)], left, right)
        call = call_of(self, node)
        if call is None:
            raise refused_expression(self.text, node)
        return call

    # -- predicates -------------------------------------------------------------------------------

    def _predicate(self, node: exp.Expr) -> Expression:
        self._require_parentheses(node)
        match node:
            case exp.Is():
                return self._is(node)
            case exp.In() if node.expressions:
                operand, *options = self.together([node.this, *node.expressions])
                found: Expression = InList(operand, tuple(options))
            case exp.In():
                raise self.text.error(
                    "empty-list", "IN needs a list of values", node, hint="write IN (value, …)"
                )
            case exp.Between() if not node.args.get("symmetric"):
                operand, low, high = self.together([node.this, node.args["low"], node.args["high"]])
                found = And((Comparison(">=", operand, low), Comparison("<=", operand, high)))
            case exp.Like():
                found = self._like(node)
            case exp.NullSafeNEQ():
                left, right = self.together([node.this, node.expression])
                found = Not(Comparison("<=>", left, right))
            case _ if type(node) in _COMPARISONS:
                left, right = self.together([node.this, node.expression])
                found = Comparison(_COMPARISONS[type(node)], left, right)
            case _:
                raise refused_expression(self.text, node)
        return Not(found) if node.args.get("negate") else found

    def _require_parentheses(self, node: exp.Expr) -> None:
        """``a = b < c`` is read differently by different databases, and hardly ever meant."""
        for side in (node.this, node.args.get("expression")):
            if isinstance(side, exp.Expr) and isinstance(side, _PREDICATES):
                raise self.text.error(
                    "ambiguous-comparison",
                    "two comparisons in a row",
                    side,
                    hint="put one of them in parentheses",
                )

    def _is(self, node: exp.Is) -> Expression:
        tested = node.expression
        match tested:
            case exp.Null():
                found: Expression = IsNull(self.translated(node.this))
            case exp.Boolean():
                found = Comparison("<=>", self.condition(node.this), constant(self.text, tested))
            case _:
                raise refused_expression(self.text, node)
        return Not(found) if node.args.get("negate") else found

    def _like(self, node: exp.Like) -> Expression:
        if not is_string(node.expression):
            raise self.text.error(
                "unsupported-like",
                "the pattern of LIKE must be a string literal",
                node.expression,
                hint="compare with = where no pattern is needed",
            )
        pattern = str(constant(self.text, node.expression).value)
        with self.text.locating(node.expression):
            compiled(Like(Literal("", STRING), pattern), Schema(()))
        return Like(self.translated(node.this), pattern)

    # -- values -----------------------------------------------------------------------------------

    def together(self, nodes: list[exp.Expr]) -> list[Expression]:
        """Operands that are brought together, where one side settles the type of another.

        A NULL takes the common type of the others; a string literal beside a date or a timestamp
        becomes one.
        """
        known = {i: self.translated(n) for i, n in enumerate(nodes) if not is_null(n)}
        if not known:
            raise untyped_null(self.text, nodes[0])
        temporal = {t for e in known.values() if (t := self.type(e)).kind in _TEMPORAL}
        for index, expression in known.items():
            if len(temporal) == 1 and is_string(nodes[index]):
                with self.text.locating(nodes[index]):
                    typed = literals.from_text(text_of(expression), next(iter(temporal)))
                    known[index] = typed or expression
        if len(known) == len(nodes):
            return list(known.values())
        with self.text.locating(nodes[0]):
            common = reduce(common_type, (self.type(e) for e in known.values()))
        return [known.get(index, Literal(None, common)) for index in range(len(nodes))]

    def _shifted(self, node: exp.Expr, interval: exp.Interval) -> Expression:
        date = self.translated(node.this)
        with self.text.locating(node):
            found = shifted(date, interval, 1 if isinstance(node, exp.Add) else -1)
        if found is None:
            raise refused_expression(self.text, interval)
        return found

    def _negated(self, node: exp.Neg) -> Expression:
        inner = node.this
        digits, suffix = number_written(self.text, inner)
        if digits is not None:
            # As in Spark, a sign before a number belongs to it: the smallest integer needs that.
            with self.text.locating(inner):
                return literals.number(digits, suffix, negative=True)
        return Negate(self.translated(inner))

    def _cast(self, node: exp.Cast) -> Expression:
        digits, suffix = number_written(self.text, node)
        if digits is not None:
            with self.text.locating(node.this):
                return literals.number(digits, suffix)
        if any(node.args.get(extra) for extra in ("format", "safe", "action", "default")):
            raise refused_expression(self.text, node)
        with self.text.locating(lambda: self.text.keyword(node, "CAST")):
            target = type_written(node.to)
        if is_null(node.this):
            return Literal(None, target)
        operand = self.translated(node.this)
        if is_string(node.this):
            with self.text.locating(node.this):
                typed = literals.from_text(text_of(operand), target)
            if typed is not None and target != STRING:
                return typed
        if target == INTEGER and is_narrow_call(node.this):
            return operand  # how a BIGINT is printed that Spark would make an INT
        return Cast(operand, target)

    def _case(self, node: exp.Case) -> Expression:
        branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        return self._branches(node.this, branches, node.args.get("default"))

    def _branches(
        self,
        tested: exp.Expr | None,
        branches: list[tuple[exp.Expr, exp.Expr]],
        default: exp.Expr | None,
    ) -> Expression:
        results = [result for _, result in branches]
        if default is not None and not is_null(default):
            results.append(default)
        values = self.together(results)
        conditions = [self._when(tested, condition) for condition, _ in branches]
        otherwise = values[len(branches)] if len(values) > len(branches) else None
        return Case(tuple(zip(conditions, values[: len(branches)], strict=True)), otherwise)

    def _when(self, tested: exp.Expr | None, condition: exp.Expr) -> Expression:
        if tested is None:
            return self.condition(condition)
        left, right = self.together([tested, condition])
        comparison = Comparison("=", left, right)
        with self.text.locating(condition):
            type_of(comparison, self.schema())
        return comparison


def untyped_null(text: SqlText, node: exp.Expr) -> UsageError:
    return text.error(
        "untyped-null",
        "nothing says which type this NULL has",
        node,
        hint="write CAST(NULL AS type)",
    )


def operands_of(node: exp.Expr) -> list[exp.Expr]:
    """The operands of ``a AND b AND c`` in order; without recursion, for chains may be long."""
    operands: list[exp.Expr] = []
    kind = type(node)
    while type(node) is kind:
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]
