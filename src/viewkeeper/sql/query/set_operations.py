"""UNION, INTERSECT and EXCEPT over terms that have already been read.

UNION ALL is the sum of terms. Everything else asks how often a row is there, so its branches become
a step, and a grouping by all columns over it decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from viewkeeper.algebra.expressions import (
    Aggregate,
    And,
    Cast,
    Column,
    Comparison,
    Expression,
    Literal,
    Output,
)
from viewkeeper.algebra.inference import common_type
from viewkeeper.algebra.types import INTEGER, Type
from viewkeeper.sql.naming import canonically_named, with_outputs
from viewkeeper.sql.steps import Steps, Terms, occurrence_of
from viewkeeper.views.definition import Grouping, Occurrence, Term
from viewkeeper.views.names import free_name


def alike(terms: Terms) -> Terms:
    """The terms with the names of the first and, by CAST, types common to all; raises UsageError."""
    first = terms[0]
    if len(terms) == 1:
        return terms
    columns = zip(*(term.schema.fields for term in terms), strict=True)
    types = [reduce(common_type, (field.type for field in column)) for column in columns]
    return tuple(_conformed(term, first.schema.names, types) for term in terms)


def _conformed(term: Term, names: tuple[str, ...], types: list[Type]) -> Term:
    found = term.schema.fields
    return with_outputs(
        term,
        tuple(
            Output(name, o.expression if field.type == type else Cast(o.expression, type))
            for name, o, field, type in zip(names, term.outputs, found, types, strict=True)
        ),
    )


def without_duplicates(steps: Steps, terms: Terms) -> Terms:
    """Every row of the terms once."""
    if len(terms) == 1:
        return (replace(terms[0], distinct=True),)
    occurrence = occurrence_of(steps.add("union", terms), "union")
    return (Term((occurrence,), (), _columns(occurrence, terms[0]), None, True),)


def common(steps: Steps, left: Terms, right: Terms) -> Terms:
    """INTERSECT: the rows that both sides have, once."""
    return _compared(steps, "intersect", left, right, ">")


def difference(steps: Steps, left: Terms, right: Terms) -> Terms:
    """EXCEPT: the rows that the left side has and the right side has not, once."""
    return _compared(steps, "except", left, right, "=")


def _compared(steps: Steps, name: str, left: Terms, right: Terms, operator: str) -> Terms:
    """The rows that are on the left and, as ``operator`` says, also (> 0) or not (= 0) on the right."""
    width, both = len(left[0].outputs), alike(left + right)
    tags = [(1, 0)] * len(left) + [(0, 1)] * len(right)
    occurrence = _tagged(steps, name, both, ("on_the_left", "on_the_right"), tags)
    tagged = [Column(occurrence.qualified(n)) for n in occurrence.schema.names[width:]]
    aggregates = tuple(Aggregate(f"#{i}", "sum", column) for i, column in enumerate(tagged))
    having = And((_compare("#0", ">"), _compare("#1", operator)))
    return (_grouped(occurrence, both[0], Grouping((), aggregates, having)),)


def difference_all(steps: Steps, left: Terms, right: Terms) -> Terms:
    """EXCEPT ALL: every row as often as the left side has it more than the right side."""
    width, both = len(left[0].outputs), alike(left + right)
    tags = [(1,)] * len(left) + [(-1,)] * len(right)
    occurrence = _tagged(steps, "except", both, ("copies",), tags)
    counted = Column(occurrence.qualified(occurrence.schema.names[width]))
    grouping = Grouping((), (Aggregate("#0", "sum", counted),), _compare("#0", ">"), "#0")
    return (_grouped(occurrence, both[0], grouping),)


def common_all(steps: Steps, left: Terms, right: Terms) -> Terms:
    """INTERSECT ALL: what is left of the left side without what it has more than the right side."""
    return difference_all(steps, left, difference_all(steps, left, right))


def _tagged(
    steps: Steps,
    name: str,
    terms: Terms,
    columns: tuple[str, ...],
    tags: Sequence[tuple[int, ...]],
) -> Occurrence:
    """An occurrence of the terms' rows, each with its term's tags behind it."""
    taken = {name.casefold() for name in terms[0].schema.names}
    names = [free_name(column, taken) for column in columns]
    tagged = tuple(
        replace(
            term,
            outputs=term.outputs
            + tuple(Output(n, Literal(tag, INTEGER)) for n, tag in zip(names, mine, strict=True)),
        )
        for term, mine in zip(terms, tags, strict=True)
    )
    return occurrence_of(steps.add(f"{name}_sides", tagged), name)


def _compare(aggregate: str, operator: str) -> Expression:
    return Comparison(operator, Column(aggregate), Literal(0, INTEGER))


def _grouped(occurrence: Occurrence, like: Term, grouping: Grouping) -> Term:
    """The occurrence grouped by the columns of ``like``, which are its first."""
    columns = _columns(occurrence, like)
    keys = tuple(Output(f"#key {i}", o.expression) for i, o in enumerate(columns))
    outputs = tuple(Output(o.name, Column(k.name)) for o, k in zip(columns, keys, strict=True))
    grouping, outputs = canonically_named(replace(grouping, keys=keys), outputs)
    return Term((occurrence,), (), outputs, grouping)


def _columns(occurrence: Occurrence, like: Term) -> tuple[Output, ...]:
    return tuple(Output(n, Column(occurrence.qualified(n))) for n in like.schema.names)
