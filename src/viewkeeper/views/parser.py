"""`parse_view`: SQL text to a view definition.

The parts are read by their own files: headers, queries, FROM, expressions, grouping. Raises UsageError
with line and column for everything that can't be maintained.
"""

from __future__ import annotations

from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.from_clause import Environment
from viewkeeper.views.headers import read_headers
from viewkeeper.views.queries import QueryReader
from viewkeeper.views.sqltext import SqlText
from viewkeeper.views.steps import Steps
from viewkeeper.views.syntax import parsed


def parse_view(name: str, text: str, catalog: Catalog) -> ViewDefinition:
    """The definition of the view ``name`` that ``text`` gives; raises UsageError."""
    sql = SqlText(name, text.removeprefix("\ufeff"))
    headers = read_headers(sql)
    steps = Steps()
    try:
        terms = QueryReader(sql, catalog, steps).read(parsed(sql), Environment())
    except RecursionError:
        raise sql.error(
            "too-deep",
            "the query is nested too deeply",
            hint="split long chains of operators with CASE, IN or several views",
        ) from None
    return ViewDefinition(
        name, terms, headers.level, headers.protocol, headers.settings, steps.used_by(terms)
    )
