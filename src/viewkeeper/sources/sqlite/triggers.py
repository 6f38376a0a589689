"""The triggers that record a table's changes. Pure text: tables and layouts in, SQL out.

Three things make them unusual (decision 0027 has the measurements):

**They survive the owner's DDL.** SQLite refuses DROP COLUMN while a trigger names the column, and a
trigger that no longer compiles makes every write to its table fail. So no column is named where it
must exist: ``(SELECT NEW."c")`` stands in a scope whose outer query has a column ``c`` of an alias
``NEW`` too. As long as the table has the column, the inner meaning wins; after DROP COLUMN the name
means the outer one, and the layout's mark is logged in its place. RENAME COLUMN rewrites the inner
name, so values go on being recorded.

**They see what REPLACE deletes.** Before a row is put in, the rows that share a unique key with it
are copied to the stage; afterwards those that are gone are logged as deleted. AFTER DELETE takes its
row from the stage, so that with ``recursive_triggers`` nothing is logged twice. A statement that was
ignored leaves the stage dirty: the next one clears it first.

**They tell where the schema changed.** Each logged row carries the set of column names that no
longer exist, found in a scope that RENAME COLUMN does not rewrite: ``SELECT *`` of nothing.

Only SQL of the plain core is used: what a writer's build of SQLite lacks would break its writes. No
statement here can meet a constraint, because the conflict clause of the writer's statement, OR IGNORE
for instance, would override ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.sources.sqlite.layout import CLOCK, WATCHED_COLUMNS_MAX, Layout
from viewkeeper.sources.sqlite.quoting import blob_literal, quoted
from viewkeeper.sources.sqlite.tables import ROWID_NAMES, UniqueKey

NOW = ", ".join(f"(SELECT {column} FROM {CLOCK})" for column in ("seq", "at", "tag"))
TICK = f"UPDATE {CLOCK} SET seq = seq + 1, tag = random(), at = julianday('now')"


def log_tables(layout: Layout) -> list[str]:
    """The log and the stage. Columns without a type keep every value as it is."""
    values = "".join(f", v{n}" for n in range(len(layout.table.columns)))
    return [
        f"CREATE TABLE {layout.log} (seq INTEGER PRIMARY KEY, at, tag, sign, vanished, id{values})",
        f"CREATE TABLE {layout.stage} (n INTEGER PRIMARY KEY, gone, vanished, id{values})",
    ]


def capture_triggers(layout: Layout) -> list[str]:
    """Every trigger of the layout, in the order of `layout.TRIGGERS`."""
    table = quoted(layout.table.name)
    changed = _of_key_columns(layout)
    bodies = [
        ("before_insert", f"BEFORE INSERT ON {table}", _stage_conflicts(layout, updating=False)),
        ("insert", f"AFTER INSERT ON {table}", [_log_replaced(layout), TICK, _log(layout, "NEW")]),
        ("before_rekey", f"BEFORE UPDATE{changed} ON {table}", _stage_conflicts(layout, True)),
        ("rekey", f"AFTER UPDATE{changed} ON {table}", [_log_replaced(layout)]),
        (
            "update",
            f"AFTER UPDATE ON {table}",
            [TICK, _log(layout, "OLD"), TICK, _log(layout, "NEW")],
        ),
        ("delete", f"AFTER DELETE ON {table}", [_unstage(layout), TICK, _log(layout, "OLD")]),
        ("replaced", f"AFTER UPDATE OF gone ON {layout.stage}", _log_staged(layout)),
    ]
    return [
        f"CREATE TRIGGER {layout.trigger(kind)} {event} FOR EACH ROW BEGIN\n  "
        + ";\n  ".join(statements)
        + ";\nEND"
        for kind, event, statements in bodies
    ]


def _log(layout: Layout, row: str) -> str:
    """Log NEW as put in or OLD as taken out."""
    values = "".join(f", (SELECT {row}.{quoted(name)})" for name in layout.table.names())
    return (
        f"INSERT INTO {layout.log} SELECT {NOW}, {'1' if row == 'NEW' else '-1'}, "
        f"{_vanished(layout)}, {_row_identity(layout, row)}{values} FROM {_outer(layout, row)}"
    )


def _log_staged(layout: Layout) -> list[str]:
    values = "".join(f", NEW.v{n}" for n in range(len(layout.table.columns)))
    return [
        TICK,
        f"INSERT INTO {layout.log} SELECT {NOW}, -1, NEW.vanished, NEW.id{values}",
        f"DELETE FROM {layout.stage} WHERE n = NEW.n",
    ]


def _stage_conflicts(layout: Layout, updating: bool) -> list[str]:
    """Copy the rows that REPLACE would delete to make room for NEW."""
    statements = [f"DELETE FROM {layout.stage}"]
    rowid = layout.table.rowid
    if rowid is not None:
        statements.append(_stage(layout, f"x.{rowid} = NEW.{rowid}", updating))
    for key in layout.table.keys:
        statements.append(_stage(layout, _found_by_index(layout, key), updating, key))
    return statements


def _found_by_index(layout: Layout, key: UniqueKey) -> str:
    """As `x.c = NEW.c`, but c may be gone: dropped after its index, or in another table that took the
    name and was given the triggers of the one before it."""
    same = [_equals_new(layout, "q", *part) for part in key.columns]
    table, rowid = quoted(layout.table.name), layout.table.rowid
    if rowid is not None:
        inner, outer = f"q.{rowid}", f"x.{rowid}"
    else:
        parts = [quoted(layout.table.columns[p].name) for p, _ in layout.table.keys[0].columns]
        inner, outer = (", ".join(f"{a}.{part}" for part in parts) for a in "qx")
        outer = f"({outer})"
    # One row at most, and found faster so; but a partial index lets several share its columns.
    among = "IN" if key.partial else "="
    return f"{outer} {among} (SELECT {inner} FROM {table} AS q WHERE {' AND '.join(same)})"


def _stage(layout: Layout, found: str, updating: bool, key: UniqueKey | None = None) -> str:
    """Copy the rows ``x`` for which ``found`` holds, unless they are the updated one, or there."""
    table = quoted(layout.table.name)
    here = _same_row(layout, "r", "x")
    values = "".join(
        f", (SELECT (SELECT r.{quoted(name)} FROM {table} AS r WHERE {here}) "
        f"FROM {_outer(layout, 'r', (name,))})"
        for name in layout.table.names()
    )
    vanished = f"(SELECT {_vanished(layout)} FROM {_outer(layout, 'gone')})"
    identity = "NULL" if layout.table.rowid is None else f"x.{layout.table.rowid}"
    condition = (
        f"{found} AND NOT EXISTS (SELECT 1 FROM {layout.stage} AS s WHERE {_staged(layout, 'x')})"
    )
    if updating:
        condition += f" AND NOT ({_same_row(layout, 'x', 'OLD')})"
    columns = "".join(f", v{n}" for n in range(len(layout.table.columns)))
    scopes = ""
    if key is not None:
        names = [layout.table.columns[place].name for place, _ in key.columns]
        scopes = "".join(f", {_outer(layout, alias, names, 'NULL')}" for alias in ("q", "NEW"))
    return (
        f"INSERT INTO {layout.stage} (vanished, id{columns}) "
        f"SELECT {vanished}, {identity}{values} FROM {table} AS x{scopes} WHERE {condition}"
    )


def _log_replaced(layout: Layout) -> str:
    """Staged rows are gone when NEW stands in their place, or nothing does."""
    table = quoted(layout.table.name)
    still = f"SELECT 1 FROM {table} AS q WHERE {_staged(layout, 'q')}"
    return (
        f"UPDATE {layout.stage} SET gone = 1 WHERE n IN (SELECT s.n FROM {layout.stage} AS s "
        f"WHERE ({_staged(layout, 'NEW')}) OR NOT EXISTS ({still}))"
    )


def _unstage(layout: Layout) -> str:
    return (
        f"DELETE FROM {layout.stage} WHERE n IN (SELECT s.n FROM {layout.stage} AS s "
        f"WHERE {_staged(layout, 'OLD')})"
    )


def _staged(layout: Layout, row: str) -> str:
    """The staged row ``s`` is the row ``row`` of the table."""
    identity = layout.table.identity
    if identity is None:
        return f"s.id = {row}.{layout.table.rowid}"
    return " AND ".join(
        f"{row}.{quoted(layout.table.columns[place].name)} = s.v{place} COLLATE {quoted(collation)}"
        for place, collation in identity.columns
    )


def _same_row(layout: Layout, left: str, right: str) -> str:
    identity = layout.table.identity
    if identity is None:
        return f"{left}.{layout.table.rowid} = {right}.{layout.table.rowid}"
    names = [(quoted(layout.table.columns[p].name), quoted(c)) for p, c in identity.columns]
    return " AND ".join(f"{left}.{n} = {right}.{n} COLLATE {c}" for n, c in names)


def _equals_new(layout: Layout, alias: str, place: int, collation: str) -> str:
    column = layout.table.columns[place]
    name = quoted(column.name)
    new = f"(SELECT NEW.{name})"
    if column.not_null and column.default is not None:
        # OR REPLACE puts the default in the place of a NULL, after the BEFORE triggers have run.
        new = f"coalesce({new}, {column.default})"
    return f"{alias}.{name} = {new} COLLATE {quoted(collation)}"


def _row_identity(layout: Layout, row: str) -> str:
    rowid = layout.table.rowid
    return "NULL" if rowid is None else f"(SELECT {row}.{rowid})"


def _outer(
    layout: Layout, alias: str, names: Sequence[str] | None = None, value: str | None = None
) -> str:
    """What the names of columns mean, under this alias, once the table no longer has them."""
    meaning = blob_literal(layout.mark) if value is None else value
    chosen = layout.table.names() if names is None else names
    columns = ", ".join(f"{meaning} AS {quoted(name)}" for name in chosen)
    return f"(SELECT {columns}) AS {alias}"


def _vanished(layout: Layout) -> str:
    """Which of the layout's names the table no longer has, as the bits of an integer.

    An aggregate over nothing is one row of NULLs; a name that is not in it is the mark of the
    surrounding query, which must have nothing but `_outer`.
    """
    mark = blob_literal(layout.mark)
    bits = " | ".join(
        f"(({quoted(name)} IS {mark}) << {bit})"
        for bit, name in enumerate(layout.table.names()[:WATCHED_COLUMNS_MAX])
    )
    return f"(SELECT count(*) | {bits} FROM (SELECT * FROM {quoted(layout.table.name)} WHERE 0))"


def _of_key_columns(layout: Layout) -> str:
    """``OF …``: an UPDATE that sets none of these can't conflict. SQLite does not check the names."""
    places = {place for key in layout.table.keys for place, _ in key.columns}
    if any(key.partial for key in layout.table.keys):
        return ""  # any column may decide
    names = [layout.table.columns[place].name for place in sorted(places)]
    if layout.table.rowid is not None:
        names += [*layout.table.primary_key, *ROWID_NAMES]
    return " OF " + ", ".join(dict.fromkeys(quoted(name) for name in names))
