"""Subqueries as values: one row, one column, for every row around them.

Without a look at the row around, the value is a step of one row. With one, it is an aggregate, and the
groups that it is taken of are a step: by the columns that must equal something of the row around or,
where other comparisons are made, by the distinct columns of the rows around themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.expressions import (
    TRUE,
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    Literal,
    Negate,
    Output,
    columns_of,
    substituted,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.errors import UsageError
from viewkeeper.sql.expressions.scope import Scope, Visible
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.joins.outer_joins import label
from viewkeeper.sql.joins.partners import ZERO, Lookup, Pairs, Question
from viewkeeper.sql.naming import canonically_named, with_outputs
from viewkeeper.sql.steps import Steps, occurrence_of
from viewkeeper.sql.where.correlation import (
    around,
    is_correlated,
    over,
    own_occurrences,
    parted,
    read_columns,
    reads_outer_in_conditions_only,
)
from viewkeeper.sql.where.subqueries import Asked, Context, apart, value_name
from viewkeeper.views.definition import Grouping, Occurrence, Term
from viewkeeper.views.names import free_name

_STRICT = (exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Cast)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def needs_a_value(condition: exp.Expr, node: exp.Expr) -> bool:
    """Whether the condition can only be true where the subquery inside it is not NULL."""
    parent = node.parent
    while isinstance(parent, _STRICT) and parent is not condition:
        parent = parent.parent
    return parent is condition and isinstance(condition, _COMPARISONS)


def alone(here: Context, asked: Asked, joined: Joined, node: exp.Expr) -> Occurrence:
    """A value that does not depend on the row around: a step of one row; raises UsageError."""
    if len(asked.terms) != 1 or len(asked.terms[0].outputs) != 1:
        raise _not_one_value(here, asked, node)
    (term,) = asked.terms
    if is_correlated(term):
        raise here.text.error(
            "unsupported-correlation",
            "a subquery in a grouped SELECT can't read the rows around it",
            node,
            hint="group in a subquery in FROM, and compare around it",
        )
    if not has_one_row(here.steps, term):
        raise _several_rows(here, node)
    term = with_outputs(term, (replace(term.outputs[0], name="value"),))
    alias = f"{own_occurrences(term)[0].alias}_value"
    return occurrence_of(here.steps.add(alias, (term,)), apart(joined, alias))


def compared_later(here: Context, joined: Joined, node: exp.Expr) -> Joined:
    """Rows that are grouped, with a value in scope that is joined to their groups."""
    if isinstance(node, exp.Exists | exp.In):
        raise here.text.error(
            "unsupported-subquery",
            "EXISTS and IN (SELECT …) can't be asked of groups",
            node,
            hint="group in a subquery in FROM, and ask in the WHERE around it",
        )
    occurrence = alone(here, here.asked(joined, node), joined, node)
    value = Column(occurrence.qualified("value"))
    joined = replace(joined, afterwards=(*joined.afterwards, occurrence))
    return joined.valuing((Visible(value_name(here.text, node), value),))


def has_one_row(steps: Steps, term: Term) -> bool:
    """Whether the term gives one row, whatever its relations hold."""
    if term.grouping is not None:
        return not term.grouping.keys and term.grouping.having == TRUE
    if term.predicates:
        return False
    of_steps = [steps.terms_of(o.name) for o in term.occurrences]
    return all(len(terms) == 1 and has_one_row(steps, terms[0]) for terms in of_steps)


def _several_rows(here: Context, node: exp.Expr) -> UsageError:
    return here.text.error(
        "several-rows",
        "a subquery as a value must give one row, whatever its tables hold",
        node,
        hint="select an aggregate: min(…), max(…), sum(…), without GROUP BY or HAVING",
    )


def valued(here: Context, joined: Joined, node: exp.Expr, *, is_needed: bool) -> Joined:
    """The rows with the subquery's value in scope.

    ``is_needed``: rows for which it is NULL may be missing.
    """
    asked = here.asked(joined, node)
    if len(asked.terms) != 1 or len(asked.terms[0].outputs) != 1:
        raise _not_one_value(here, asked, node)
    (term,) = asked.terms
    name = value_name(here.text, node)
    if not is_correlated(term):
        occurrence = alone(here, asked, joined, node)
        value = Column(occurrence.qualified("value"))
        return joined.beside(Joined((occurrence,), (), Scope())).valuing((Visible(name, value),))
    if term.grouping is None or term.grouping.keys or term.grouping.having != TRUE:
        raise _several_rows(here, node)
    return _Correlated(here, asked, term, term.grouping, name).valued(joined, is_needed=is_needed)


def _not_one_value(here: Context, asked: Asked, node: exp.Expr) -> UsageError:
    if len(asked.terms) != 1:
        return _several_rows(here, node)
    return here.text.error(
        "wrong-subquery",
        f"a subquery as a value gives one column, and this one {len(asked.terms[0].outputs)}",
        node,
        hint="select one column",
    )


@dataclass(frozen=True)
class _Correlated:
    """An aggregate over what belongs to a row around."""

    here: Context
    asked: Asked
    term: Term
    grouping: Grouping
    name: str

    def valued(self, joined: Joined, *, is_needed: bool) -> Joined:
        by_keys = parted(self.term).equal is not None and self._aggregates_are_its_own()
        if not by_keys or not (is_needed and self._is_null_of_nothing()):
            joined = self.here.one(joined)
        groups, conditions = self._by_keys(joined) if by_keys else self._by_rows(joined)
        width = len(groups.schema.names) - len(self.grouping.aggregates)
        found = [Column(groups.qualified(n)) for n in groups.schema.names[width:]]
        both = joined.beside(Joined((groups,), (), Scope())).where(conditions)
        if is_needed and self._is_null_of_nothing():
            values: list[Expression] = list(found)
            return both.valuing((Visible(self.name, self._value(joined, values)),))
        return self._looked_up(joined, both, found)

    def _aggregates_are_its_own(self) -> bool:
        return reads_outer_in_conditions_only(replace(self.term, outputs=()))

    def _by_keys(self, joined: Joined) -> tuple[Occurrence, tuple[Expression, ...]]:
        """Groups by what must equal something of the row around, and the conditions to join them."""
        parts = parted(self.term)
        outside = around(self.asked.shape(joined))
        keys = tuple(Output(f"key_{i}", e) for i, (_, e) in enumerate(parts.equal or (), 1))
        term = Term(own_occurrences(self.term), parts.own, ())
        groups = self._groups(joined, term, self.grouping, keys)
        equal = tuple(
            Comparison("=", substituted(mine, outside), Column(groups.qualified(key.name)))
            for (mine, _), key in zip(parts.equal or (), keys, strict=True)
        )
        return groups, equal + tuple(substituted(p, outside) for p in parts.around)

    def _by_rows(self, joined: Joined) -> tuple[Occurrence, tuple[Expression, ...]]:
        """Groups by the distinct columns that are read of the rows around."""
        shape = self.asked.shape(joined)
        read = read_columns(replace(self.term, outputs=()), shape)
        outputs = tuple(o for o in shape.outputs(0) if o.name in read)
        rows = Term(joined.occurrences, joined.predicates, outputs, distinct=True)
        name = f"{label(joined.scope)}_keys"
        own = {o.alias.casefold() for o in own_occurrences(self.term)}
        occurrence = occurrence_of(self.here.steps.add(name, (rows,)), free_name(name, own))
        term = over(self.term, occurrence)
        keys = tuple(Output(o.name, Column(occurrence.qualified(o.name))) for o in outputs)
        groups = self._groups(joined, term, term.grouping or self.grouping, keys)
        same = tuple(
            Comparison("<=>", o.expression, Column(groups.qualified(o.name))) for o in outputs
        )
        return groups, same

    def _groups(
        self, joined: Joined, term: Term, grouping: Grouping, keys: tuple[Output, ...]
    ) -> Occurrence:
        """An occurrence of the groups: their keys, then every aggregate."""
        aggregates = grouping.aggregates
        outputs = tuple(Output(key.name, Column(f"#{key.name}")) for key in keys)
        outputs += tuple(Output(f"value_{i}", Column(a.name)) for i, a in enumerate(aggregates, 1))
        named = tuple(replace(key, name=f"#{key.name}") for key in keys)
        grouping, outputs = canonically_named(Grouping(named, aggregates), outputs)
        alias = own_occurrences(self.term)[0].alias
        grouped = replace(term, outputs=outputs, grouping=grouping)
        step = self.here.steps.add(f"{alias}_groups", (grouped,))
        return occurrence_of(step, apart(joined, alias))

    def _is_null_of_nothing(self) -> bool:
        """Whether the value is NULL where no row belongs to the row around."""
        (output,) = self.term.outputs
        nullable = {a.name for a in self.grouping.aggregates if a.function != "count"}
        return _is_strict(output.expression) and bool(columns_of(output.expression) & nullable)

    def _value(self, joined: Joined, values: list[Expression]) -> Expression:
        """The subquery's output, its aggregates being worth ``values``."""
        (output,) = self.term.outputs
        names = [aggregate.name for aggregate in self.grouping.aggregates]
        columns = around(self.asked.shape(joined)) | dict(zip(names, values, strict=True))
        return substituted(output.expression, columns)

    def _looked_up(self, left: Joined, both: Joined, found: list[Column]) -> Joined:
        """All rows; where no group belongs to one, counts are 0 and other aggregates NULL."""
        shape = self.here.shape(left)
        columns = tuple(o.expression for o in shape.outputs(0))
        questions = tuple(
            Question(f"value_{i}", "max", Literal(None, type_of(column, both.schema)))
            for i, column in enumerate(found, 1)
        )
        name = f"{label(left.scope)}_asking_{own_occurrences(self.term)[0].alias}"
        lookup = Lookup(left, shape, (Pairs(both, columns, tuple(found)),), questions)
        answered = lookup.answered(self.here.steps, name, name)
        before = len(left.scope.values)
        values = [
            Call("coalesce", (value.expression, ZERO))
            if a.function == "count"
            else value.expression
            for a, value in zip(
                self.grouping.aggregates, answered.scope.values[before:], strict=True
            )
        ]
        scope = replace(answered.scope, values=answered.scope.values[:before])
        answered = replace(answered, scope=scope)
        return answered.valuing((Visible(self.name, self._value(answered, values)),))


def _is_strict(expression: Expression) -> bool:
    match expression:
        case Column() | Literal():
            return True
        case Arithmetic(_, left, right):
            return _is_strict(left) and _is_strict(right)
        case Negate(operand) | Cast(operand, _):
            return _is_strict(operand)
        case _:
            return False
