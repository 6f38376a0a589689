"""How the changes of one table are laid out in the log, and what our objects are called.

A layout is made by `setup` and never changes: its columns are the table's at that moment, in order,
and its *mark* is a random value that stands in the log where a column has been dropped since. When
setup is repeated because the table changed, the table gets a new layout, and the old one stays until
its rows are read.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace

from viewkeeper.sources.sqlite.tables import Column, Table, UniqueKey

PREFIX = "_viewkeeper_"
CLOCK = f"{PREFIX}clock"
LAYOUTS = f"{PREFIX}layouts"
READERS = f"{PREFIX}readers"
TRIGGERS = ("before_insert", "insert", "before_rekey", "rekey", "update", "delete", "replaced")
# Names that vanished are kept as the bits of one integer per logged row; columns past these have
# no bit, and a change of their name is noticed, but not placed between rows.
WATCHED_COLUMNS_MAX = 60


@dataclass(frozen=True)
class Layout:
    """The log of one table: ``table`` is the table as it was when the layout was made."""

    number: int
    table: Table
    mark: bytes
    # The log's number when it was made: its own rows come after it.
    since: int = 0
    # Whether the layout before it was whole up to that moment, so that no change went unrecorded.
    continues: bool = False
    # The number of the layout that it took the place of, 0 for none; and what that one's columns were
    # called at that moment, None for those that had been dropped. Empty when it was not known.
    before: int = 0
    names_before: tuple[str | None, ...] = ()

    @property
    def relation(self) -> str:
        """The table's name when the layout was made; it may have another one now."""
        return self.table.name

    @property
    def log(self) -> str:
        return f"{PREFIX}log_{self.number}"

    @property
    def stage(self) -> str:
        return f"{PREFIX}stage_{self.number}"

    def trigger(self, kind: str) -> str:
        return f"{PREFIX}{self.number}_{kind}"

    def as_json(self) -> str:
        """What the database keeps of it, apart from number, mark, since and continues."""
        return json.dumps(
            {
                "table": self.table.name,
                "columns": [
                    [c.name, c.declared, c.not_null, c.default, c.generated]
                    for c in self.table.columns
                ],
                "primary_key": self.table.primary_key,
                "rowid": self.table.rowid,
                "keys": [[key.columns, key.partial] for key in self.table.keys],
                "root_page": self.table.root_page,
                "row": self.table.row,
                "before": self.before,
                "names_before": self.names_before,
            }
        )


def parse_layout(number: int, mark: bytes, since: int, continues: int, text: str) -> Layout:
    """A layout from what the database keeps of it."""
    data = json.loads(text)
    table = Table(
        name=data["table"],
        columns=tuple(Column(*fields) for fields in data["columns"]),
        primary_key=tuple(data["primary_key"]),
        rowid=data["rowid"],
        keys=tuple(
            UniqueKey(tuple((place, collation) for place, collation in columns), partial)
            for columns, partial, *_ in data["keys"]
        ),
        root_page=data["root_page"],
        row=data.get("row", 0),
    )
    names_before = tuple(data.get("names_before", ()))
    return Layout(number, table, mark, since, bool(continues), data.get("before", 0), names_before)


def read_layouts(connection: sqlite3.Connection) -> list[Layout]:
    """All layouts, oldest first. The caller knows that setup has been run."""
    found = connection.execute(
        f"SELECT number, mark, since, continues, description FROM {LAYOUTS} ORDER BY number"
    )
    try:
        return [parse_layout(*row) for row in found]
    except (ValueError, TypeError, LookupError) as error:
        # Who may write the file can write there, too; it is reported as SQLite's own damages are.
        raise sqlite3.DatabaseError(f"{LAYOUTS} does not hold what setup writes there") from error


def is_set_up(connection: sqlite3.Connection) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN (?, ?)",
        (CLOCK, LAYOUTS),
    )
    return bool(found.fetchone()[0] == 2)


def new_layout(
    number: int,
    table: Table,
    mark: bytes,
    before: int = 0,
    names_before: tuple[str | None, ...] = (),
) -> Layout:
    sound = replace(table, problem="")
    return Layout(number, sound, mark, before=before, names_before=names_before)
