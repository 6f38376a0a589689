"""The row around a subquery put aside, so that what it must not get into can be made without it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewkeeper.algebra.expressions import Column, Expression, columns_of, substituted
from viewkeeper.sql.expressions.scope import Scope, Visible
from viewkeeper.sql.joins.flattening import Alternatives, Joined
from viewkeeper.sql.steps import OUTER
from viewkeeper.views.definition import Occurrence


@dataclass(frozen=True)
class Aside:
    """The row around, and the conditions that read it; ``columns`` are what these read besides.

    Those columns come along with the rows, as values of the scope, to be found again.
    """

    outer: tuple[Occurrence, ...]
    predicates: tuple[Expression, ...]
    columns: tuple[str, ...]
    enclosing: Scope | None
    first: int

    def back(self, rows: Joined) -> Joined:
        """The rows as they have become, beside the row around them."""
        values = rows.scope.values
        last = self.first + len(self.columns)
        carried = (value.expression for value in values[self.first : last])
        found = dict(zip(self.columns, carried, strict=True))
        scope = replace(
            rows.scope,
            enclosing=self.enclosing,
            beyond=None,
            values=values[: self.first] + values[last:],
        )
        return replace(
            rows,
            occurrences=self.outer + rows.occurrences,
            predicates=rows.predicates + tuple(substituted(p, found) for p in self.predicates),
            scope=scope,
        )


def put_aside(alternatives: Alternatives) -> tuple[Aside, Alternatives]:
    """The row around, and the alternatives without it; of several, none may have read it yet."""
    outer = tuple(o for o in alternatives[0].occurrences if o.name == OUTER)
    around = {name for o in outer for name in o.qualified_schema.names}
    predicates = tuple(p for p in alternatives[0].predicates if columns_of(p) & around)
    columns = tuple(sorted({c for p in predicates for c in columns_of(p)} - around))
    scope = alternatives[0].scope
    aside = Aside(outer, predicates, columns, scope.enclosing, len(scope.values))
    return aside, tuple(_without(joined, aside) for joined in alternatives)


def _without(joined: Joined, aside: Aside) -> Joined:
    carried = tuple(Visible(column, Column(column)) for column in aside.columns)
    return replace(
        joined,
        occurrences=tuple(o for o in joined.occurrences if o.name != OUTER),
        predicates=tuple(p for p in joined.predicates if p not in aside.predicates),
        scope=replace(
            joined.scope,
            enclosing=None,
            beyond=joined.scope.enclosing,
            values=joined.scope.values + carried,
        ),
    )
