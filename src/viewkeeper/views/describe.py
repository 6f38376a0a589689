"""A definition as plain dicts and lists, ready for JSON: for `explain --json`, docs and tests."""

from __future__ import annotations

from typing import Any

from viewkeeper.algebra.expressions import TRUE
from viewkeeper.views.definition import Grouping, Step, Term, ViewDefinition
from viewkeeper.views.fragments import Fragment, fragment_sql, fragments
from viewkeeper.views.spark_sql import aggregate_sql, expression_sql

Description = dict[str, Any]


def described(definition: ViewDefinition) -> Description:
    """Everything a reader may want to know of the view; expressions as SQL text."""
    return {
        "name": definition.name,
        "consistency": str(definition.level),
        "protocol": definition.protocol,
        "settings": dict(definition.settings),
        "sources": list(definition.sources),
        "relations": [str(name) for name in definition.relations],
        "columns": [{"name": f.name, "type": str(f.type)} for f in definition.schema],
        "steps": [_step(step) for step in definition.steps],
        "terms": [_term(term) for term in definition.terms],
    }


def _step(step: Step) -> Description:
    return {
        "name": step.name.relation,
        "columns": [{"name": f.name, "type": str(f.type)} for f in step.schema],
        "terms": [_term(term) for term in step.terms],
    }


def _term(term: Term) -> Description:
    aliases = [occurrence.alias for occurrence in term.occurrences]
    local = {alias: [_text(p) for p in term.local_predicates(alias)] for alias in aliases}
    return {
        "occurrences": [
            {
                "alias": o.alias,
                "source": o.source,
                "relation": o.name.relation,
                "key": list(o.key),
            }
            for o in term.occurrences
        ],
        "join_graph": [
            [first, second]
            for index, first in enumerate(aliases)
            for second in aliases[index + 1 :]
            if second in term.join_graph[first]
        ],
        "join_predicates": [_text(p) for p in term.predicates if len(term.aliases_in(p)) > 1],
        "local_predicates": {alias: found for alias, found in local.items() if found},
        "grouping": None if term.grouping is None else _grouping(term, term.grouping),
        "distinct": term.distinct,
        "linear": term.is_linear,
        "outputs": [
            {"name": o.name, "expression": _text(o.expression), "type": str(f.type)}
            for o, f in zip(term.outputs, term.schema, strict=True)
        ],
        "fragments": [_fragment(fragment, term) for fragment in fragments(term)],
    }


def _grouping(term: Term, grouping: Grouping) -> Description:
    types = term.grouped_schema
    return {
        "keys": [
            {"name": k.name, "expression": _text(k.expression), "type": str(types.type_of(k.name))}
            for k in grouping.keys
        ],
        "aggregates": [
            {
                "name": a.name,
                "expression": aggregate_sql(a, str),
                "type": str(types.type_of(a.name)),
            }
            for a in grouping.aggregates
        ],
        "having": None if grouping.having == TRUE else _text(grouping.having),
        "copies": grouping.copies,
    }


def _fragment(fragment: Fragment, term: Term) -> Description:
    return {
        "source": fragment.source,
        "aliases": list(fragment.aliases),
        "predicates": [_text(predicate) for predicate in fragment.predicates],
        "columns": list(fragment.columns),
        "sql": fragment_sql(fragment, term),
    }


def _text(expression: Any) -> str:
    return expression_sql(expression, str)
