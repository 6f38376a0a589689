"""What one snapshot of the database records: every table, its layout, and how they fit by now.

A table's owner may have renamed, dropped and added columns, dropped our triggers, or put another
table in its place, all without telling anybody. Comparing the table with its layout and with the
triggers' current text, inside the same read transaction as the data, shows it.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from viewkeeper.algebra.types import Field, Schema
from viewkeeper.sources.interface import RelationSchema
from viewkeeper.sources.sqlite.codec import column_type
from viewkeeper.sources.sqlite.layout import (
    CLOCK,
    PREFIX,
    TRIGGERS,
    WATCHED_COLUMNS_MAX,
    Layout,
    is_set_up,
    read_layouts,
)
from viewkeeper.sources.sqlite.quoting import unquoted
from viewkeeper.sources.sqlite.tables import Column, Table, read_table, table_names

NOT_RECORDED = "it was added after the triggers were made: run the setup script again"
# Without a way back: to try others, a pattern keeps a hundred bytes for each character of a name.
_LOGGED_NAME = re.compile(r'\(SELECT NEW\.("(?:[^"]++|"")*+")\)')


@dataclass(frozen=True)
class Capture:
    """A table as it is, and the layout that records it; ``layout`` is None before setup."""

    table: Table
    layout: Layout | None
    # For each column of the layout its name now, None when it was dropped.
    names: tuple[str | None, ...] = ()
    # Why changes go unrecorded; empty when they do not.
    gap: str = ""
    # Triggers of the owner that are newer than ours, and so run before them.
    newer_triggers: tuple[str, ...] = ()
    # Whether triggers of a former layout were put back: they do no harm, and record twice.
    has_strays: bool = False

    @cached_property
    def schema(self) -> RelationSchema:
        """What views may read of the table now, if its changes are recorded."""
        recorded = set(self.table.names()) if self.layout is None or self.gap else set(self.names)
        reasons = {c.name: NOT_RECORDED for c in self.table.columns if c.name not in recorded}
        return relation_schema(self.table.name, self.table.columns, self.table.primary_key, reasons)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """For each column of the schema its place in the layout."""
        return tuple(self.names.index(name) for name in self.schema.schema.names)

    @property
    def vanished(self) -> int:
        """The names of the layout that the table no longer has, as the triggers log them."""
        if self.layout is None:
            return 0
        present = set(self.table.names())
        watched = self.layout.table.names()[:WATCHED_COLUMNS_MAX]
        return sum(1 << bit for bit, name in enumerate(watched) if name not in present)

    @property
    def unrecorded(self) -> str:
        """Why not every change of the table is sure to be recorded from now on; empty when it is."""
        if self.layout is None:
            return "it has no trigger of ours"
        if self.newer_triggers and not self.gap:
            # One that ends a statement by FAIL keeps the row, and ours never see it.
            return f"triggers that run before ours were made: {', '.join(self.newer_triggers)}"
        return self.gap

    @property
    def is_complete(self) -> bool:
        """Whether setup has nothing to do: every column recorded under its own name, ours first."""
        return (
            self.layout is not None
            and not self.unrecorded
            and not self.has_strays
            and self.layout.table.columns == self.table.columns
            and self.layout.table.keys == self.table.keys
        )


@dataclass(frozen=True)
class Catalog:
    """Everything about the database's tables at one snapshot."""

    captures: Mapping[str, Capture]
    layouts: Sequence[Layout] = ()
    clock_page: int = 0
    # For each layout the name now of the table that it records, or last recorded.
    homes: Mapping[int, str] = field(default_factory=dict)
    # Layouts whose table is there: it has their triggers, or those of a layout that followed them.
    alive: frozenset[int] = frozenset()
    # PRAGMA schema_version: every committed change of the schema makes it larger.
    version: int = 0

    @property
    def set_up(self) -> bool:
        return self.clock_page > 0

    def layouts_of(self, relation: str) -> list[Layout]:
        """The layouts of the table that has this name now, whatever it was called before."""
        return [layout for layout in self.layouts if self.homes[layout.number] == relation]


def read_catalog(connection: sqlite3.Connection) -> Catalog:
    """Read inside the caller's transaction."""
    ready = is_set_up(connection)
    layouts = read_layouts(connection) if ready else []
    triggers = _triggers(connection)
    homes, alive = _homes(layouts, triggers)
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    # A table that took the name of a recorded one is not recorded, and that must be noticed. A layout
    # whose triggers are there counts before one that has lost its own.
    recording = {layout.relation: layout for layout in layouts}
    recording |= {homes[layout.number]: layout for layout in layouts}
    recording |= {
        homes[layout.number]: layout for layout in layouts if layout.trigger("insert") in triggers
    }
    captures = {}
    for name in table_names(connection):
        table = read_table(connection, name)
        if table is not None:
            captures[name] = _capture(table, recording.get(name), triggers)
    clock = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?", (CLOCK,)
    ).fetchone()
    page = clock[0] if ready and clock else 0
    return Catalog(captures, layouts, page, homes, alive, version)


def _homes(
    layouts: Sequence[Layout], triggers: Mapping[str, _Trigger]
) -> tuple[dict[int, str], frozenset[int]]:
    """SQLite takes triggers along when a table is renamed, so they tell what it is called now; a
    layout that was replaced is where the one after it is. And which layouts have a table at all."""
    homes: dict[int, str] = {}
    alive: set[int] = set()
    successors = {layout.before: layout.number for layout in layouts if layout.before}
    for layout in reversed(layouts):
        insert = triggers.get(layout.trigger("insert"))
        successor = successors.get(layout.number, 0)
        if insert is not None:
            homes[layout.number] = insert.table
            alive.add(layout.number)
        else:
            homes[layout.number] = homes.get(successor, layout.relation)
            alive |= {layout.number} if successor in alive else set()
    return homes, frozenset(alive)


@dataclass(frozen=True)
class _Trigger:
    table: str
    sql: str
    number: int


def _triggers(connection: sqlite3.Connection) -> dict[str, _Trigger]:
    found = connection.execute(
        "SELECT name, tbl_name, sql, rowid FROM sqlite_schema WHERE type = 'trigger'"
    )
    return {name: _Trigger(table, sql, number) for name, table, sql, number in found}


def _capture(table: Table, layout: Layout | None, triggers: Mapping[str, _Trigger]) -> Capture:
    if layout is None:
        return Capture(table, None)
    ours = [triggers.get(layout.trigger(kind)) for kind in TRIGGERS]
    homes = {table.name, layout.stage}
    present = [t for t in ours if t is not None and t.table in homes]
    insert = triggers.get(layout.trigger("insert"))
    if len(present) < len(TRIGGERS) or insert is None:
        return Capture(table, layout, gap="a trigger is missing")
    names = _names_now(insert.sql, table, layout)
    newer = tuple(
        sorted(
            name
            for name, t in triggers.items()
            if t.table == table.name
            and not name.startswith(PREFIX)
            and t.number > min(o.number for o in present)
        )
    )
    known = {layout.trigger(kind) for kind in TRIGGERS}
    strays = any(
        t.table == table.name and name.startswith(PREFIX) and name not in known
        for name, t in triggers.items()
    )
    return Capture(table, layout, names, _gap(table, layout, names), newer, strays)


def _names_now(insert_sql: str, table: Table, layout: Layout) -> tuple[str | None, ...]:
    """RENAME COLUMN rewrites the names that the trigger logs, so it tells what they are now."""
    logged = [unquoted(token) for token in _LOGGED_NAME.findall(insert_sql)]
    if len(logged) != len(layout.table.columns):
        return (None,) * len(layout.table.columns)
    present = set(table.names())
    return tuple(name if name in present else None for name in logged)


def _gap(table: Table, layout: Layout, names: Sequence[str | None]) -> str:
    if table.problem:
        return table.problem
    if table.rowid != layout.table.rowid:
        return "its rows are identified otherwise than before"
    known = {
        frozenset((names[place], collation) for place, collation in key.columns)
        for key in layout.table.keys
    }
    columns = table.names()
    for key in table.keys:
        if frozenset((columns[place], collation) for place, collation in key.columns) not in known:
            return "a unique index was added"
    return ""


def relation_schema(
    relation: str,
    columns: Iterable[Column],
    primary_key: Sequence[str],
    reasons: Mapping[str, str],
) -> RelationSchema:
    """The readable columns with their types, the others with the reasons why not."""
    fields, refused, declared = [], dict(reasons), []
    for column in columns:
        declared.append((column.name, column.declared))
        kind = column_type(column.declared)
        if column.name in reasons:
            continue
        if isinstance(kind, str):
            refused[column.name] = kind
        else:
            fields.append(Field(column.name, kind))
    names = {f.name for f in fields}
    key = tuple(primary_key) if names.issuperset(primary_key) else ()
    text = repr((relation, declared, key, sorted(refused)))
    fingerprint = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return RelationSchema(relation, Schema(tuple(fields)), key, fingerprint, refused)
