"""EXISTS and IN: rows that a subquery finds something for, as semi and anti joins.

Where a row is kept because something is found, and being found is a matter of equal columns, the
subquery's distinct columns are a step that the rows are joined with. Everything else looks at the pairs
of rows and what the subquery finds for them (`viewkeeper.sql.joins.partners`): nothing found; found by
other comparisons; or a truth value where EXISTS or IN is not a condition by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

from sqlglot import exp

from viewkeeper.algebra.expressions import (
    FALSE,
    TRUE,
    And,
    Case,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Or,
    Output,
    substituted,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import BOOLEAN
from viewkeeper.sql.expressions.scope import Scope, Visible
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.joins.outer_joins import label
from viewkeeper.sql.joins.partners import ONE, ZERO, Lookup, Pairs, Question
from viewkeeper.sql.naming import canonically_named
from viewkeeper.sql.steps import occurrence_of
from viewkeeper.sql.where.correlation import (
    around,
    closed,
    is_correlated,
    own_occurrences,
    paired,
    parted,
    reads_outer_in_conditions_only,
)
from viewkeeper.sql.where.subqueries import Asked, Context, apart, value_name
from viewkeeper.views.definition import Occurrence, Term

# The operands of IN over rows of one form or another; none for EXISTS.
Operands = Callable[[Joined], tuple[Expression, ...]]


@dataclass(frozen=True)
class Membership:
    """One EXISTS or IN of a SELECT; the terms of its subquery are all linear."""

    around: Context
    node: exp.Expr
    operands: Operands
    asked: Asked

    @classmethod
    def of(cls, here: Context, joined: Joined, node: exp.Expr, operands: Operands) -> Membership:
        """The subquery read beside the rows of ``joined``; raises UsageError."""
        asked = here.asked(joined, node)
        width = len(operands(joined))
        if isinstance(node, exp.In) and any(len(t.outputs) != width for t in asked.terms):
            raise here.text.error(
                "wrong-subquery",
                f"the subquery of IN must give {width} column{'s' * (width != 1)}",
                node,
                hint="select as many columns as stand before IN",
            )
        terms = tuple(_linear(here, node, term) for term in asked.terms)
        return cls(here, node, operands, replace(asked, terms=terms))

    def kept(self, joined: Joined, *, is_wanted: bool) -> Joined:
        """The rows for which it is true, or those for which it is false."""
        if is_wanted and len(self.asked.terms) == 1:
            by_keys = self._by_keys(joined, self.asked.terms[0])
            if by_keys is not None:
                return by_keys
        left = self.around.one(joined)
        pairs = [self._pairs(left, term) for term in self.asked.terms]
        found = [equal for equal, _ in pairs]
        if not is_wanted:
            found += chain.from_iterable(unknown for _, unknown in pairs)
        shape = self.around.shape(left)
        columns = tuple(o.expression for o in shape.outputs(0))
        lookup = Lookup(left, shape, tuple(Pairs(each, columns) for each in found))
        name = self._name(left, "with" if is_wanted else "without")
        return lookup.kept(self.around.steps, name, name, with_partner=is_wanted)

    def valued(self, joined: Joined) -> Joined:
        """All rows; whether it is true of them becomes a value of the scope."""
        left = self.around.one(joined)
        shape = self.around.shape(left)
        columns = tuple(o.expression for o in shape.outputs(0))
        pairs: list[Pairs] = []
        for equal, unknown in (self._pairs(left, term) for term in self.asked.terms):
            pairs.append(Pairs(equal, columns, (ONE, ZERO)))
            pairs += [Pairs(each, columns, (ZERO, ONE)) for each in unknown]
        questions = (Question("equal"), Question("unknown"))
        name = self._name(left, "asking")
        found = Lookup(left, shape, tuple(pairs), questions).answered(self.around.steps, name, name)
        *values, equal_value, unknown_value = found.scope.values
        truth = Case(
            (
                (Comparison(">", equal_value.expression, ZERO), TRUE),
                (Comparison(">", unknown_value.expression, ZERO), Literal(None, BOOLEAN)),
            ),
            FALSE,
        )
        value = Visible(value_name(self.around.text, self.node), truth)
        return replace(found, scope=replace(found.scope, values=(*values, value)))

    def _name(self, left: Joined, word: str) -> str:
        return f"{label(left.scope)}_{word}_{own_occurrences(self.asked.terms[0])[0].alias}"

    def _by_keys(self, joined: Joined, term: Term) -> Joined | None:
        """A join with the subquery's distinct columns, where equality is all that matters."""
        parts = parted(term)
        if parts.equal is None or not reads_outer_in_conditions_only(term):
            return None
        outside = around(self.asked.shape(joined))
        theirs = [within for _, within in parts.equal] + [o.expression for o in term.outputs]
        ours = [substituted(mine, outside) for mine, _ in parts.equal]
        operands = self.operands(joined)
        theirs, ours = theirs[: len(ours) + len(operands)], [*ours, *operands]
        alias = apart(joined, own_occurrences(term)[0].alias)
        occurrence, keys = self._distinct(
            closed(replace(term, predicates=parts.own)), theirs, alias
        )
        both = joined.beside(Joined((occurrence,), (), Scope()))
        equal = tuple(Comparison("=", a, b) for a, b in zip(ours, keys, strict=True))
        self._require_comparable(both, equal)
        return both.where(equal + tuple(substituted(p, outside) for p in parts.around))

    def _distinct(
        self, term: Term, values: list[Expression], alias: str
    ) -> tuple[Occurrence, tuple[Expression, ...]]:
        """Something that has these values of the term's rows, each once, and the values in it."""
        steps = self.around.steps
        first = term.occurrences[0]
        if not term.predicates and term.occurrences == (first,):
            unique = [Column(first.qualified(n)) for n in steps.key_of(first.name)]
            if unique and all(column in values for column in unique):
                named = replace(first, alias=alias)
                renamed: dict[str, Expression] = {
                    first.qualified(n): Column(named.qualified(n)) for n in first.schema.names
                }
                return named, tuple(substituted(value, renamed) for value in values)
        outputs = tuple(Output(f"key_{i}", value) for i, value in enumerate(values, 1))
        keys = replace(term, outputs=outputs or (Output("found", ONE),), distinct=True)
        occurrence = occurrence_of(steps.add(f"{first.alias}_keys", (keys,)), alias)
        return occurrence, tuple(Column(occurrence.qualified(o.name)) for o in outputs)

    def _pairs(self, left: Joined, term: Term) -> tuple[Joined, tuple[Joined, ...]]:
        """The pairs for which it is true, and those for which it is at most unknown, in several parts."""
        pairs = paired(left, self.asked.shape(left), term)
        operands = self.operands(left)
        matches = list(zip(operands, pairs.outputs, strict=False))
        equal = tuple(Comparison("=", mine, theirs) for mine, theirs in matches)
        self._require_comparable(pairs.joined, equal)
        match matches:
            case []:
                unknown: list[Expression] = []
            case [one]:
                # One by one, so that pairs are never sought by an OR.
                unknown = [IsNull(side) for side in one if _may_be_null(side)]
            case _:
                unknown = [And(tuple(Or((Comparison("=", *m), *map(IsNull, m))) for m in matches))]
        return pairs.joined.where(equal), tuple(pairs.joined.where((p,)) for p in unknown)

    def _require_comparable(self, joined: Joined, equal: tuple[Expression, ...]) -> None:
        for comparison in equal:
            with self.around.text.locating(self.node):
                type_of(comparison, joined.schema)


def _may_be_null(expression: Expression) -> bool:
    return not isinstance(expression, Literal) or expression.value is None


def _linear(here: Context, node: exp.Expr, term: Term) -> Term:
    """The term as a join: a grouped one becomes a step. Duplicates do not matter here."""
    grouping = term.grouping
    if grouping is None:
        return replace(term, distinct=False)
    parts = parted(term)
    if is_correlated(term):
        if parts.equal is None or not grouping.keys or not reads_outer_in_conditions_only(term):
            raise here.text.error(
                "unsupported-correlation",
                "a subquery that groups can read the rows around it by equality in its WHERE alone",
                node,
                hint="group in a subquery in FROM, and compare its columns in WHERE",
            )
        keys = tuple(Output(f"#with {i}", within) for i, (_, within) in enumerate(parts.equal))
        outputs = tuple(Output(f"with_{i}", Column(k.name)) for i, k in enumerate(keys))
        grouping, outputs = canonically_named(
            replace(grouping, keys=grouping.keys + keys), term.outputs + outputs
        )
        term = Term(own_occurrences(term), parts.own, outputs, grouping)
    alias = own_occurrences(term)[0].alias
    occurrence = occurrence_of(here.steps.add(f"{alias}_groups", (term,)), alias)
    columns = [Column(occurrence.qualified(n)) for n in occurrence.schema.names]
    width = len(columns) - len(parts.equal or ())
    equal = tuple(
        Comparison("=", mine, column)
        for (mine, _), column in zip(parts.equal or (), columns[width:], strict=True)
    )
    outputs = tuple(Output(o.name, c) for o, c in zip(term.outputs, columns[:width], strict=False))
    return Term((occurrence,), equal + parts.around, outputs)
