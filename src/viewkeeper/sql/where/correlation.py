"""Queries that read columns of the query around them, and how they get rid of it.

While a subquery is read, the row of the query around it is one more occurrence of its terms, `OUTER`:
a relation that does not exist. Afterwards its columns are replaced by what they stand for (`paired`),
or the conditions that compare it with the subquery's own columns are taken out of it (`parted`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewkeeper.algebra.expressions import (
    Column,
    Comparison,
    Expression,
    columns_of,
    substituted,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import Field, Schema
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.joins.gathering import Layout
from viewkeeper.sql.steps import OUTER
from viewkeeper.views.definition import Grouping, Occurrence, Term
from viewkeeper.views.names import free_name

# No alias that a text gives can be this one: it has a dot.
_ALIAS = "^.row"


def outer_row(joined: Joined, shape: Layout) -> Joined:
    """The row of the query around, as far as a subquery may read it."""
    fields = tuple(Field(name, type_of(values[0], joined.schema)) for name, values in shape.columns)
    occurrence = Occurrence(_ALIAS, OUTER, Schema(fields))
    beyond = joined.scope.enclosing or joined.scope.beyond
    scope = replace(shape.seen_in(occurrence), values=(), enclosing=None, beyond=beyond)
    return Joined((occurrence,), (), scope)


def inside(joined: Joined, outer: Joined) -> Joined:
    """The FROM of a subquery, with the row around it in reach."""
    scope = replace(joined.scope, enclosing=outer.scope)
    return Joined(outer.occurrences + joined.occurrences, joined.predicates, scope)


def own_occurrences(term: Term) -> tuple[Occurrence, ...]:
    return tuple(o for o in term.occurrences if o.name != OUTER)


def is_correlated(term: Term) -> bool:
    """Whether the term reads the row around it."""
    return any(reads_outer(expression) for expression in _all_expressions(term))


def reads_outer(expression: Expression) -> bool:
    """Whether the expression reads the row around."""
    return any(name.startswith(f"{_ALIAS}.") for name in columns_of(expression))


def _all_expressions(term: Term) -> list[Expression]:
    found = [*term.predicates, *(output.expression for output in term.outputs)]
    if term.grouping is not None:
        found += _grouped_expressions(term.grouping)
    return found


def _grouped_expressions(grouping: Grouping) -> list[Expression]:
    arguments = [a.argument for a in grouping.aggregates if a.argument is not None]
    return [*(key.expression for key in grouping.keys), *arguments, grouping.having]


def closed(term: Term) -> Term:
    """The term without the row around it, which it must not read."""
    return replace(term, occurrences=own_occurrences(term))


def reads_outer_in_conditions_only(term: Term) -> bool:
    """Whether WHERE is the only place where the term reads the row around it."""
    return not is_correlated(replace(term, predicates=()))


@dataclass(frozen=True)
class Parted:
    """A term's conditions: its own, those that compare it with the row around, and those on that row.

    ``equal``: pairs (around, inside) that must be equal. None where another comparison is among them.
    """

    own: tuple[Expression, ...]
    equal: tuple[tuple[Expression, Expression], ...] | None
    around: tuple[Expression, ...]


def parted(term: Term) -> Parted:
    """The conditions of a subquery's term, by what they read."""
    own: list[Expression] = []
    equal: list[tuple[Expression, Expression]] | None = []
    around: list[Expression] = []
    for predicate in term.predicates:
        if not reads_outer(predicate):
            own.append(predicate)
        elif _reads_outer_alone(predicate):
            around.append(predicate)
        else:
            pair = _equality(predicate)
            equal = None if equal is None or pair is None else [*equal, pair]
    return Parted(tuple(own), None if equal is None else tuple(equal), tuple(around))


def _reads_outer_alone(expression: Expression) -> bool:
    return all(name.startswith(f"{_ALIAS}.") for name in columns_of(expression))


def _equality(predicate: Expression) -> tuple[Expression, Expression] | None:
    match predicate:
        case Comparison("=", left, right):
            for around, within in ((left, right), (right, left)):
                if _reads_outer_alone(around) and not reads_outer(within):
                    return around, within
    return None


@dataclass(frozen=True)
class Paired:
    """A row and the rows that a subquery finds for it: ``outputs`` are the subquery's, per pair."""

    joined: Joined
    outputs: tuple[Expression, ...]


def paired(left: Joined, shape: Layout, term: Term) -> Paired:
    """The pairs of rows of ``left`` and rows of a linear term that read it as ``shape`` says."""
    taken = {o.alias.casefold() for o in left.occurrences}
    columns = around(shape)
    occurrences: list[Occurrence] = []
    for before in own_occurrences(term):
        after = replace(before, alias=free_name(before.alias, taken))
        taken.add(after.alias.casefold())
        occurrences.append(after)
        columns |= {before.qualified(n): Column(after.qualified(n)) for n in before.schema.names}
    predicates = tuple(substituted(p, columns) for p in term.predicates)
    joined = Joined(left.occurrences + tuple(occurrences), left.predicates + predicates, left.scope)
    return Paired(joined, tuple(substituted(o.expression, columns) for o in term.outputs))


def around(shape: Layout) -> dict[str, Expression]:
    """The columns of the row around, and what they stand for where they came from."""
    return {f"{_ALIAS}.{name}": values[0] for name, values in shape.columns}


def read_columns(term: Term, shape: Layout) -> tuple[str, ...]:
    """The columns of the row around that the term reads."""
    read = frozenset().union(*map(columns_of, _all_expressions(term)))
    return tuple(name for name in shape.names if f"{_ALIAS}.{name}" in read)


def over(term: Term, occurrence: Occurrence) -> Term:
    """The term with an occurrence, which has its columns, in the place of the row around."""
    columns: dict[str, Expression] = {
        f"{_ALIAS}.{n}": Column(occurrence.qualified(n)) for n in occurrence.schema.names
    }
    grouping = term.grouping
    if grouping is not None:
        grouping = replace(
            grouping,
            aggregates=tuple(
                replace(a, argument=a.argument and substituted(a.argument, columns))
                for a in grouping.aggregates
            ),
        )
    return replace(
        term,
        occurrences=(occurrence, *own_occurrences(term)),
        predicates=tuple(substituted(p, columns) for p in term.predicates),
        grouping=grouping,
    )
