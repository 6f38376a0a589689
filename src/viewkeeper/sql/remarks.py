"""What a text says that a view does not do, and that is no error: told to people, changing nothing."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.syntax import parsed


def remarks(name: str, text: str) -> tuple[str, ...]:
    """One sentence for each part of the view's text that is read over; raises UsageError."""
    sql = SqlText(name, text.removeprefix("\ufeff"))
    found = []
    for order in parsed(sql).find_all(exp.Order):
        line, column = sql.position(sql.keyword(order, "ORDER BY", "ORDER"))
        found.append(
            f"line {line}, column {column}: ORDER BY is read over, for a view is a bag of rows; "
            "order them when you query it"
        )
    return tuple(found)
