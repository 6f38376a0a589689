"""`parse_view`: SQL text to a view definition.

The parts are read by their own files: headers, queries, FROM, expressions, grouping. Raises UsageError
with line and column for everything that can't be maintained.
"""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.sql.headers import read_headers, require_kept_relations
from viewkeeper.sql.query.from_clause import Environment
from viewkeeper.sql.query.queries import QueryReader
from viewkeeper.sql.query.references import References
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.steps import Steps
from viewkeeper.sql.syntax import parsed
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition


def parse_view(
    name: str, text: str, catalog: Catalog, views: Mapping[str, str] | None = None
) -> ViewDefinition:
    """The definition of the view ``name`` that ``text`` gives; raises UsageError.

    ``views`` are the texts of all views of the project, by name: those that it may read.
    """
    return parse_with_references(name, text, catalog, views or {})[0]


def parse_with_references(
    name: str, text: str, catalog: Catalog, views: Mapping[str, str]
) -> tuple[ViewDefinition, tuple[str, ...]]:
    """The definition, and the names of the other views that it reads, directly or through others."""
    sql = SqlText(name, text.removeprefix("\ufeff"))
    headers = read_headers(sql)
    steps = Steps()
    references = References(views, [name])
    try:
        terms = QueryReader(sql, catalog, steps, references).read(parsed(sql), Environment())
    except RecursionError:
        raise sql.error(
            "too-deep",
            "the query is nested too deeply",
            hint="split long chains of operators with CASE, IN or several views",
        ) from None
    definition = ViewDefinition(
        name, terms, headers.level, headers.protocol, headers.settings, steps.used_by(terms)
    )
    require_kept_relations(sql, definition)
    return definition, references.names
