"""Everything that would make cuts inexact or harm the source, each with its fix."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence

from viewkeeper.sources.interface import Finding
from viewkeeper.sources.sqlite.catalog import Capture, Catalog
from viewkeeper.sources.sqlite.layout import PREFIX

RUN_SETUP = "run the script that `viewkeeper check --setup-sql` prints for this source"
_WRITES = re.compile(r"\b(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.IGNORECASE)


def examine(
    connection: sqlite3.Connection, catalog: Catalog, relations: Sequence[str]
) -> list[Finding]:
    """The caller is in a read transaction."""
    return [
        *_journal(connection),
        *_log(catalog),
        *(finding for name in relations for finding in _relation(connection, catalog, name)),
    ]


def _journal(connection: sqlite3.Connection) -> Iterator[Finding]:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode == "wal":
        yield Finding(
            "wal-mode", "ok", "the database is in WAL mode: readers and writers do not wait"
        )
    else:
        yield Finding(
            "wal-mode",
            "refused",
            f"the database's journal mode is {mode}: reading would make its writers wait",
            "PRAGMA journal_mode = WAL; (once, by the owner; the setup script does it)",
        )


def _log(catalog: Catalog) -> Iterator[Finding]:
    if catalog.set_up:
        yield Finding("change-log", "ok", "there is a change log")
    else:
        yield Finding("change-log", "refused", "there is no change log in the database", RUN_SETUP)


def _relation(connection: sqlite3.Connection, catalog: Catalog, name: str) -> Iterator[Finding]:
    capture = catalog.captures.get(name)
    if capture is None:
        yield Finding(
            "unknown-relation",
            "refused",
            f"there is no table {name}",
            "correct its name in the view; a table of an attached file needs a separate source",
        )
        return
    if capture.table.problem:
        yield Finding(
            "not-recordable",
            "refused",
            f"changes of {name} can't be recorded exactly: {capture.table.problem}",
            "give the table a plain unique key instead, or read it through another table",
        )
        return
    yield from _recording(capture)
    yield from _owners_triggers(connection, capture)
    for column, reason in capture.schema.refused.items():
        yield Finding(
            "column-refused", "warning", f"column {column} of {name} can't be read: {reason}"
        )


def _recording(capture: Capture) -> Iterator[Finding]:
    name = capture.table.name
    if capture.layout is None:
        yield Finding("not-recorded", "refused", f"changes of {name} are not recorded", RUN_SETUP)
    elif capture.gap:
        yield Finding(
            "triggers-lost",
            "refused",
            f"changes of {name} are not recorded any more: {capture.gap}",
            RUN_SETUP,
        )
    elif capture.newer_triggers:
        yield Finding(
            "newer-triggers",
            "refused",
            f"the owner's triggers on {name} are newer than ours and run before them: "
            + ", ".join(capture.newer_triggers),
            f"{RUN_SETUP}: ours must be the newest",
        )
    elif not capture.is_complete:
        yield Finding(
            "table-changed",
            "warning",
            f"{name} is not as it was when its triggers were made: a column that was renamed since "
            "can't be dropped, one that was added can't be read",
            RUN_SETUP,
        )
    else:
        yield Finding("recorded", "ok", f"changes of {name} are recorded")


def _owners_triggers(connection: sqlite3.Connection, capture: Capture) -> Iterator[Finding]:
    """A BEFORE trigger that writes its own table comes between our look at it and the change."""
    name = capture.table.name
    found = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? "
        "AND name NOT GLOB ? ORDER BY name",
        (name, f"{PREFIX}*"),
    )
    for trigger, sql in found.fetchall():
        head, _, body = re.sub(r"\s+", " ", sql).partition(" BEGIN ")
        mine = [part for part in body.split(";") if _WRITES.search(part) and name in part]
        if re.search(r"\bBEFORE\b", head, re.IGNORECASE) and mine:
            yield Finding(
                "before-trigger",
                "refused",
                f"trigger {trigger} writes to {name} before each change of {name}: "
                "what REPLACE deletes then is not known exactly",
                "make it an AFTER trigger, then run the setup script again",
            )
