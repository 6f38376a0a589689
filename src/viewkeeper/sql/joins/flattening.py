"""FROM as one flat join: relations, joins, CTEs and subqueries become occurrences and predicates.

A subquery that selects, projects and joins is dissolved: its occurrences join the outer term under
fresh aliases, its predicates are kept, its outputs become what its columns stand for. A UNION ALL in
FROM gives several *alternatives*; the query around it is distributed over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from viewkeeper.algebra.expressions import Column, Comparison, Expression, substituted
from viewkeeper.algebra.types import Schema
from viewkeeper.sql.expressions.scope import Item, Scope, Visible
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.views.definition import Occurrence, Term
from viewkeeper.views.names import free_name

# A chain of CTEs that each use the one before twice doubles with every link: stop that early.
OCCURRENCES_MAX = 64
TERMS_MAX = 64


@dataclass(frozen=True)
class Joined:
    """A part of FROM: what it joins, what must hold, and which names it offers.

    ``afterwards`` is joined once the rest is grouped.
    """

    occurrences: tuple[Occurrence, ...] = ()
    predicates: tuple[Expression, ...] = ()
    scope: Scope = field(default_factory=Scope)
    afterwards: tuple[Occurrence, ...] = ()

    @cached_property
    def schema(self) -> Schema:
        occurrences = self.occurrences + self.afterwards
        return Schema(tuple(f for o in occurrences for f in o.qualified_schema))

    def beside(self, other: Joined) -> Joined:
        """The product of two parts."""
        return Joined(
            self.occurrences + other.occurrences,
            self.predicates + other.predicates,
            self.scope.beside(other.scope),
        )

    def where(self, predicates: tuple[Expression, ...]) -> Joined:
        return replace(self, predicates=self.predicates + predicates)

    def valuing(self, values: tuple[Visible, ...]) -> Joined:
        """The part with further values of subqueries in its scope."""
        return replace(self, scope=replace(self.scope, values=self.scope.values + values))

    def naming(self, outputs: tuple[str, ...]) -> Joined:
        """The part as seen by a SELECT that gives its outputs these names."""
        return replace(self, scope=replace(self.scope, outputs=outputs))

    def using(self, other: Joined, pairs: tuple[tuple[Visible, Visible], ...]) -> Joined:
        """The join on equal columns of the same name, which are seen once."""
        equal = tuple(Comparison("=", a.expression, b.expression) for a, b in pairs)
        names = tuple(left.name for left, _ in pairs)
        return Joined(
            self.occurrences + other.occurrences,
            self.predicates + other.predicates + equal,
            self.scope.merged(other.scope, names),
        )


Alternatives = tuple[Joined, ...]


def combined(
    text: SqlText, left: Alternatives, right: Alternatives
) -> Iterator[tuple[Joined, Joined]]:
    """Every alternative on the left with every one on the right; raises UsageError past the limits."""
    require_bounded(text, len(left) * len(right))
    most = max(len(a.occurrences) for a in left) + max(len(b.occurrences) for b in right)
    if most > OCCURRENCES_MAX:
        raise text.error(
            "too-many-relations",
            f"the view joins more than {OCCURRENCES_MAX} relations once its subqueries are dissolved",
            hint="split it into several views",
        )
    return product(left, right)


def require_bounded(text: SqlText, terms: int) -> None:
    if terms > TERMS_MAX:
        raise text.error(
            "too-many-terms",
            f"the view has more than {TERMS_MAX} UNION ALL branches once its subqueries are dissolved",
            hint="split it into several views",
        )


def embedded(term: Term, alias: str, taken: frozenset[str]) -> Joined:
    """A subquery's term dissolved into the query around it, under the name ``alias`` (maybe empty).

    ``taken`` are the folded aliases that its occurrences must stay clear of. One occurrence alone
    takes the subquery's alias, which is kept free for it.
    """
    renamed: dict[str, str] = {}
    for occurrence in term.occurrences:
        if alias and len(term.occurrences) == 1:
            renamed[occurrence.alias] = alias
            continue
        wanted = f"{alias}_{occurrence.alias}" if alias else occurrence.alias
        used = taken | {name.casefold() for name in renamed.values()}
        renamed[occurrence.alias] = free_name(wanted, used)
    occurrences = tuple(
        Occurrence(renamed[o.alias], o.name, o.schema, o.key) for o in term.occurrences
    )
    columns: dict[str, Expression] = {
        before.qualified(name): Column(after.qualified(name))
        for before, after in zip(term.occurrences, occurrences, strict=True)
        for name in before.schema.names
    }
    visible = tuple(Visible(o.name, substituted(o.expression, columns)) for o in term.outputs)
    return Joined(
        occurrences,
        tuple(substituted(predicate, columns) for predicate in term.predicates),
        Scope.of(Item((alias,) if alias else (), visible)),
    )


def renamed_columns(joined: Joined, alias: str, names: tuple[str, ...]) -> Joined:
    """The part under another alias and other column names: ``AS t (a, b)``."""
    visible = joined.scope.visible
    columns = tuple(Visible(n, v.expression) for n, v in zip(names, visible, strict=True))
    item = Item((alias,) if alias else joined.scope.items[0].path, columns)
    return Joined(joined.occurrences, joined.predicates, Scope.of(item))


def base(occurrence: Occurrence, path: tuple[str, ...]) -> Joined:
    """A relation of the catalog on its own."""
    columns = tuple(
        Visible(name, Column(occurrence.qualified(name))) for name in occurrence.schema.names
    )
    return Joined((occurrence,), (), Scope.of(Item(path, columns)))
