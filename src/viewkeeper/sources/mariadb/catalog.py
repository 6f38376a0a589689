"""Tables as the server describes them now: columns, key, and what would make reading them inexact.

Reading information_schema costs a millisecond per table, SHOW CREATE TABLE a tenth of it; so the text
of the latter tells whether what we know of a table still holds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pymysql

from viewkeeper.algebra.types import Field, Schema
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import RelationSchema
from viewkeeper.sources.mariadb.columns import Column, from_catalog
from viewkeeper.sources.mariadb.connection import (
    LOCK_WAIT_TIMEOUT,
    Link,
    rows,
    transaction,
    translated,
)
from viewkeeper.sources.mariadb.quoting import quoted

_GROWING = re.compile(r" AUTO_INCREMENT=\d+")
_ENGINE = re.compile(r"\) ENGINE=(\w+)")
_CASCADE = re.compile(r" ON (?:DELETE|UPDATE) (?:CASCADE|SET NULL|SET DEFAULT)")
# It is not there, or not for this user.
_NOT_FOR_US = frozenset({1142, 1143, 1146, 1932})

_COLUMNS = (
    "COLUMN_NAME", "DATA_TYPE", "COLUMN_TYPE", "CHARACTER_SET_NAME", "COLLATION_NAME",
    "CHARACTER_OCTET_LENGTH", "NUMERIC_PRECISION", "NUMERIC_SCALE", "DATETIME_PRECISION", "EXTRA",
    "COLUMN_KEY",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table under the name that views use for it."""

    relation: str
    database: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    # (code, reason, fix) of everything that makes a feed or a cut of this table inexact.
    problems: tuple[tuple[str, str, str], ...] = ()
    # Columns that lead an index: a keyed read that has one of them need not scan.
    leading: frozenset[str] = frozenset()

    @cached_property
    def readable(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.refused)

    @cached_property
    def schema(self) -> RelationSchema:
        fields = tuple(Field(c.name, c.type) for c in self.readable if c.type is not None)
        refused = {column.name: column.refused for column in self.columns if column.refused}
        key = () if any(name in refused for name in self.key) else self.key
        described = repr(([c.name if c.refused else c for c in self.columns], key))
        fingerprint = hashlib.sha256(described.encode()).hexdigest()[:32]
        return RelationSchema(self.relation, Schema(fields), key, fingerprint, refused)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    @property
    def quoted(self) -> str:
        return f"{quoted(self.database)}.{quoted(self.name)}"


class Catalog:
    """Knows tables by their CREATE text; shared by a source's feed and cuts."""

    def __init__(self, source: str, database: str) -> None:
        self._source = source
        self._database = database
        self._known: dict[str, tuple[str, Table]] = {}

    def place(self, relation: str) -> tuple[str, str]:
        """(database, table) of ``table`` or ``database.table``."""
        database, dot, table = relation.partition(".")
        return (database, table) if dot else (self._database, relation)

    def relation(self, database: str, table: str) -> str:
        return table if database == self._database else f"{database}.{table}"

    def readable(self, link: Link) -> dict[str, Table]:
        """Every base table of the source's own database that we may read; dots can't be named."""
        found = rows(
            link,
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
            " AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_NAME",
            (self._database,),
        )
        present = {name: self.table(link, name) for (name,) in found if "." not in name}
        return {name: table for name, table in present.items() if table is not None}

    def table(self, link: Link, relation: str) -> Table | None:
        """The table as it is now; None when there is none that we may read. Not in a transaction."""
        known = self._known.get(relation)
        if known is not None and self._create_text(link, relation) == known[0]:
            return known[1]
        with self.holding(link, [relation]) as present:
            return self.held(link, relation) if present else None

    @contextmanager
    def holding(self, link: Link, relations: Sequence[str]) -> Iterator[list[str]]:
        """Those that are there and that we may read; inside the ``with`` they stay as they are."""
        with transaction(link, "START TRANSACTION READ ONLY"):
            yield [relation for relation in relations if self.hold(link, relation)]

    def hold(self, link: Link, relation: str, *, wait: bool = True) -> bool:
        """Open a table: its definition stays until the link's transaction ends. False: not for us.

        Without ``wait``, raises when somebody is about to change it.
        """
        hasty = "" if wait else "SET STATEMENT lock_wait_timeout = 0 FOR "
        try:
            rows(link, f"{hasty}SELECT 1 FROM {self._quoted(relation)} LIMIT 0")
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _NOT_FOR_US:
                return False
            raise
        return True

    def is_wanted(self, link: Link, relation: str) -> bool:
        """Whether an owner waits to change a table that is open elsewhere. If not it is opened, as by `hold`."""
        try:
            self.hold(link, relation, wait=False)
        except pymysql.MySQLError as error:
            if error.args and error.args[0] == LOCK_WAIT_TIMEOUT:
                return True
            raise
        return False

    def held(self, link: Link, relation: str) -> Table | None:
        """A table that somebody holds.

        Its text and its columns are read by two statements. Two changes between them, there and back,
        would pair one definition's text with the other's columns, and we would believe it.
        """
        text = self._create_text(link, relation)
        if text is None:
            return None
        known = self._known.get(relation)
        if known is None or known[0] != text:
            found = self._described(link, relation, text)
            if found is None:
                return None
            known = self._known[relation] = (text, found)
        return known[1]

    def tables(self, link: Link, relations: Sequence[str]) -> dict[str, Table]:
        """All of them; raises SourceError for one that is not there."""
        with translated(self._source, f"read the catalog of source {self._source}"):
            found = {relation: self.table(link, relation) for relation in relations}
        return {relation: self._required(relation, table) for relation, table in found.items()}

    def held_tables(
        self, link: Link, relations: Sequence[str], present: Sequence[str]
    ) -> dict[str, Table]:
        """As `tables`, where ``present`` are the ones that `holding` has found."""
        found = {name: self.held(link, name) if name in present else None for name in relations}
        return {relation: self._required(relation, table) for relation, table in found.items()}

    def _required(self, relation: str, table: Table | None) -> Table:
        if table is not None:
            return table
        raise SourceError(
            "unknown-relation",
            f"source {self._source} has no table {relation}",
            source=self._source,
            retryable=False,
            detail="there is none of this name, or the user may not read it",
            hint=f"viewkeeper check --setup-sql {self._source} prints the grants it needs",
        )

    def _quoted(self, relation: str) -> str:
        return ".".join(map(quoted, self.place(relation)))

    def _create_text(self, link: Link, relation: str) -> str | None:
        try:
            [row] = rows(link, f"SHOW CREATE TABLE {self._quoted(relation)}")
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _NOT_FOR_US:
                return None
            raise
        text = row[1]
        return _GROWING.sub("", text) if text.startswith("CREATE TABLE") else None

    def _described(self, link: Link, relation: str, text: str) -> Table | None:
        database, name = self.place(relation)
        found = rows(
            link,
            f"SELECT {', '.join(_COLUMNS)} FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            (database, name),
        )
        if not found:
            return None
        described = [dict(zip(_COLUMNS, row, strict=True)) for row in found]
        return Table(
            relation=relation,
            database=database,
            name=name,
            columns=tuple(from_catalog(row) for row in described),
            key=tuple(row["COLUMN_NAME"] for row in described if row["COLUMN_KEY"] == "PRI"),
            problems=tuple(_problems(relation, text)),
            leading=self._leading(link, database, name),
        )

    @staticmethod
    def _leading(link: Link, database: str, name: str) -> frozenset[str]:
        found = rows(
            link,
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND SEQ_IN_INDEX = 1"
            " AND INDEX_TYPE = 'BTREE'",
            (database, name),
        )
        return frozenset(column for (column,) in found)


def _problems(relation: str, text: str) -> list[tuple[str, str, str]]:
    found = []
    tail = text[text.rfind("\n)") :]
    engine = _ENGINE.search(tail)
    if engine is None or engine[1].lower() != "innodb":
        kind = engine[1] if engine else "unknown"
        found.append(
            ("engine", f"{relation} is stored by {kind}, which has no snapshots",
             f"ALTER TABLE {quoted(relation)} ENGINE=InnoDB")
        )  # fmt: skip
    if _CASCADE.search(text):
        found.append(
            ("cascade", f"{relation} has a foreign key that changes its rows without a log entry",
             "recreate the foreign key with ON DELETE RESTRICT ON UPDATE RESTRICT")
        )  # fmt: skip
    if "WITH SYSTEM VERSIONING" in tail:
        found.append(
            ("system-versioning", f"{relation} keeps its history as separate rows",
             f"ALTER TABLE {quoted(relation)} DROP SYSTEM VERSIONING")
        )  # fmt: skip
    return found


def refuse_problems(source: str, table: Table) -> None:
    """Raise SourceError when the table can't be read exactly."""
    for code, reason, fix in table.problems:
        raise SourceError(
            f"inexact-{code}",
            f"table {table.relation} of source {source} can't be kept exactly",
            source=source,
            retryable=False,
            detail=reason,
            hint=fix,
        )
