"""`parse_view`: SQL text to a view definition.

Reads queries: SELECT, UNION ALL, WITH. The parts are read by their own files: headers, FROM,
expressions, grouping. Raises UsageError with line and column for everything that can't be maintained.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from viewkeeper.algebra.expressions import TRUE, Cast, Expression, Output
from viewkeeper.algebra.inference import common_type
from viewkeeper.algebra.types import Type
from viewkeeper.errors import UsageError
from viewkeeper.views.aggregation import (
    Aggregation,
    Selected,
    group_keys,
    grouped,
    having_condition,
)
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.columns import path_of, starred
from viewkeeper.views.definition import Grouping, Term, ViewDefinition
from viewkeeper.views.flattening import Joined, require_bounded, unflattened
from viewkeeper.views.from_clause import Environment, FromReader, Named, predicates_of
from viewkeeper.views.headers import read_headers
from viewkeeper.views.naming import canonically_named
from viewkeeper.views.refusals import require_only
from viewkeeper.views.sqltext import SqlText
from viewkeeper.views.syntax import parsed

_SELECT_PARTS = (
    "with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "hint",
)  # fmt: skip

Terms = tuple[Term, ...]


def parse_view(name: str, text: str, catalog: Catalog) -> ViewDefinition:
    """The definition of the view ``name`` that ``text`` gives; raises UsageError."""
    sql = SqlText(name, text.removeprefix("\ufeff"))
    headers = read_headers(sql)
    try:
        terms = _QueryReader(sql, catalog).read(parsed(sql), Environment())
    except RecursionError:
        raise sql.error(
            "too-deep",
            "the query is nested too deeply",
            hint="split long chains of operators with CASE, IN or several views",
        ) from None
    return ViewDefinition(name, terms, headers.level, headers.protocol, headers.settings)


class _QueryReader:
    """Reads queries to terms; the same for the whole view and for subqueries."""

    def __init__(self, text: SqlText, catalog: Catalog) -> None:
        self._text = text
        self._catalog = catalog

    def read(self, node: exp.Expr, environment: Environment, named: bool = True) -> Terms:
        """The terms of a query, types of their outputs brought together.

        ``named``: whether the query itself must name its outputs, each differently.
        """
        environment = self._with(node, environment)
        match node:
            case exp.Subquery():
                require_only(self._text, node, ("this", "with_"), "a query in parentheses")
                return self.read(node.this, environment, named)
            case exp.SetOperation():
                return self._union(node, environment, named)
            case exp.Select():
                return self._select(node, environment, named)
            case _:
                raise self._text.error(
                    "unsupported-query",
                    f"{node.key.upper()} is not supported as a query",
                    self._text.keyword(node, node.key.upper()),
                    hint="write SELECT … FROM …",
                )

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

    # -- UNION ALL --------------------------------------------------------------------------------

    def _union(self, node: exp.SetOperation, environment: Environment, named: bool) -> Terms:
        branches: list[Terms] = []
        for branch in self._branches(node):
            # The names are those of the first branch; the others may leave them out.
            branches.append(self.read(branch, environment, named and not branches))
            self._require_same_width(branches[0][0], branches[-1][0], branch)
        require_bounded(self._text, sum(map(len, branches)))
        with self._text.locating(lambda: self._text.keyword(node.expression, "UNION")):
            return _alike(tuple(term for terms in branches for term in terms))

    def _branches(self, node: exp.Expr) -> list[exp.Expr]:
        """The branches in order; without recursion to the left, for unions may be long."""
        branches: list[exp.Expr] = []
        while isinstance(node, exp.SetOperation):
            self._require_union_all(node)
            branches.append(node.expression)
            node = node.this
        return [node, *reversed(branches)]

    def _require_union_all(self, node: exp.SetOperation) -> None:
        name = node.key.upper()
        place = self._text.keyword(node.expression, name, "MINUS")
        if name != "UNION":
            raise self._text.error(
                f"unsupported-{name.lower()}",
                f"{name} is not supported",
                place,
                hint="join the two queries on their columns and write SELECT DISTINCT"
                if name == "INTERSECT"
                else "keep the two sides as two views and subtract when you query them",
            )
        if node.args.get("distinct"):
            raise self._text.error(
                "unsupported-union",
                "UNION, which removes duplicates, is not supported",
                place,
                hint="write UNION ALL, and SELECT DISTINCT when you query the view",
            )
        allowed = ("with_", "this", "expression", "distinct")
        require_only(self._text, node, allowed, "UNION ALL")

    def _require_same_width(self, first: Term, other: Term, node: exp.Expr) -> None:
        if len(first.outputs) != len(other.outputs):
            raise self._text.error(
                "union-width",
                f"the first branch of UNION ALL has {len(first.outputs)} columns, this one "
                f"{len(other.outputs)}",
                node,
                hint="give every branch the same number of columns",
            )

    # -- SELECT -----------------------------------------------------------------------------------

    def _select(self, node: exp.Select, environment: Environment, named: bool) -> Terms:
        require_only(self._text, node, _SELECT_PARTS, "SELECT")
        if node.args.get("from_") is None:
            raise self._text.error(
                "no-from",
                "a SELECT without FROM has nothing to maintain",
                self._text.keyword(node, "SELECT"),
                hint="add FROM source.table",
            )
        reader = FromReader(self._text, self._catalog, environment, self.read)
        aliases = tuple(item.alias for item in node.expressions if isinstance(item, exp.Alias))
        alternatives = tuple(joined.naming(aliases) for joined in reader.read(node))
        terms = tuple(self._term(node, joined, named) for joined in alternatives)
        if len(terms) > 1 and not terms[0].is_linear:
            raise unflattened(
                self._text,
                node.args["from_"],
                "grouping or DISTINCT over a UNION ALL in FROM",
                hint="keep the UNION ALL as the view, and group when you query it",
            )
        return _alike(terms)

    def _term(self, node: exp.Select, joined: Joined, named: bool) -> Term:
        predicates = joined.predicates
        if where := node.args.get("where"):
            predicates += predicates_of(self._text, joined, where.this, "WHERE")
        aggregation = Aggregation(self._text, joined)
        selected = self._selected(node, joined, aggregation)
        selected = self._named(selected, named)
        outputs = tuple(Output(s.name, s.expression) for s in selected)
        grouping, outputs = self._grouping(node, aggregation, selected) or (None, outputs)
        distinct = node.args.get("distinct")
        if distinct is not None:
            require_only(self._text, distinct, (), "DISTINCT")
        return Term(
            joined.occurrences,
            tuple(dict.fromkeys(predicates)),
            outputs,
            grouping,
            distinct is not None,
        )

    def _selected(
        self, node: exp.Select, joined: Joined, aggregation: Aggregation
    ) -> tuple[Selected, ...]:
        selected: list[Selected] = []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                columns = starred(self._text, joined.scope, item)
                selected += [Selected(c.name, c.expression, item) for c in columns]
            else:
                selected.append(self._output(item, joined, aggregation))
        return tuple(selected)

    def _output(self, item: exp.Expr, joined: Joined, aggregation: Aggregation) -> Selected:
        value = item.this if isinstance(item, exp.Alias) else item
        expression = aggregation.translator().translated(value)
        if isinstance(item, exp.Alias):
            return Selected(item.alias, expression, item)
        plain = value.unnest() if isinstance(value, exp.Paren) else value
        if isinstance(plain, exp.Column):
            return Selected(joined.scope.found(*path_of(plain))[0].name, expression, item)
        return Selected("", expression, item)

    def _named(self, selected: tuple[Selected, ...], named: bool) -> tuple[Selected, ...]:
        """The outputs under different names; where the query need not name them, under made-up ones."""
        seen: set[str] = set()
        result: list[Selected] = []
        for index, output in enumerate(selected):
            name = output.name
            if not name or name.casefold() in seen:
                if named:
                    raise self._badly_named(output)
                name = f"#{index}"
            seen.add(name.casefold())
            result.append(Selected(name, output.expression, output.node))
        return tuple(result)

    def _badly_named(self, output: Selected) -> UsageError:
        if not output.name:
            return self._text.error(
                "unnamed-output", "this output has no name", output.node, hint="name it: … AS name"
            )
        return self._text.error(
            "duplicate-output",
            f"two outputs are named {output.name}",
            output.node,
            hint="list the columns and rename one: … AS other_name",
        )

    def _grouping(
        self, node: exp.Select, aggregation: Aggregation, selected: tuple[Selected, ...]
    ) -> tuple[Grouping, tuple[Output, ...]] | None:
        group, having = node.args.get("group"), node.args.get("having")
        keys = group_keys(aggregation, group, selected)
        condition: Expression = TRUE
        if having is not None:
            condition = having_condition(aggregation, having.this, keys, selected)
        if group is None and not aggregation.aggregates:
            if having is None:
                return None
            raise self._having_without_groups(having)
        return grouped(aggregation, keys, condition, selected)

    def _having_without_groups(self, having: exp.Expr) -> UsageError:
        return self._text.error(
            "having-without-group",
            "HAVING without GROUP BY or an aggregate",
            self._text.keyword(having, "HAVING"),
            hint="write WHERE",
        )


def _alike(terms: Terms) -> Terms:
    """The terms with the names of the first and, by CAST, types common to all."""
    first = terms[0]
    if len(terms) == 1:
        return terms
    columns = zip(*(term.schema.fields for term in terms), strict=True)
    types = [reduce(common_type, (field.type for field in column)) for column in columns]
    return tuple(_conformed(term, first.schema.names, types) for term in terms)


def _conformed(term: Term, names: tuple[str, ...], types: list[Type]) -> Term:
    found = term.schema.fields
    outputs = tuple(
        Output(name, o.expression if field.type == type else Cast(o.expression, type))
        for name, o, field, type in zip(names, term.outputs, found, types, strict=True)
    )
    grouping = term.grouping
    if grouping is not None:
        grouping, outputs = canonically_named(grouping, outputs)
    return Term(term.occurrences, term.predicates, outputs, grouping, term.distinct)
