"""What the owner of a database runs so that its changes are recorded, and how to take it away.

The script is plain SQL in one transaction, so that no write falls between two triggers. Each printed
script makes a new layout for the tables it names. Layouts are numbered, so that a script that was
printed before another one was run fails at its first statement, and changes nothing.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence

from viewkeeper.sources.sqlite.catalog import Catalog, read_catalog
from viewkeeper.sources.sqlite.layout import (
    CLOCK,
    LAYOUTS,
    PREFIX,
    READERS,
    TRIGGERS,
    Layout,
    is_set_up,
    new_layout,
    read_layouts,
)
from viewkeeper.sources.sqlite.quoting import blob_literal, text_literal
from viewkeeper.sources.sqlite.tables import read_table
from viewkeeper.sources.sqlite.triggers import capture_triggers, log_tables

HEADER = """\
-- Viewkeeper: record the changes of {tables}.
-- Run it as the owner of the database: sqlite3 -bail FILE < this-script
-- It was made for the database as it is now: later, print it again rather than keep it.
-- It makes tables and triggers whose names begin with {prefix}, and touches nothing else.
"""
MAY_PRUNE_NOTE = """\
-- Who deletes log rows that have been read? With may_prune = 1 Viewkeeper does, after its own commit.
-- With 0 you do, now and then:
--   DELETE FROM {log} WHERE seq < (SELECT min(seq) FROM {readers});  (one line per log table)
-- or, without a {readers} row, below the number that `viewkeeper status` shows as confirmed.
"""


def common_statements(may_prune: bool) -> list[str]:
    """The clock that numbers the log, the list of layouts, the readers."""
    return [
        (
            f"CREATE TABLE IF NOT EXISTS {CLOCK} (one INTEGER PRIMARY KEY, seq INTEGER, tag INTEGER, "
            "at REAL, history BLOB, may_prune INTEGER)"
        ),
        (
            f"INSERT INTO {CLOCK} SELECT 1, 0, 0, julianday('now'), randomblob(16), {int(may_prune)} "
            f"WHERE NOT EXISTS (SELECT 1 FROM {CLOCK})"
        ),
        (
            f"CREATE TABLE IF NOT EXISTS {LAYOUTS} (number INTEGER PRIMARY KEY, mark BLOB, "
            "since INTEGER, continues INTEGER, description TEXT)"
        ),
        f"CREATE TABLE IF NOT EXISTS {READERS} (name TEXT PRIMARY KEY, seq INTEGER)",
    ]


def capture_statements(
    connection: sqlite3.Connection, relations: Sequence[str], only_needed: bool
) -> list[str]:
    """Give each table a fresh layout; with ``only_needed``, those alone whose layout is not whole."""
    ready = is_set_up(connection)
    layouts = read_layouts(connection) if ready else []
    catalog = read_catalog(connection) if ready else None
    number = max((layout.number for layout in layouts), default=0)
    statements: list[str] = []
    for relation in relations:
        if only_needed and _is_whole(catalog, relation):
            continue
        table = read_table(connection, relation)
        if table is None or table.problem:
            continue
        number += 1
        capture = None if catalog is None else catalog.captures.get(relation)
        older = [] if catalog is None else _older(catalog, relation)
        before = older[-1].number if older else 0
        names = capture.names if before and capture is not None else ()
        layout = new_layout(number, table, secrets.token_bytes(16), before, names)
        is_sound = capture is not None and not capture.unrecorded
        statements += _replace_layout(layout, older, is_sound)
    return statements


def _is_whole(catalog: Catalog | None, relation: str) -> bool:
    capture = catalog.captures.get(relation) if catalog is not None else None
    return capture is not None and capture.is_complete


def _older(catalog: Catalog, relation: str) -> list[Layout]:
    """The layouts that the table has had, the one that records it now last."""
    capture = catalog.captures.get(relation)
    active = None if capture is None else capture.layout
    return sorted(catalog.layouts_of(relation), key=lambda layout: layout == active)


def _replace_layout(layout: Layout, older: Sequence[Layout], is_sound: bool) -> list[str]:
    """The new layout's row first: it notes whether the old triggers are still all there.

    ``is_sound``: nothing else has kept them from recording every change until now. The stages of
    older layouts stay: a tool that rebuilds a table may put triggers back that it noted before.
    """
    continues = "0"
    if older and is_sound:
        names = ", ".join(text_literal(older[-1].trigger(kind)) for kind in TRIGGERS)
        continues = (
            f"(SELECT count(*) = {len(TRIGGERS)} FROM sqlite_schema WHERE type = 'trigger' "
            f"AND name IN ({names}) AND tbl_name IN "
            f"({text_literal(layout.relation)}, '{older[-1].stage}'))"
        )
    return [
        (
            f"INSERT INTO {LAYOUTS} SELECT {layout.number}, {blob_literal(layout.mark)}, seq, "
            f"{continues}, {text_literal(layout.as_json())} FROM {CLOCK}"
        ),
        *(f"DROP TRIGGER IF EXISTS {old.trigger(kind)}" for old in older for kind in TRIGGERS),
        *log_tables(layout),
        *capture_triggers(layout),
    ]


def script(connection: sqlite3.Connection, relations: Sequence[str]) -> str:
    """The text for the owner."""
    statements = common_statements(may_prune=False)
    statements += capture_statements(connection, relations, only_needed=False)
    head = HEADER.format(tables=", ".join(relations).replace("\n", " "), prefix=PREFIX)
    note = MAY_PRUNE_NOTE.format(log=f"{PREFIX}log_1", readers=READERS)
    body = ";\n".join(statements)
    return f"{head}PRAGMA journal_mode = WAL;\nBEGIN IMMEDIATE;\n{body};\n{note}COMMIT;\n"


def install(connection: sqlite3.Connection, relations: Sequence[str]) -> None:
    """Run what is needed of the script, in one transaction; the caller may write."""
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in common_statements(may_prune=True):
            connection.execute(statement)
        for statement in capture_statements(connection, relations, only_needed=True):
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def remove(connection: sqlite3.Connection) -> None:
    """Drop every object whose name begins with our prefix, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        ours = connection.execute(
            "SELECT type, name FROM sqlite_schema WHERE name GLOB ? AND type IN ('trigger', 'table')"
            " ORDER BY type DESC",
            (f"{PREFIX}*",),
        ).fetchall()
        for kind, name in ours:
            connection.execute(f"DROP {kind} {name}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
