"""GROUP BY, HAVING and aggregates: what the outputs of a grouped SELECT are computed from.

While a SELECT is read, keys and aggregates are columns with provisional names, which have no dot as
the full name of every joined column has; `viewkeeper.sql.naming` gives the final ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.expressions import (
    Aggregate,
    Column,
    Expression,
    Output,
    columns_of,
    conjunction,
    transformed,
)
from viewkeeper.algebra.grouping import aggregate_fields
from viewkeeper.algebra.types import Schema
from viewkeeper.sql.expressions.calls import arguments_of, function_name
from viewkeeper.sql.expressions.columns import path_of, resolved
from viewkeeper.sql.expressions.translation import Translator
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.naming import canonically_named
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.steps import OUTER
from viewkeeper.sql.where.predicates import misplaced_aggregate, settled
from viewkeeper.sql.where.subqueries import value_of
from viewkeeper.views.definition import Grouping


@dataclass(frozen=True)
class Selected:
    """One output as it was read: over joined columns and provisional aggregates."""

    name: str
    expression: Expression
    node: exp.Expr


@dataclass
class Aggregation:
    """Collects the aggregates of one SELECT while its outputs and its HAVING are read."""

    text: SqlText
    joined: Joined
    aggregates: list[Aggregate] = field(default_factory=list)
    # Where each joined column was last read, for errors that turn out later.
    places: dict[str, exp.Expr] = field(default_factory=dict)

    def schema(self) -> Schema:
        """The joined columns and the aggregates met so far."""
        fields = aggregate_fields(tuple(self.aggregates), self.joined.schema)
        return Schema(self.joined.schema.fields + fields)

    def translator(self) -> Translator:
        """For places where aggregates may stand."""
        return Translator(self.text, self.schema, self.column, self._aggregate, self.value)

    def without_aggregates(self, clause: str) -> Translator:
        def refuse(call: exp.Expr) -> Expression:
            raise misplaced_aggregate(self.text, call, clause)

        return Translator(self.text, lambda: self.joined.schema, self.column, refuse, self.value)

    def value(self, node: exp.Expr) -> Expression:
        """What a subquery is worth here."""
        return value_of(self.text, self.joined.scope, node)

    def column(self, node: exp.Column) -> Expression:
        expression = resolved(self.text, self.joined.scope, node).expression
        self.places.update(dict.fromkeys(columns_of(expression), node))
        return expression

    def _aggregate(self, call: exp.Expr) -> Expression:
        function = function_name(call) or ""
        argument, distinct = self._argument(call, function)
        for known in self.aggregates:
            if (known.function, known.argument, known.distinct) == (function, argument, distinct):
                return Column(known.name)
        aggregate = Aggregate(f"#{len(self.aggregates)}", function, argument, distinct)
        with self.text.locating(call):
            aggregate_fields((aggregate,), self.joined.schema)
        self.aggregates.append(aggregate)
        return Column(aggregate.name)

    def _argument(self, call: exp.Expr, function: str) -> tuple[Expression | None, bool]:
        arguments = arguments_of(call)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = list(arguments[0].expressions)
        if len(arguments) != 1:
            raise self.text.error(
                "wrong-arguments",
                f"{function} takes one argument here, not {len(arguments)}",
                call,
                hint="write one aggregate per column",
            )
        if isinstance(arguments[0], exp.Star):
            if function != "count" or distinct:
                raise self.text.error(
                    "wrong-arguments",
                    f"only count can be taken of *, not {function}{' DISTINCT' * distinct}",
                    call,
                    hint="name the column",
                )
            return None, False
        return self._inner().translated(arguments[0]), distinct

    def _inner(self) -> Translator:
        def refuse(call: exp.Expr) -> Expression:
            raise self.text.error(
                "nested-aggregate",
                "an aggregate can't stand inside an aggregate",
                call,
                hint="aggregate once in this view, and again when you query it",
            )

        # Columns inside an aggregate need not be grouped: their places are not kept.
        def column(node: exp.Column) -> Expression:
            return resolved(self.text, self.joined.scope, node).expression

        return Translator(self.text, lambda: self.joined.schema, column, refuse, self.value)


def group_keys(
    aggregation: Aggregation, group: exp.Group | None, selected: tuple[Selected, ...]
) -> tuple[Expression, ...]:
    """The expressions of GROUP BY: ordinals and output names replaced by what they stand for."""
    if group is None:
        return ()
    text = aggregation.text
    for key, part in group.args.items():
        if part and key != "expressions":
            raise text.error(
                "unsupported-group-by",
                f"GROUP BY with {key.replace('_', ' ').upper()} is not supported",
                text.first("GROUP BY", "GROUP"),
                hint="list the columns to group by; several groupings are several views",
            )
    keys = [_key(aggregation, node, selected) for node in group.expressions]
    return tuple(dict.fromkeys(keys))


def _key(aggregation: Aggregation, node: exp.Expr, selected: tuple[Selected, ...]) -> Expression:
    text = aggregation.text
    if isinstance(node, exp.Literal) and not node.is_string:
        ordinal = int(node.this) if node.this.isdigit() else 0
        if not 1 <= ordinal <= len(selected):
            raise text.error(
                "bad-ordinal",
                f"GROUP BY {node.this} does not name one of the {len(selected)} outputs",
                node,
                hint="write the column's name",
            )
        key = selected[ordinal - 1].expression
    elif (named := _output_named(aggregation, node, selected)) is not None:
        key = named
    else:
        key = aggregation.without_aggregates("GROUP BY").translated(node)
    if any(_is_provisional(name) for name in columns_of(key)):
        raise misplaced_aggregate(text, node, "GROUP BY")
    if not columns_of(key):
        raise text.error(
            "constant-key",
            "grouping by a constant makes one group of all rows",
            node,
            hint="leave it out of GROUP BY",
        )
    return key


def _output_named(
    aggregation: Aggregation, node: exp.Expr, selected: tuple[Selected, ...]
) -> Expression | None:
    """The output that a bare name means where no column of FROM has that name."""
    if not isinstance(node, exp.Column) or node.args.get("table"):
        return None
    _, name = path_of(node)
    if aggregation.joined.scope.found((), name):
        return None
    return next((s.expression for s in selected if name.matches(s.name)), None)


def having_condition(
    aggregation: Aggregation,
    node: exp.Expr,
    keys: tuple[Expression, ...],
    selected: tuple[Selected, ...],
) -> Expression:
    """HAVING. A grouped column goes before an output of that name, an output before other columns."""
    plain = aggregation.translator()

    def column(reference: exp.Column) -> Expression:
        qualifier, name = path_of(reference)
        found = aggregation.joined.scope.found(qualifier, name)
        if len(found) == 1 and found[0].expression in keys:
            return aggregation.column(reference)
        if not qualifier:
            outputs = [s.expression for s in selected if name.matches(s.name)]
            if len(outputs) == 1:
                return outputs[0]
        return aggregation.column(reference)

    translator = Translator(
        aggregation.text, aggregation.schema, column, plain.aggregate, aggregation.value
    )
    with aggregation.text.locating(node):
        return conjunction(settled(translator.condition(node)))


def grouped(
    aggregation: Aggregation,
    keys: tuple[Expression, ...],
    having: Expression,
    selected: tuple[Selected, ...],
) -> tuple[Grouping, tuple[Output, ...]]:
    """The grouping under its final names, and the outputs over them; raises UsageError."""
    over_groups = _over_groups(aggregation, keys)
    outputs = tuple(Output(s.name, over_groups(s.expression, s.node)) for s in selected)
    grouping = Grouping(
        tuple(Output(_key_name(index), key) for index, key in enumerate(keys)),
        tuple(aggregation.aggregates),
        over_groups(having, None),
    )
    return canonically_named(grouping, outputs)


def _is_provisional(name: str) -> bool:
    return "." not in name


def _key_name(index: int) -> str:
    return f"#key {index}"


def _over_groups(
    aggregation: Aggregation, keys: tuple[Expression, ...]
) -> Callable[[Expression, exp.Expr | None], Expression]:
    """Replaces keys by their provisional columns and refuses what is then left of the joined ones."""

    # What is joined to the groups themselves need not be grouped, nor the row around a subquery.
    outer = tuple(o for o in aggregation.joined.occurrences if o.name == OUTER)
    constant = outer + aggregation.joined.afterwards
    later = {n for o in constant for n in o.qualified_schema.names}

    def change(node: Expression) -> Expression | None:
        return Column(_key_name(keys.index(node))) if node in keys else None

    def rewrite(expression: Expression, node: exp.Expr | None) -> Expression:
        result = transformed(expression, change)
        left = sorted(name for name in columns_of(result) - later if not _is_provisional(name))
        if left:
            raise aggregation.text.error(
                "not-grouped",
                f"{left[0]} is neither grouped nor inside an aggregate",
                aggregation.places.get(left[0], node),
                detail="a group has one value of each GROUP BY expression, and many of any other",
                hint=f"add {left[0]} to GROUP BY, or take min({left[0]}) or max({left[0]})",
            )
        return result

    return rewrite
