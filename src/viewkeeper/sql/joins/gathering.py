"""What FROM offers, made one relation: alternatives and joins gathered into a step of the view.

Whatever is not a sum of joins needs that: a grouping over a UNION ALL, the rows of an outer join that
found no partner. All names that the text may use afterwards stand for columns of the step; those it
never writes are left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.algebra.expressions import Column, Expression, Output, substituted
from viewkeeper.sql.expressions.scope import Item, Scope, Visible
from viewkeeper.sql.joins.flattening import Alternatives, Joined
from viewkeeper.sql.steps import Steps, occurrence_of
from viewkeeper.views.definition import Occurrence, Step, Term
from viewkeeper.views.names import free_name


@dataclass(frozen=True)
class Mentioned:
    """The columns that a SELECT writes anywhere, as (qualifier, name); None where it writes ``*``.

    ``tables`` are the qualifiers that each mean one item of FROM; any other may be an alias of several.
    """

    names: frozenset[tuple[str, str]] | None = None
    tables: frozenset[str] = frozenset()

    @classmethod
    def by(cls, select: exp.Expr) -> Mentioned:
        if any(_is_all_columns(star) for star in select.find_all(exp.Star)):
            return cls(None)
        names = {(c.table.casefold(), c.name.casefold()) for c in select.find_all(exp.Column)}
        for join in select.find_all(exp.Join):
            names |= {("", column.name.casefold()) for column in join.args.get("using") or ()}
        items = [join.this for join in select.args.get("joins") or ()]
        if first := select.args.get("from_"):
            items.append(first.this)
        return cls(frozenset(names), frozenset(map(str.casefold, _tables(items))))

    def of(self, path: tuple[str, ...], name: str) -> bool:
        """Whether the column ``name`` may be meant, of the table of this path, or (no path) of any."""
        if self.names is None:
            return True
        here = {""} | {part.casefold() for part in path[-1:]}
        folded = name.casefold()
        return any(n == folded and (q in here or q not in self.tables) for q, n in self.names)


def _tables(items: list[exp.Expr]) -> Iterator[str]:
    for item in items:
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table):
            yield from _tables([item.this])
        else:
            yield item.alias_or_name
        yield from _tables([join.this for join in item.args.get("joins") or ()])


def _is_all_columns(star: exp.Expr) -> bool:
    """Whether the star stands for columns: not in ``count(*)`` nor in ``EXISTS (SELECT * …)``."""
    parent = star.parent
    if isinstance(parent, exp.Column):
        parent = parent.parent
    return isinstance(parent, exp.Select) and not isinstance(parent.parent, exp.Exists)


@dataclass(frozen=True)
class Layout:
    """Which columns a gathered relation has, and what names stand for them.

    ``columns``: for each, its name and its expression in every alternative; ``scope`` is over them.
    """

    scope: Scope
    columns: tuple[tuple[str, tuple[Expression, ...]], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def outputs(self, alternative: int) -> tuple[Output, ...]:
        return tuple(Output(name, values[alternative]) for name, values in self.columns)

    def seen_in(self, occurrence: Occurrence) -> Scope:
        """The scope over an occurrence that has these columns."""
        columns: dict[str, Expression] = {
            name: Column(occurrence.qualified(name)) for name in self.names
        }
        return self.scope.mapped(lambda expression: substituted(expression, columns))


def layout(alternatives: Alternatives, mentioned: Mentioned) -> Layout:
    """The columns of the alternatives, all of the same shape, that may still be needed."""
    scopes = [joined.scope for joined in alternatives]
    columns = _Columns(mentioned)
    items = tuple(
        Item(alike[0].path, columns.placed([item.columns for item in alike], alike[0].path))
        for alike in zip(*(scope.items for scope in scopes), strict=True)
    )
    visible = columns.placed([scope.visible for scope in scopes])
    values = columns.placed([scope.values for scope in scopes], all_of_them=True)
    if not columns.names:
        # Rows must be counted even if no column of them is read.
        columns.placed([scope.visible[:1] for scope in scopes], all_of_them=True)
    scope = replace(scopes[0], items=items, visible=visible, values=values)
    return Layout(scope, tuple((name, values) for values, name in columns.names.items()))


@dataclass
class _Columns:
    """Gives every expression, seen in all alternatives, one name."""

    mentioned: Mentioned
    names: dict[tuple[Expression, ...], str] = field(default_factory=dict)

    def placed(
        self,
        alternatives: list[tuple[Visible, ...]],
        path: tuple[str, ...] = (),
        *,
        all_of_them: bool = False,
    ) -> tuple[Visible, ...]:
        kept: list[Visible] = []
        for alike in zip(*alternatives, strict=True):
            name = alike[0].name
            if all_of_them or self.mentioned.of(path, name):
                values = tuple(visible.expression for visible in alike)
                if values not in self.names:
                    taken = {known.casefold() for known in self.names.values()}
                    self.names[values] = free_name(name, taken)
                kept.append(Visible(name, Column(self.names[values])))
        return tuple(kept)


def gathered(
    steps: Steps,
    alternatives: Alternatives,
    mentioned: Mentioned,
    wanted: str,
    alias: Callable[[], str],
) -> Joined:
    """The alternatives as one occurrence: as they are, or as a step named much as ``wanted``."""
    if len(alternatives) == 1 and len(alternatives[0].occurrences) == 1:
        return alternatives[0]
    shape = layout(alternatives, mentioned)
    terms = tuple(
        Term(joined.occurrences, distinct_predicates(joined), shape.outputs(index))
        for index, joined in enumerate(alternatives)
    )
    return stepped(steps.add(wanted, terms), shape, alias())


def stepped(step: Step, shape: Layout, alias: str) -> Joined:
    """A step that has the columns of a layout, under their names."""
    occurrence = occurrence_of(step, alias)
    return Joined((occurrence,), (), shape.seen_in(occurrence))


def distinct_predicates(joined: Joined) -> tuple[Expression, ...]:
    """What must hold, each condition once."""
    return tuple(dict.fromkeys(joined.predicates))
