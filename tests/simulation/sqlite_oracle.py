"""A second opinion: SQLite runs a view's definition, printed as SQL by a printer of its own."""

from __future__ import annotations

import sqlite3
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from viewkeeper.algebra import Bag, Schema, Type
from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Literal,
    Negate,
    Not,
    Or,
    Output,
)
from viewkeeper.algebra.types import Kind
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import LOCAL, RelationName, Term, ViewDefinition

COPIES_MAX = 2_000


class Oracle:
    """The sources' relations in one SQLite database, and the view over them."""

    def __init__(
        self, definition: ViewDefinition, initial: dict[RelationName, Bag], text: str | None = None
    ) -> None:
        """With the ``text`` that the definition was read from, SQLite runs that."""
        self.schema = definition.schema
        self.sql = text or definition_sql(definition)
        self._database = sqlite3.connect(":memory:")
        for source in definition.sources:
            self._database.execute(f"ATTACH ':memory:' AS {quoted(source)}")
        self._database.execute("CREATE TABLE copy_numbers (i INTEGER PRIMARY KEY)")
        self._database.executemany(
            "INSERT INTO copy_numbers VALUES (?)", ((i,) for i in range(1, COPIES_MAX + 1))
        )
        for name, rows in initial.items():
            columns = ", ".join(quoted(column) for column in rows.schema.names)
            self._database.execute(f"CREATE TABLE {table(name)} ({columns})")
            self._change(name, rows)

    def commit(self, transaction: Transaction) -> None:
        for name, change in transaction.changes:
            self._change(name, change)

    def _change(self, name: RelationName, change: Bag) -> None:
        same = " AND ".join(f"{quoted(column)} IS ?" for column in change.schema.names)
        holes = ", ".join("?" for _ in change.schema)
        for row, count in change:
            values = tuple(float(v) if isinstance(v, Decimal) else v for v in row)
            for _ in range(-count):
                self._database.execute(
                    f"DELETE FROM {table(name)} WHERE rowid = "
                    f"(SELECT min(rowid) FROM {table(name)} WHERE {same})",
                    values,
                )
            for _ in range(count):
                self._database.execute(f"INSERT INTO {table(name)} VALUES ({holes})", values)

    def view(self) -> Bag:
        counted = Counter(self._database.execute(self.sql).fetchall())
        types = [field.type for field in self.schema]
        pairs = (
            (tuple(typed(v, t) for v, t in zip(row, types, strict=True)), count)
            for row, count in counted.items()
        )
        return Bag.signed(Schema(self.schema.fields), pairs)


def typed(value: Any, type: Type) -> Any:
    """What SQLite gave as a value of our type; it has doubles where we have decimals."""
    if value is not None and type.kind is Kind.DECIMAL:
        return Decimal(value).quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP)
    return value


def definition_sql(definition: ViewDefinition) -> str:
    steps = ", ".join(
        f"{table(step.name)} ({', '.join(map(quoted, step.schema.names))}) AS MATERIALIZED "
        f"({_terms_sql(step.terms)})"
        for step in definition.steps
    )
    return (f"WITH {steps} " if steps else "") + _terms_sql(definition.terms)


def _terms_sql(terms: tuple[Term, ...]) -> str:
    return " UNION ALL ".join(f"SELECT * FROM ({_term_sql(term)})" for term in terms)


def _term_sql(term: Term) -> str:
    source = " CROSS JOIN ".join(f"{table(o.name)} AS {quoted(o.alias)}" for o in term.occurrences)
    rows = f"FROM {source}"
    if term.predicates:
        rows += " WHERE " + " AND ".join(f"({sql(p)})" for p in term.predicates)
    distinct = "DISTINCT " if term.distinct else ""
    if term.grouping is None:
        return f"SELECT {distinct}{_outputs(term.outputs)} {rows}"
    grouping = term.grouping
    inner = [f"{sql(k.expression)} AS {quoted(k.name)}" for k in grouping.keys]
    inner += [f"{_aggregate(a)} AS {quoted(a.name)}" for a in grouping.aggregates]
    places = ", ".join(str(i + 1) for i in range(len(grouping.keys)))
    groups = f"SELECT {', '.join(inner)} {rows}" + (f" GROUP BY {places}" if places else "")
    outer = f"SELECT {distinct}{_outputs(term.outputs)} FROM ({groups}) AS g"
    if grouping.copies is not None:
        outer += f" JOIN copy_numbers ON copy_numbers.i <= g.{quoted(grouping.copies)}"
    return outer + (f" WHERE {sql(grouping.having)}" if grouping.having != TRUE else "")


def _outputs(outputs: tuple[Output, ...]) -> str:
    return ", ".join(f"{sql(o.expression)} AS {quoted(o.name)}" for o in outputs)


def _aggregate(aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return "count(*)"
    distinct = "DISTINCT " if aggregate.distinct else ""
    return f"{aggregate.function}({distinct}{sql(aggregate.argument)})"


def sql(expression: Expression) -> str:
    match expression:
        case Column(name):
            return ".".join(map(quoted, name.split(".", 1)))
        case Literal(value, type):
            if value is None:
                return "NULL"
            return f"'{value}'" if type.kind is Kind.STRING else str(value)
        case Negate(operand):
            return f"(-{sql(operand)})"
        case Comparison("<=>", left, right):
            return f"({sql(left)} IS {sql(right)})"
        case Arithmetic(operator, left, right) | Comparison(operator, left, right):
            return f"({sql(left)} {operator} {sql(right)})"
        case And(operands):
            return "(" + " AND ".join(map(sql, operands)) + ")"
        case Or(operands):
            return "(" + " OR ".join(map(sql, operands)) + ")"
        case Not(operand):
            return f"(NOT {sql(operand)})"
        case IsNull(operand):
            return f"({sql(operand)} IS NULL)"
        case InList(operand, options):
            return f"({sql(operand)} IN ({', '.join(map(sql, options))}))"
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {sql(c)} THEN {sql(r)}" for c, r in branches)
            return f"(CASE {whens} ELSE {'NULL' if otherwise is None else sql(otherwise)} END)"
        case Call("coalesce", arguments):
            return f"coalesce({', '.join(map(sql, arguments))}, NULL)"
        case Cast(operand, type) if type.kind in (Kind.INTEGER, Kind.DECIMAL):
            return sql(operand)
    raise NotImplementedError(expression)


def table(name: RelationName) -> str:
    if name.source == LOCAL:
        return quoted(name.relation)
    return f"{quoted(name.source)}.{quoted(name.relation)}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
