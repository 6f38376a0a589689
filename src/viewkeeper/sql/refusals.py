"""What a view can't contain, and what to write instead: one sentence each, in one place."""

from __future__ import annotations

import re

from sqlglot import exp

from viewkeeper.errors import UsageError
from viewkeeper.sql.sqltext import SqlText

NOT_DETERMINISTIC = frozenset(
    {
        "current_catalog", "current_database", "current_date", "current_schema", "current_time",
        "current_timestamp", "current_timezone", "current_user", "curdate", "input_file_name",
        "localtimestamp", "monotonically_increasing_id", "now", "rand", "randn", "random",
        "randstr", "session_user", "shuffle", "spark_partition_id", "unix_timestamp", "user",
        "uuid", "uniform", "version",
    }
)  # fmt: skip

TABLE_FUNCTIONS = frozenset(
    {"explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode",
     "posexplode_outer", "range", "stack"}
)  # fmt: skip

OTHER_AGGREGATES = frozenset(
    {
        "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "bit_and", "bit_or",
        "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count_if",
        "covar_pop", "covar_samp", "every", "first", "first_value", "kurtosis", "last",
        "last_value", "listagg", "max_by", "median", "min_by", "mode", "percentile",
        "percentile_approx", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp",
        "string_agg", "sum_distinct", "try_avg", "try_sum", "var_pop", "var_samp", "variance",
    }
)  # fmt: skip

# Clauses of a SELECT or a UNION: the tree's name for it, the keyword, what to do instead.
_AT_QUERY_TIME = "leave it out and say it when you query the view"
CLAUSES: dict[str, tuple[str, str]] = {
    "order": ("ORDER BY", f"a view is a bag of rows: {_AT_QUERY_TIME}"),
    "sort": ("SORT BY", f"a view is a bag of rows: {_AT_QUERY_TIME}"),
    "cluster": ("CLUSTER BY", f"a view is a bag of rows: {_AT_QUERY_TIME}"),
    "distribute": ("DISTRIBUTE BY", f"a view is a bag of rows: {_AT_QUERY_TIME}"),
    "limit": ("LIMIT", _AT_QUERY_TIME),
    "offset": ("OFFSET", _AT_QUERY_TIME),
    "qualify": ("QUALIFY", "window functions are not supported; use GROUP BY with max or min"),
    "windows": ("WINDOW", "window functions are not supported; use GROUP BY with max or min"),
    "laterals": ("LATERAL", "keep the column as it is and take it apart when you query the view"),
    "pivots": ("PIVOT", "write one sum(CASE WHEN … THEN … END) per column"),
    "sample": ("TABLESAMPLE", "a sample differs each time; select rows with WHERE"),
    "version": ("time travel", "a view follows the present; read the view itself as of a time"),
    "when": ("time travel", "a view follows the present; read the view itself as of a time"),
    "into": ("INTO", "the view's file name says where its rows go"),
    "locks": ("FOR UPDATE", "leave it out; the sources are only read"),
    "match": ("MATCH_RECOGNIZE", "find the pattern when you query the view"),
    "connect": ("CONNECT BY", "recursion can't be maintained"),
    "changes": ("CHANGES", "name the table alone"),
}
_WORDS = {
    "laterals": ("LATERAL",),
    "order": ("ORDER BY", "ORDER"),
    "pivots": ("PIVOT", "UNPIVOT"),
    "sample": ("TABLESAMPLE",),
    "version": ("VERSION", "TIMESTAMP", "FOR"),
    "when": ("TIMESTAMP", "FOR"),
    "limit": ("LIMIT", "FETCH"),
}


def require_only(text: SqlText, node: exp.Expr, allowed: tuple[str, ...], what: str) -> None:
    """Refuse every part of the node that is not ``allowed``: nothing is ever silently dropped."""
    found = [
        _refused_part(text, node, key, part, what)
        for key, part in node.args.items()
        if part and key not in allowed
    ]
    if found:
        raise min(found, key=lambda pair: pair[0])[1]


def _refused_part(
    text: SqlText, node: exp.Expr, key: str, part: object, what: str
) -> tuple[int, UsageError]:
    """Where the part stands, and its refusal."""
    first = part[0] if isinstance(part, list) else part
    place = text.offset(first if isinstance(first, exp.Expr) else node)
    if key in CLAUSES:
        word, hint = CLAUSES[key]
        place = text.keyword(place, *_WORDS.get(key, (word,)))
        code = f"unsupported-{re.sub('[ _]', '-', word.lower())}"
        return place, text.error(code, f"{word} is not supported", place, hint=hint)
    return place, text.error(
        "unsupported-clause",
        f"{key.strip('_').upper()} is not supported in {what}",
        place,
        hint="write the query as SELECT … FROM … WHERE … GROUP BY … HAVING",
    )


def refused_join(text: SqlText, join: exp.Join) -> UsageError | None:
    """Why the join can't be maintained; None where it can."""
    side, kind, method = (str(join.args.get(k) or "") for k in ("side", "kind", "method"))
    if method == "NATURAL":
        place = text.keyword(join.this, "NATURAL")
        return text.error(
            "unsupported-natural-join",
            "NATURAL JOIN is not supported",
            place,
            detail="a new column in a source would silently change what is joined",
            hint="name the columns: JOIN … USING (…)",
        )
    if kind in ("SEMI", "ANTI") and side not in ("", "LEFT"):
        place = text.keyword(join.this, side or kind)
        return text.error(
            "unsupported-join",
            f"{side} {kind} JOIN is not supported",
            place,
            hint=f"write LEFT {kind} JOIN",
        )
    if method or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"):
        name = " ".join(word for word in (method, side, kind) if word)
        return text.error(
            "unsupported-join", f"{name} JOIN is not supported", join.this, hint="use JOIN … ON"
        )
    return None


def refused_not_deterministic(text: SqlText, at: exp.Expr | int, name: str) -> UsageError:
    return text.error(
        "not-deterministic",
        f"{name} gives another value each time",
        at,
        detail="a maintained view is a function of its sources alone",
        hint="leave it out and apply it when you query the view",
    )


def refused_generator(text: SqlText, at: exp.Expr | int, name: str) -> UsageError:
    return text.error(
        "unsupported-table-function",
        f"the table function {name} is not supported",
        at,
        hint="keep the column as it is and take it apart when you query the view",
    )


_SUBQUERY_HINT = "subqueries stand in FROM, WHERE, HAVING and the outputs of SELECT"
_GROUPINGS_HINT = "list the columns to group by; several groupings are several views"

# Expressions by the tree's class: code, name of the construct, keywords to point at, hint.
_EXPRESSIONS: dict[type[exp.Expr], tuple[str, str, tuple[str, ...], str]] = {
    exp.Exists: ("unsupported-subquery", "EXISTS here", ("EXISTS",), _SUBQUERY_HINT),
    exp.In: ("unsupported-subquery", "IN (SELECT …) here", (), _SUBQUERY_HINT),
    exp.Subquery: ("unsupported-subquery", "a subquery here", ("(",), _SUBQUERY_HINT),
    exp.Select: ("unsupported-subquery", "a subquery here", ("SELECT",), _SUBQUERY_HINT),
    exp.Window: (
        "unsupported-window",
        "a window function (OVER)",
        (),
        "use GROUP BY in this view, and windows when you query it",
    ),
    exp.Filter: (
        "unsupported-filter",
        "FILTER (WHERE …) on an aggregate",
        (),
        "put the condition into the argument: sum(CASE WHEN … THEN … END)",
    ),
    exp.Escape: (
        "unsupported-like",
        "LIKE … ESCAPE",
        (),
        r"use the backslash, the standing escape character: LIKE '10\\%'",
    ),
    exp.ILike: ("unsupported-like", "ILIKE", (), "write lower(column) LIKE '…'"),
    exp.RegexpLike: ("unsupported-like", "RLIKE", (), "use LIKE with % and _"),
    exp.TryCast: (
        "unsupported-try-cast",
        "TRY_CAST",
        ("TRY_CAST",),
        "use CAST, and guard it with CASE WHEN … THEN CAST(…) END",
    ),
    exp.Interval: (
        "unsupported-interval",
        "INTERVAL here",
        ("INTERVAL",),
        "add days, weeks, months or years to a date literal: DATE '2024-01-31' + INTERVAL 3 MONTHS",
    ),
    exp.Extract: ("unsupported-extract", "EXTRACT of this field", ("EXTRACT",), "use year, month or day"),
    exp.Trim: ("unsupported-trim", "TRIM of other characters than blanks", ("TRIM",), "use trim(text)"),
    exp.Concat: (
        "unsupported-string",
        "two string literals side by side",
        (),
        "write one literal, or put || between them",
    ),
    exp.Tuple: ("unsupported-row-value", "a row of several values", ("(",), "compare the columns one by one with AND"),
    exp.Placeholder: ("unsupported-parameter", "a parameter", (":", "?", "{"), "write the value itself"),
    exp.Parameter: ("unsupported-parameter", "a parameter", ("@",), "write the value itself"),
    exp.All: ("unsupported-subquery", "ALL (SELECT …)", ("ALL",), "compare with (SELECT max(…) …) or min"),
    exp.Any: ("unsupported-subquery", "ANY", ("ANY", "SOME"), "compare with each value, joined by OR"),
    exp.Rollup: ("unsupported-group-by", "ROLLUP", ("ROLLUP",), _GROUPINGS_HINT),
    exp.Cube: ("unsupported-group-by", "CUBE", ("CUBE",), _GROUPINGS_HINT),
    exp.GroupingSets: ("unsupported-group-by", "GROUPING SETS", ("GROUPING SETS",), _GROUPINGS_HINT),
    exp.Star: ("misplaced-star", "* as a value", (), "name the column, or write count(*)"),
    exp.Distinct: ("misplaced-distinct", "DISTINCT here", ("DISTINCT",), "write SELECT DISTINCT or count(DISTINCT column)"),
}  # fmt: skip


def refused_expression(text: SqlText, node: exp.Expr) -> UsageError:
    """The refusal of an expression that the algebra has no word for."""
    name = node.key.lower()
    spaced = {"currentdate": "current_date", "currenttimestamp": "current_timestamp"}
    function = spaced.get(name, name.replace("current", "current_", 1))
    if function in NOT_DETERMINISTIC or name in ("sessionuser", "currentuser"):
        return refused_not_deterministic(text, text.first(function.upper()), function)
    found = _EXPRESSIONS.get(type(node))
    if found is None:
        return text.error(
            "unsupported-expression",
            f"{_words(node)} is not supported",
            node,
            hint="compute it in the source or when you query the view",
        )
    code, what, words, hint = found
    place = text.keyword(node, *words) if words else text.offset(node)
    return text.error(code, f"{what} is not supported", place, hint=hint)


def _words(node: exp.Expr) -> str:
    """The construct in words, from the tree's name for it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()
