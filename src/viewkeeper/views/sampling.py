"""Which rows of a view a few values pick out, and what of its relations is enough to compute them.

Pure. A value of an output that is a plain column of one relation picks rows of the view *exactly*: with that
relation restricted to the value, the view over it gives these rows and no others. That holds for joins,
groups and DISTINCT of one SELECT, as long as groups do not spread over several values. Where a view has
steps (outer joins, subqueries) or several terms, nothing is picked.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.expressions import Column, Comparison, Expression
from viewkeeper.algebra.types import Kind
from viewkeeper.views.definition import Term, ViewDefinition

# Doubles are compared badly by value, and timestamps travel in different forms.
_PICKABLE = (Kind.INTEGER, Kind.STRING, Kind.DECIMAL, Kind.DATE)


@dataclass(frozen=True)
class Picked:
    """An output that is the column of one occurrence."""

    output: str
    alias: str
    column: str


@dataclass(frozen=True)
class Follow:
    """The next occurrence to read: whole, or the rows whose column equals a known one's."""

    alias: str
    column: str = ""
    known_alias: str = ""
    known_column: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.column


def picked(definition: ViewDefinition) -> Picked | None:
    """The output to sample by; a key's column where there is one."""
    if definition.steps or len(definition.terms) != 1:
        return None
    (term,) = definition.terms
    found = []
    names = definition.schema.names
    for place, output in enumerate(term.outputs):
        column = _base_column(term, output.expression)
        if column is None:
            continue
        for occurrence in term.occurrences:
            for field in occurrence.schema:
                if occurrence.qualified(field.name) == column and field.type.kind in _PICKABLE:
                    is_key = field.name in occurrence.key
                    found.append((is_key, Picked(names[place], occurrence.alias, field.name)))
    found.sort(key=lambda each: not each[0])
    return found[0][1] if found else None


def _base_column(term: Term, expression: Expression) -> str | None:
    """The occurrence's column that an output shows as it is."""
    if not isinstance(expression, Column):
        return None
    if term.grouping is None:
        return expression.name
    if term.grouping.copies is not None:
        return None
    for key in term.grouping.keys:
        if key.name == expression.name and isinstance(key.expression, Column):
            return key.expression.name
    return None


def reading_order(term: Term, first: str) -> list[Follow]:
    """How the other occurrences are read once the first one is: along equalities, as far as they go."""
    fields = {
        o.qualified(f.name): (o.alias, f.name, f.type) for o in term.occurrences for f in o.schema
    }
    known, order = {first}, []
    while len(known) < len(term.occurrences):
        follow = next(
            (f for p in term.predicates if (f := _along(p, fields, known)) is not None), None
        )
        if follow is None:
            alias = next(o.alias for o in term.occurrences if o.alias not in known)
            follow = Follow(alias)
        known.add(follow.alias)
        order.append(follow)
    return order


def _along(predicate: Expression, fields: dict[str, tuple], known: set[str]) -> Follow | None:  # type: ignore[type-arg]
    if not (isinstance(predicate, Comparison) and predicate.operator == "="):
        return None
    for left, right in (
        (predicate.left, predicate.right),
        (predicate.right, predicate.left),
    ):
        if isinstance(left, Column) and isinstance(right, Column):
            one, other = fields.get(left.name), fields.get(right.name)
            if one is None or other is None or one[2] != other[2]:
                continue
            if one[0] in known and other[0] not in known:
                return Follow(other[0], other[1], one[0], one[1])
    return None
