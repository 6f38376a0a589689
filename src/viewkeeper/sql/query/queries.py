"""Reading queries to terms: SELECT, set operations, WITH; the same for a whole view and inside it."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.sql.joins.flattening import Alternatives, Joined, require_bounded
from viewkeeper.sql.joins.gathering import Mentioned, gathered
from viewkeeper.sql.query import set_operations
from viewkeeper.sql.query.from_clause import Environment, FromReader, Named
from viewkeeper.sql.query.references import References
from viewkeeper.sql.refusals import require_only
from viewkeeper.sql.select.outputs import term_of
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.steps import Steps, Terms
from viewkeeper.sql.syntax import parsed
from viewkeeper.sql.where.aside import put_aside
from viewkeeper.sql.where.conditions import (
    conjuncts_of,
    filtered,
    is_grouped,
    is_inside_aggregate,
    is_kept_by,
    with_values,
)
from viewkeeper.sql.where.correlation import closed, inside, is_correlated, reads_outer
from viewkeeper.sql.where.predicates import predicates_of
from viewkeeper.sql.where.scalars import compared_later
from viewkeeper.sql.where.subqueries import Context, subqueries_in
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import Term
from viewkeeper.views.names import Name

# ORDER BY is read over: a view is a bag of rows (LIMIT, which would make it matter, is refused).
_SELECT_PARTS = (
    "with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "hint",
    "order",
)  # fmt: skip
_UNION_PARTS = ("with_", "this", "expression", "distinct", "order")


class QueryReader:
    """Reads the queries of one text. What they need besides terms is added to ``steps``."""

    def __init__(
        self, text: SqlText, catalog: Catalog, steps: Steps, references: References
    ) -> None:
        self._text = text
        self._catalog = catalog
        self._steps = steps
        self._references = references

    def read(
        self,
        node: exp.Expr,
        environment: Environment,
        named: bool = True,
        outer: Joined | None = None,
    ) -> Terms:
        """The terms of a query, types of their outputs brought together.

        ``named``: whether the query itself must name its outputs, each differently. ``outer``: the
        row of the query around it, if it may read that.
        """
        environment = self._with(node, environment)
        match node:
            case exp.Subquery():
                require_only(self._text, node, ("this", "with_", "order"), "a query in parentheses")
                return self.read(node.this, environment, named, outer)
            case exp.SetOperation():
                return self._set_operations(node, environment, named, outer)
            case exp.Select():
                return self._select(node, environment, named, outer)
            case _:
                raise self._text.error(
                    "unsupported-query",
                    f"{node.key.upper()} is not supported as a query",
                    self._text.keyword(node, node.key.upper()),
                    hint="write SELECT … FROM …",
                )

    def _view(self, name: Name, node: exp.Expr) -> tuple[str, Terms] | None:
        """The view that an item of FROM names, and its terms; None where there is no such view."""
        view = self._references.find(name)
        if view is None:
            self._references.require_no_slip(name, self._text, node)
            return None

        def read(text: SqlText) -> Terms:
            reader = QueryReader(text, self._catalog, self._steps, self._references)
            return reader.read(parsed(text), Environment())

        return view, self._references.terms(view, self._text, node, read)

    def _with(self, node: exp.Expr, environment: Environment) -> Environment:
        with_ = node.args.get("with_")
        if with_ is None:
            return environment
        if with_.args.get("recursive"):
            raise self._text.error(
                "unsupported-recursion",
                "WITH RECURSIVE is not supported",
                self._text.keyword(with_.expressions[0], "RECURSIVE"),
                hint="recursion can't be maintained; join a fixed number of times",
            )
        seen: set[str] = set()
        for cte in with_.expressions:
            if cte.alias.casefold() in seen:
                raise self._text.error(
                    "duplicate-alias",
                    f"WITH defines {cte.alias} twice",
                    cte.args["alias"],
                    hint="rename one of them",
                )
            seen.add(cte.alias.casefold())
            columns = tuple(column.name for column in cte.args["alias"].args.get("columns") or ())
            environment = environment.with_name(Named(cte.alias, cte.this, columns, environment))
        return environment

    # -- UNION, INTERSECT, EXCEPT -----------------------------------------------------------------

    def _set_operations(
        self,
        node: exp.SetOperation,
        environment: Environment,
        named: bool,
        outer: Joined | None,
    ) -> Terms:
        """From the left, without recursion to the left, for unions may be long."""
        operations: list[exp.SetOperation] = []
        query: exp.Expr = node
        while isinstance(query, exp.SetOperation):
            require_only(self._text, query, _UNION_PARTS, query.key.upper())
            operations.append(query)
            query = query.this
        # The names are those of the first branch; the others may leave them out.
        found = [self.read(query, environment, named, outer)]
        for operation in reversed(operations):
            right = self.read(operation.expression, environment, False, outer)
            self._require_same_width(found[0][0], right[0], operation)
            with self._text.locating(lambda: self._keyword(operation)):  # noqa: B023
                found = self._combined(operation, found, right)
        with self._text.locating(lambda: self._keyword(node)):
            return self._summed(found)

    def _keyword(self, node: exp.SetOperation) -> int:
        return self._text.keyword(node.expression, node.key.upper(), "MINUS")

    def _combined(self, node: exp.SetOperation, found: list[Terms], right: Terms) -> list[Terms]:
        """``found`` are the branches of a UNION ALL that goes on."""
        is_all = not node.args.get("distinct")
        match node:
            case exp.Union():
                found = [*found, right]
                if is_all:
                    return found
                return [set_operations.without_duplicates(self._steps, self._summed(found))]
            case exp.Intersect():
                combine = set_operations.common_all if is_all else set_operations.common
            case _:
                combine = set_operations.difference_all if is_all else set_operations.difference
        return [combine(self._steps, self._summed(found), right)]

    def _summed(self, branches: list[Terms]) -> Terms:
        require_bounded(self._text, sum(map(len, branches)))
        return set_operations.alike(tuple(term for terms in branches for term in terms))

    def _require_same_width(self, first: Term, other: Term, node: exp.SetOperation) -> None:
        if len(first.outputs) != len(other.outputs):
            name = node.key.upper() + " ALL" * (not node.args.get("distinct"))
            raise self._text.error(
                "union-width",
                f"the first branch of {name} has {len(first.outputs)} columns, this one "
                f"{len(other.outputs)}",
                node.expression,
                hint="give every branch the same number of columns",
            )

    # -- SELECT -----------------------------------------------------------------------------------

    def _select(
        self, node: exp.Select, environment: Environment, named: bool, outer: Joined | None
    ) -> Terms:
        require_only(self._text, node, _SELECT_PARTS, "SELECT")
        if node.args.get("from_") is None:
            raise self._text.error(
                "no-from",
                "a SELECT without FROM has nothing to maintain",
                self._text.keyword(node, "SELECT"),
                hint="add FROM source.table",
            )
        reader = FromReader(
            self._text, self._catalog, environment, self._steps, self.read, self._view
        )
        aliases = tuple(item.alias for item in node.expressions if isinstance(item, exp.Alias))
        found = tuple(joined.naming(aliases) for joined in reader.read(node))
        if outer is not None:
            found = tuple(inside(joined, outer) for joined in found)
        found = _possible(self._where(node, found, environment))
        terms = tuple(term_of(self._text, self._steps, node, joined, named) for joined in found)
        if outer is not None:
            terms = tuple(term if is_correlated(term) else closed(term) for term in terms)
        return set_operations.alike(terms)

    def _where(
        self, node: exp.Select, found: Alternatives, environment: Environment
    ) -> Alternatives:
        """The rows that WHERE keeps, joined with what subqueries say of them.

        They are one relation if they are grouped or compared with subqueries.
        """
        where = node.args.get("where")
        conjuncts = conjuncts_of(where.this) if where else []
        asking = [conjunct for conjunct in conjuncts if subqueries_in(conjunct)]
        plain = [conjunct for conjunct in conjuncts if not subqueries_in(conjunct)]
        outputs = [s for item in node.expressions for s in subqueries_in(item)]
        later = subqueries_in(node.args["having"]) if node.args.get("having") else []
        is_asking = bool(asking or outputs or later)
        if len(found) > 1 and (is_asking or is_grouped(node) or node.args.get("distinct")):
            local = [c for c in plain if not self._reads_outer(found[0], c)]
            found = tuple(self._filtered(joined, local) for joined in found)
            found = (self._gathered(node, _possible(found)),)
            plain = [c for c in plain if self._reads_outer(found[0], c)]
        found = tuple(self._filtered(joined, plain) for joined in found)
        if not is_asking:
            return found
        here = Context(
            self._text,
            self._steps,
            Mentioned.by(node),
            lambda query, outer: self.read(query, environment, False, outer),
        )
        (joined,) = found
        joined = filtered(here, joined, asking)
        joined = self._filtered(joined, [c for c in asking if not is_kept_by(c)])
        if is_grouped(node):
            later += [s for s in outputs if not is_inside_aggregate(s)]
            outputs = [s for s in outputs if is_inside_aggregate(s)]
        joined = with_values(here, joined, outputs)
        for subquery in later:
            joined = compared_later(here, joined, subquery)
        return (joined,)

    def _gathered(self, node: exp.Select, found: Alternatives) -> Joined:
        aside, rows = put_aside(found)
        name = "rows"
        return aside.back(gathered(self._steps, rows, Mentioned.by(node), name, lambda: name))

    def _filtered(self, joined: Joined, conjuncts: list[exp.Expr]) -> Joined:
        for conjunct in conjuncts:
            joined = joined.where(predicates_of(self._text, joined, conjunct, "WHERE"))
        return joined

    def _reads_outer(self, joined: Joined, conjunct: exp.Expr) -> bool:
        predicates = predicates_of(self._text, joined, conjunct, "WHERE")
        return any(reads_outer(predicate) for predicate in predicates)


def _possible(found: Alternatives) -> Alternatives:
    """The alternatives without those that have no rows, whatever the tables hold; at least one."""
    return tuple(joined for joined in found if FALSE not in joined.predicates) or found[:1]
