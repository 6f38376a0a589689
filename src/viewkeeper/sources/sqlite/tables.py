"""What a table of a SQLite database is: its columns, its identity, and its unique keys.

Read from the database's own pragmas inside the caller's transaction. Every unique key matters,
because REPLACE deletes the rows that stand in its way on any of them, and fires no trigger for it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from viewkeeper.sources.sqlite.quoting import quoted

ROWID_NAMES = ("rowid", "_rowid_", "oid")
_EXPRESSION, _ROWID = -2, -1


@dataclass(frozen=True)
class Column:
    """One column as it was declared."""

    name: str
    declared: str
    not_null: bool = False
    default: str | None = None
    generated: bool = False


@dataclass(frozen=True)
class UniqueKey:
    """Columns, as places in the table, that no two rows share; each with its collation."""

    columns: tuple[tuple[int, str], ...]
    # A row can enter a partial index by a change of other columns than these.
    partial: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the main database. ``rowid`` is None in a WITHOUT ROWID table."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    # The name under which a statement reaches the rowid: a column may be called rowid too.
    rowid: str | None
    # For a WITHOUT ROWID table the first one is the primary key.
    keys: tuple[UniqueKey, ...]
    root_page: int
    # Its row in sqlite_schema, 0 where that was not noted: with the page, what tells it from a table
    # that took its name.
    row: int = 0
    # Why its changes can't be recorded exactly; empty when they can.
    problem: str = ""

    @property
    def identity(self) -> UniqueKey | None:
        """What tells the rows apart where there is no rowid."""
        return None if self.rowid is not None else self.keys[0]

    def is_same(self, page: int, row: int) -> bool:
        """Whether the table of this page and row is this one. VACUUM may have moved it: then it is not known."""
        return self.root_page == page and (self.row == row or not self.row or not row)

    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def table_names(connection: sqlite3.Connection) -> list[str]:
    """The user's tables and views in the main database."""
    found = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_viewkeeper\\_%' ESCAPE '\\' "
        "ORDER BY name"
    )
    return [name for (name,) in found]


def read_table(connection: sqlite3.Connection, name: str) -> Table | None:
    """The table of exactly this name; None when there is none."""
    listed = connection.execute(
        "SELECT l.type, l.wr, coalesce(s.rootpage, 0), s.rowid FROM pragma_table_list(?) AS l "
        "JOIN sqlite_schema AS s ON s.name = l.name AND s.type IN ('table', 'view') "
        "WHERE l.schema = 'main' AND l.name = ?",
        (name, name),
    ).fetchone()
    if listed is None:
        return None
    kind, without_rowid, root_page, row = listed
    columns, primary_key, positions = _columns(connection, name)
    free = [n for n in ROWID_NAMES if n not in {c.name.lower() for c in columns}]
    keys, problem = _unique_keys(connection, name, positions) if kind == "table" else ((), "")
    if any(columns[place].generated for key in keys for place, _ in key.columns):
        # NEW does not have its value yet when a BEFORE UPDATE trigger runs.
        problem = "it has a unique key on a generated column"
    if kind != "table":
        problem = f"it is a {kind}, and triggers record the changes of ordinary tables only"
    elif not without_rowid and not free:
        problem = "its columns hide the rowid under all of its three names"
    rowid = None if without_rowid else (free[0] if free else "rowid")
    return Table(name, columns, primary_key, rowid, keys, root_page, row, problem)


def _columns(
    connection: sqlite3.Connection, name: str
) -> tuple[tuple[Column, ...], tuple[str, ...], dict[int, int]]:
    """The visible columns, the primary key, and where each of SQLite's column numbers stands."""
    rows = connection.execute(f"PRAGMA main.table_xinfo({quoted(name)})").fetchall()
    visible = [row for row in rows if row[6] != 1]  # 1: a hidden column of a virtual table
    columns = tuple(
        Column(column, declared or "", bool(not_null), default, generated=hidden in (2, 3))
        for _, column, declared, not_null, default, _, hidden in visible
    )
    keyed = sorted((row[5], row[1]) for row in visible if row[5])
    return (
        columns,
        tuple(column for _, column in keyed),
        {row[0]: place for place, row in enumerate(visible)},
    )


def _unique_keys(
    connection: sqlite3.Connection, name: str, positions: dict[int, int]
) -> tuple[tuple[UniqueKey, ...], str]:
    """All unique keys but the rowid, the primary key first, and why one can't be watched."""
    found: list[tuple[bool, str, UniqueKey]] = []
    for _, index, unique, origin, partial in connection.execute(
        f"PRAGMA main.index_list({quoted(name)})"
    ).fetchall():
        if not unique:
            continue
        # A partial index is watched as if it were whole: more rows are looked at, none is missed.
        parts = [
            (column, collation)
            for _, column, _, _, collation, in_key in connection.execute(
                f"PRAGMA main.index_xinfo({quoted(index)})"
            ).fetchall()
            if in_key
        ]
        if any(column == _EXPRESSION for column, _ in parts):
            return (), f"its unique index {index} is on an expression"
        if any(column == _ROWID for column, _ in parts):
            continue  # as unique as the rowid itself
        columns = tuple((positions[column], collation) for column, collation in parts)
        key = UniqueKey(columns, bool(partial))
        found.append((origin != "pk", index, key))
    return tuple(dict.fromkeys(key for _, _, key in sorted(found, key=lambda f: f[:2]))), ""
