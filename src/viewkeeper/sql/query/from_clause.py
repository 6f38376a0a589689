"""Reading FROM: tables, aliases, joins, CTEs and subqueries, each handed to `flattening`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.expressions import (
    Column,
    Output,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.sql.expressions.columns import resolved
from viewkeeper.sql.expressions.scope import Item, Scope, Visible
from viewkeeper.sql.joins.flattening import (
    Alternatives,
    Joined,
    base,
    combined,
    embedded,
    renamed_columns,
)
from viewkeeper.sql.joins.gathering import Mentioned
from viewkeeper.sql.joins.outer_joins import SideJoiner, Sides
from viewkeeper.sql.refusals import refused_generator, refused_join, require_only
from viewkeeper.sql.sqltext import SqlText, name_of
from viewkeeper.sql.steps import Steps, occurrence_of
from viewkeeper.sql.where.predicates import predicates_of
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import Occurrence, Term
from viewkeeper.views.names import Name, free_name


@dataclass(frozen=True)
class Named:
    """A CTE: its name, its query, and the CTEs that its query sees."""

    name: str
    query: exp.Expr
    columns: tuple[str, ...]
    environment: Environment


@dataclass(frozen=True)
class Environment:
    """The WITH names in reach, innermost last."""

    names: tuple[Named, ...] = ()

    def with_name(self, named: Named) -> Environment:
        return Environment((*self.names, named))

    def find(self, name: Name) -> Named | None:
        return next((n for n in reversed(self.names) if name.matches(n.name)), None)


@dataclass
class FromReader:
    """Reads the FROM of one SELECT.

    ``read_query`` reads a subquery to its terms; its flag says whether that must name its outputs.
    ``read_view`` gives another view, by its name and its terms, if there is one of that name.
    """

    text: SqlText
    catalog: Catalog
    environment: Environment
    steps: Steps
    read_query: Callable[[exp.Expr, Environment, bool], tuple[Term, ...]]
    read_view: Callable[[Name, exp.Expr], tuple[str, tuple[Term, ...]] | None]
    # Folded aliases: those the text gives, and those made up for occurrences of subqueries.
    _given: set[str] = field(default_factory=set)
    _made: set[str] = field(default_factory=set)
    _sides: SideJoiner = field(init=False)

    def read(self, select: exp.Select) -> Alternatives:
        """All alternatives of what FROM joins; raises UsageError."""
        first, joins = select.args["from_"].this, select.args.get("joins") or []
        self._sides = SideJoiner(self.steps, Mentioned.by(select), self._fresh)
        self._note_aliases([first, *(join.this for join in joins)])
        return self._joins(self._part(first), joins)

    def _note_aliases(self, nodes: list[exp.Expr]) -> None:
        """All aliases of this FROM, before any is made up; a name may be given once."""
        for node in nodes:
            alias = _alias(node)
            if alias and alias.casefold() in self._given:
                raise self.text.error(
                    "duplicate-alias",
                    f"{alias} names two tables of FROM",
                    node,
                    hint=f"give one of them another alias: AS {alias}2",
                )
            if "." in alias:
                raise self.text.error(
                    "bad-alias", f"the alias {alias} has a dot", node, hint="use a plain word"
                )
            self._given |= {alias.casefold()} if alias else set()
            self._note_aliases([join.this for join in node.args.get("joins") or ()])
            if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
                self._note_aliases([node.this])

    def _joins(self, found: Alternatives, joins: list[exp.Join]) -> Alternatives:
        """One join after the other, from the left; as in Spark, a comma binds like any JOIN."""
        for join in joins:
            require_only(self.text, join, _JOIN_PARTS, "a join")
            if (refusal := refused_join(self.text, join)) is not None:
                raise refusal
            side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
            right = self._part(join.this)
            if kind in ("SEMI", "ANTI"):
                sides = self._both(found, right, join, preserved=("LEFT",))
                found = (self._sides.kept(sides, with_partner=kind == "SEMI"),)
            elif side or kind == "OUTER":
                side = side or "FULL"
                preserved = ("LEFT", "RIGHT") if side == "FULL" else (side,)
                found = self._sides.outer(self._both(found, right, join, preserved), side)
            else:
                pairs = combined(self.text, found, right)
                found = tuple(self._join(left, right, join) for left, right in pairs)
        return found

    def _both(
        self, left: Alternatives, right: Alternatives, join: exp.Join, preserved: tuple[str, ...]
    ) -> Sides:
        """Both sides of a join that looks at partners; raises UsageError past the limits."""
        one_left = self._sides.one(left, is_preserved="LEFT" in preserved)
        one_right = self._sides.one(right, is_preserved="RIGHT" in preserved)
        (pair,) = combined(self.text, (one_left,), (one_right,))
        using = tuple(column.name for column in join.args.get("using") or ())
        return Sides(*pair, self._join(*pair, join), using)

    def _fresh(self, wanted: str) -> str:
        """An alias that nothing in this FROM has."""
        alias = free_name(wanted, self._given | self._made)
        self._made.add(alias.casefold())
        return alias

    def _join(self, left: Joined, right: Joined, join: exp.Join) -> Joined:
        if using := join.args.get("using"):
            pairs = tuple(self._shared(left.scope, right.scope, column) for column in using)
            with self.text.locating(using[0]):
                both = left.using(right, pairs)
                for predicate in both.predicates[-len(pairs) :]:
                    type_of(predicate, both.schema)
            return both
        both = left.beside(right)
        if (on := join.args.get("on")) is None:
            return both
        return both.where(predicates_of(self.text, both, on, "ON"))

    def _shared(self, left: Scope, right: Scope, column: exp.Expr) -> tuple[Visible, Visible]:
        reference = exp.Column(this=column.copy())
        return resolved(self.text, left, reference), resolved(self.text, right, reference)

    # -- one item ---------------------------------------------------------------------------------

    def _part(self, node: exp.Expr) -> Alternatives:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            return self._table(node)
        if isinstance(node, exp.Subquery):
            require_only(self.text, node, ("this", "alias", "with_", "joins"), "FROM")
            if isinstance(node.this, exp.Table):
                return self._parenthesised(node)
            return self._joins(self._subquery(node), node.args.get("joins") or [])
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            raise refused_generator(self.text, node, node.this.name.lower())
        name = "VALUES" if isinstance(node, exp.Values) else type(node).__name__.upper()
        raise self.text.error(
            "unsupported-from",
            f"{name} is not supported in FROM",
            self.text.keyword(node, name),
            hint="FROM takes tables of sources, WITH names and subqueries",
        )

    def _table(self, node: exp.Table) -> Alternatives:
        require_only(self.text, node, ("this", "db", "catalog", "alias", "joins"), "FROM")
        parts = [node.args.get(key) for key in ("catalog", "db", "this")]
        path = tuple(name_of(part) for part in parts if part is not None)
        named = self.environment.find(path[0]) if len(path) == 1 else None
        view = self.read_view(path[0], node) if len(path) == 1 and named is None else None
        if named is not None:
            terms = self.read_query(named.query, named.environment, not named.columns)
            found = self._embedded(terms, named.name, node, named.columns)
        elif view is not None:
            found = self._embedded(view[1], view[0], node, ())
        else:
            found = (self._base(node, path),)
        names = _column_aliases(node)
        if names:
            found = tuple(self._renamed(joined, node, names) for joined in found)
        return self._joins(found, node.args.get("joins") or [])

    def _base(self, node: exp.Table, path: tuple[Name, ...]) -> Joined:
        with self.text.locating(node):
            relation = self.catalog.find(path)
        spelling = (relation.name.source, *relation.name.relation.split("."))
        given = alias_given(node)
        alias = given or spelling[-1]
        occurrence = Occurrence(alias, relation.name, relation.schema, relation.key)
        return base(occurrence, (given,) if given else spelling)

    def _subquery(self, node: exp.Subquery) -> Alternatives:
        inner = node.this
        if with_ := node.args.get("with_"):
            inner = inner.copy()
            inner.set("with_", with_)
        names = _column_aliases(node)
        terms = self.read_query(inner, self.environment, not names)
        return self._embedded(terms, "", node, names)

    def _parenthesised(self, node: exp.Subquery) -> Alternatives:
        """``(a JOIN b ON …)``: without an alias its tables keep their names."""
        found = self._table(node.this)
        alias = alias_given(node)
        if not alias:
            return self._joins(found, node.args.get("joins") or [])
        renamed = tuple(
            Joined(j.occurrences, j.predicates, Scope.of(Item((alias,), j.scope.visible)))
            for j in found
        )
        return self._joins(renamed, node.args.get("joins") or [])

    def _embedded(
        self, terms: tuple[Term, ...], name: str, node: exp.Expr, names: tuple[str, ...]
    ) -> Alternatives:
        """A query in the place of a table, under its alias or its own ``name``, if it has one."""
        alias = alias_given(node) or name
        if not all(term.is_linear for term in terms):
            terms = (self._stepped(terms, name or alias or "subquery", alias or "subquery"),)
        taken = frozenset(self._given | self._made)
        found = tuple(embedded(term, alias, taken) for term in terms)
        self._made |= {o.alias.casefold() for joined in found for o in joined.occurrences}
        if names:
            found = tuple(self._renamed(joined, node, names) for joined in found)
        return found

    def _stepped(self, terms: tuple[Term, ...], name: str, alias: str) -> Term:
        """What groups or removes duplicates does not dissolve: it becomes a separate step, read as it is."""
        occurrence = occurrence_of(self.steps.add(name, terms), alias)
        names = occurrence.schema.names
        outputs = tuple(Output(name, Column(occurrence.qualified(name))) for name in names)
        return Term((occurrence,), (), outputs)

    def _renamed(self, joined: Joined, node: exp.Expr, names: tuple[str, ...]) -> Joined:
        if len(names) != len(joined.scope.visible):
            raise self.text.error(
                "wrong-column-list",
                f"{len(names)} column names for {len(joined.scope.visible)} columns",
                node,
                hint="name every column, or leave the list out",
            )
        return renamed_columns(joined, alias_given(node), names)


_JOIN_PARTS = ("this", "on", "using", "kind", "side", "method")


def alias_given(node: exp.Expr) -> str:
    """The alias that the text gives to an item of FROM, or the empty string."""
    return str(node.alias)


def _alias(node: exp.Expr) -> str:
    """The name an item goes by: its alias, or the last part of its name."""
    return alias_given(node) or (node.name if isinstance(node, exp.Table) else "")


def _column_aliases(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.args.get("columns") or ()) if alias else ()
