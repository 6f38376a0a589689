"""A definition as SQL text that means the same in Spark, headers included.

One clause per line; all conditions stand in WHERE, in the definition's order, so that nothing about
the definition is lost or rearranged: `parse_view` reads the text of a view without steps back to the
same definition. Steps are printed as WITH.
"""

from __future__ import annotations

import re
from textwrap import indent

from viewkeeper.algebra.expressions import TRUE, And, Expression
from viewkeeper.views.definition import LOCAL, Occurrence, Step, Term, ViewDefinition
from viewkeeper.views.spark_sql import ColumnName, aggregate_sql, expression_sql, quoted

# How often a group's row is there, beside the outputs, none of which is named so.
_COPIES = "`#copies`"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Words that mean something to the parser where a name may stand; a test tries all it knows.
_RESERVED = frozenset(
    {
        "all", "alter", "and", "anti", "any", "array", "as", "at", "between", "both", "by",
        "case", "cast", "cluster", "connect_by_root", "create", "cross", "current_date",
        "current_timestamp", "current_user", "date", "day", "days", "delete", "desc",
        "describe", "distinct", "distribute", "div", "drop", "else", "end", "escape", "except",
        "exists", "explain", "extract", "false", "fetch", "filter", "for", "from", "full",
        "glob", "grant", "group", "grouping", "having", "hour", "if", "ilike", "in", "inner",
        "insert", "intersect", "interval", "into", "is", "join", "lateral", "left", "like",
        "limit", "map", "match", "merge", "minus", "minute", "month", "natural", "not",
        "notnull", "null", "offset", "on", "or", "order", "outer", "over", "partitioned_by",
        "pivot", "qualify", "range", "recursive", "regexp", "returning", "revoke", "right",
        "rlike", "rollback", "row", "rows", "second", "select", "semi", "serdeproperties",
        "session_user", "set", "show", "some", "sort", "struct", "substr", "substring", "table",
        "tablesample", "then", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "to",
        "trim", "true", "truncate", "try_cast", "uncache", "union", "unique", "unnest",
        "unpivot", "update", "using", "values", "when", "where", "window", "with", "within",
        "xor", "year",
    }
)  # fmt: skip


def view_sql(definition: ViewDefinition) -> str:
    """The text of the whole view."""
    lines = [f"-- consistency: {definition.level}"]
    if definition.protocol is not None:
        lines.append(f"-- protocol: {definition.protocol}")
    lines += [f"-- {name}: {value}" for name, value in definition.settings]
    return "\n".join([*lines, *_with(definition.steps), terms_sql(definition.terms)]) + "\n"


def _with(steps: tuple[Step, ...]) -> list[str]:
    texts = [
        f"{identifier(step.name.relation)} AS (\n{indent(terms_sql(step.terms), '  ')}\n)"
        for step in steps
    ]
    return ["WITH " + ",\n".join(texts)] if texts else []


def terms_sql(terms: tuple[Term, ...]) -> str:
    """The sum of the terms."""
    return "\nUNION ALL\n".join(map(term_sql, terms))


def term_sql(term: Term) -> str:
    """One SELECT; where groups count their copies, one around it that repeats them."""
    if term.grouping is None or term.grouping.copies is None:
        return _select(term)
    names = ", ".join(identifier(output.name) for output in term.outputs)
    copies = _column_names(term)(term.grouping.copies)
    groups = indent(_select(term, f"{copies} AS {_COPIES}"), "  ")
    return f"SELECT {names} FROM (\n{groups}\n)\nLATERAL VIEW explode(sequence(1L, {_COPIES})) each_copy"


def _select(term: Term, *further: str) -> str:
    named = _column_names(term)
    outputs = ",\n  ".join(
        [f"{expression_sql(o.expression, named)} AS {identifier(o.name)}" for o in term.outputs]
        + list(further)
    )
    lines = [f"SELECT{' DISTINCT' * term.distinct}\n  {outputs}"]
    lines.append("FROM " + ",\n  ".join(map(_table, term.occurrences)))
    joined = joined_names(term)
    if term.predicates:
        lines.append("WHERE " + _conditions(term.predicates, joined))
    if term.grouping is not None:
        if term.grouping.keys:
            keys = ", ".join(expression_sql(k.expression, joined) for k in term.grouping.keys)
            lines.append(f"GROUP BY {keys}")
        if term.grouping.having != TRUE:
            having = term.grouping.having
            parts = having.operands if isinstance(having, And) else (having,)
            lines.append("HAVING " + _conditions(parts, named))
    return "\n".join(lines)


def identifier(name: str) -> str:
    """The name as it may stand in the text, in backticks only where it needs them."""
    if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return quoted(name)


def relation_sql(occurrence: Occurrence) -> str:
    """The relation's full name, each part quoted where needed."""
    if occurrence.source == LOCAL:
        return identifier(occurrence.name.relation)
    parts = (occurrence.name.source, *occurrence.name.relation.split("."))
    return ".".join(map(identifier, parts))


def _table(occurrence: Occurrence) -> str:
    return f"{relation_sql(occurrence)} AS {identifier(occurrence.alias)}"


def _conditions(predicates: tuple[Expression, ...], named: ColumnName) -> str:
    # Parsed conditions are one AND; an OR among them needs its parentheses.
    texts = [expression_sql(And((p,)), named) for p in predicates]
    return "\n  AND ".join(texts)


def joined_names(term: Term) -> ColumnName:
    """How the text spells the columns of the term's occurrences."""
    names = {
        occurrence.qualified(column): f"{identifier(occurrence.alias)}.{identifier(column)}"
        for occurrence in term.occurrences
        for column in occurrence.schema.names
    }
    return names.__getitem__


def _column_names(term: Term) -> ColumnName:
    """How the outputs spell what they read: a joined column, or a key or an aggregate written out."""
    joined = joined_names(term)
    if term.grouping is None:
        return joined
    names = {k.name: _operand(expression_sql(k.expression, joined)) for k in term.grouping.keys}
    names |= {a.name: aggregate_sql(a, joined) for a in term.grouping.aggregates}
    return names.__getitem__


def _operand(text: str) -> str:
    """A key's text so that it holds together inside any expression."""
    return text if re.fullmatch(r"[\w.`]+", text) else f"({text})"
