"""Names of columns in the syntax tree, resolved in a `Scope`."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.errors import UsageError, nearest
from viewkeeper.sql.expressions.scope import Scope, Visible
from viewkeeper.sql.refusals import NOT_DETERMINISTIC, refused_not_deterministic
from viewkeeper.sql.sqltext import SqlText, name_of
from viewkeeper.views.names import Name, listed


def path_of(node: exp.Column) -> tuple[tuple[Name, ...], Name]:
    """Qualifier and name of a column reference."""
    parts = [node.args.get(key) for key in ("catalog", "db", "table")]
    return tuple(name_of(part) for part in parts if part is not None), name_of(node.this)


def resolved(text: SqlText, scope: Scope, node: exp.Column) -> Visible:
    """The one column that the reference means; raises UsageError."""
    qualifier, name = path_of(node)
    found = scope.found(qualifier, name)
    if len(found) == 1:
        return found[0]
    written = ".".join(part.text for part in (*qualifier, name))
    if not found:
        raise _unknown(text, scope, node, written)
    meant = [f"{i.path[-1]}.{name.text}" for i in scope.items if i.path and _has(i.columns, name)]
    raise text.error(
        "ambiguous-column",
        f"{written} may mean several columns",
        node,
        detail=f"it fits {listed(meant)}" if len(meant) > 1 else "",
        hint=f"write {' or '.join(meant)}"
        if len(meant) > 1
        else "write the exact name in backticks",
    )


def starred(text: SqlText, scope: Scope, node: exp.Expr) -> tuple[Visible, ...]:
    """The columns that ``*`` or ``t.*`` stands for; raises UsageError."""
    star = node.this if isinstance(node, exp.Column) else node
    if any(star.args.get(key) for key in star.args):
        raise text.error(
            "unsupported-star",
            "* with EXCEPT, REPLACE or RENAME is not supported",
            node,
            hint="list the columns",
        )
    if not isinstance(node, exp.Column):
        return scope.visible
    parts = [node.args.get(key) for key in ("catalog", "db", "table")]
    qualifier = tuple(name_of(part) for part in parts if part is not None)
    items = scope.qualified(qualifier)
    if len(items) == 1:
        return items[0].columns
    written = ".".join(part.text for part in qualifier)
    known = [item.path[-1] for item in scope.items if item.path]
    close = nearest(written, known)
    raise text.error(
        "unknown-relation" if not items else "ambiguous-column",
        f"{written}.* does not name one table of FROM",
        node,
        detail=f"FROM has {listed(known)}",
        hint=f"did you mean {close}.*?" if close and not items else "use the alias given in FROM",
    )


def _has(columns: tuple[Visible, ...], name: Name) -> bool:
    return any(name.matches(column.name) for column in columns)


def _unknown(text: SqlText, scope: Scope, node: exp.Column, written: str) -> UsageError:
    qualifier, name = path_of(node)
    if not qualifier and not name.quoted and name.text.lower() in NOT_DETERMINISTIC:
        return refused_not_deterministic(text, node, name.text.lower())
    beyond = scope.enclosing.beyond if scope.enclosing is not None else scope.beyond
    if beyond is not None and beyond.found(qualifier, name):
        return text.error(
            "unsupported-correlation",
            f"{written} is a column of a query further out than the one around this",
            node,
            detail="a subquery can read its own tables and those of the query just around it",
            hint="join that table in the query between the two",
        )
    if qualifier and not scope.qualified(qualifier):
        known = [item.path[-1] for item in scope.items if item.path]
        alias = ".".join(part.text for part in qualifier)
        close = nearest(alias, known)
        return text.error(
            "unknown-column",
            f"{written}: there is no {alias} here",
            node,
            detail=f"the tables that can be named here are {listed(known)}",
            hint=f"did you mean {close}.{name.text}?" if close else "use an alias given in FROM",
        )
    if not qualifier and name.among(scope.outputs):
        return text.error(
            "unknown-column",
            f"{written} is an output, and can't be used here",
            node,
            hint=f"repeat what {written} stands for; only GROUP BY and HAVING know outputs",
        )
    close = nearest(written if qualifier else name.text, scope.all_names())
    columns = [column.name for column in scope.candidates(qualifier)]
    return text.error(
        "unknown-column",
        f"there is no column {written}",
        node,
        detail=f"the columns are {listed(columns)}",
        hint=f"did you mean {close}?"
        if close
        else "check the name, or put it in its table's alias",
    )
