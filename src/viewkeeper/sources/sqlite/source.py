"""SQLite as a source: opening, schemas, positions, and what feeds and cuts have in common."""

from __future__ import annotations

import bisect
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.interface import (
    Feed,
    Finding,
    Health,
    LinkState,
    Position,
    RelationSchema,
    Snapshot,
    Source,
)
from viewkeeper.sources.sqlite import health, pruning, setup
from viewkeeper.sources.sqlite.catalog import Capture, Catalog, read_catalog
from viewkeeper.sources.sqlite.connection import (
    connect,
    file_identity,
    read_transaction,
    translated,
)
from viewkeeper.sources.sqlite.feed import SQLiteFeed
from viewkeeper.sources.sqlite.layout import CLOCK, is_set_up
from viewkeeper.sources.sqlite.position import (
    Clock,
    Place,
    feed_gap,
    order_of,
    parse_position,
    position_of,
)
from viewkeeper.sources.sqlite.preflight import examine
from viewkeeper.sources.sqlite.shapes import shape_of
from viewkeeper.sources.sqlite.snapshot import SQLiteSnapshot
from viewkeeper.sources.sqlite.wal_restart import WalRestart
from viewkeeper.sources.urls import SourceUrl

OPTIONS = frozenset({"reader"})
IDLE_CONNECTIONS_MAX = 4
CATALOGS_MAX = 8
# So long a table may be gone, or without triggers, before that counts: tools that rebuild one put
# another in its place in several steps.
SETTLE_SECONDS = 2.0
# Cuts whose place in the log feeds may still have to split at.
CUT_NUMBERS_MAX = 100_000


class SQLiteSource(Source):
    """One database file. ``?reader=NAME`` in its URL tells several readers of one log apart."""

    kind = "sqlite"
    settle_seconds = SETTLE_SECONDS

    def __init__(self, name: str, url: SourceUrl, *, allow_setup: bool = False) -> None:
        unknown = sorted(set(url.options) - OPTIONS)
        if unknown:
            raise UsageError(
                "bad-source-url",
                f"the URL of source {name} has an unknown option: {', '.join(unknown)}",
                hint=f"known options are {', '.join(sorted(OPTIONS))}",
            )
        self.name, self.path = name, Path(url.database)
        self._reader = url.options.get("reader", "viewkeeper")
        self._allow_setup = allow_setup
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._file: tuple[int, int] | None = None
        # Which file the path led to when a connection was given out.
        self._lent: dict[sqlite3.Connection, tuple[int, int] | None] = {}
        self._catalogs: dict[tuple[object, ...], Catalog] = {}
        self._cut_numbers: list[int] = []
        self._pruner = pruning.Pruner(self.path, name, self._reader)
        self._confirmed: Place | None = None
        self._wal_restart = WalRestart(self.path)

    # Connections

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction."""
        connection = self._take()
        try:
            with translated(self.name), read_transaction(connection):
                yield connection
        finally:
            self.give_back(connection)

    def _take(self) -> sqlite3.Connection:
        """An idle connection or a new one; idle ones are dropped when the file is another."""
        identity = file_identity(self.path)
        with self._lock:
            stale = self._idle if identity != self._file else []
            if stale:
                self._idle = []
            self._file = identity
            found = self._idle.pop() if self._idle else None
        for connection in stale:
            connection.close()
        connection = found if found is not None else connect(self.path, self.name)
        self._lent[connection] = identity
        return connection

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Idle connections also keep the WAL: the last one to close would delete it.

        One that was lent before the file was replaced still reads the old one: never again.
        """
        identity = self._lent.pop(connection, None)
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return
        with self._lock:
            if identity == self._file and len(self._idle) < IDLE_CONNECTIONS_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        self._pruner.close()

    # What a snapshot holds; the caller is in a read transaction

    def catalog(self, connection: sqlite3.Connection) -> Catalog:
        """Read again only when the schema's version changed; it is stable within a snapshot."""
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        key = (self._file, version)
        found = self._catalogs.get(key)
        if found is None:
            found = read_catalog(connection)
            if len(self._catalogs) >= CATALOGS_MAX:
                self._catalogs = {}
            self._catalogs[key] = found
        return found

    def clock(self, connection: sqlite3.Connection) -> Clock | None:
        if not is_set_up(connection):
            return None
        row = connection.execute(
            f"SELECT seq, tag, lower(hex(history)), may_prune FROM {CLOCK}"
        ).fetchone()
        if row is None or type(row[0]) is not int or row[0] < 0:
            raise feed_gap(self.name, f"{CLOCK} does not hold what our triggers write there")
        seq, tag, history, may_prune = row
        return Clock(seq, tag, history, bool(may_prune))

    # The interface

    def schemas(self, relations: Sequence[str] | None = None) -> Mapping[str, RelationSchema]:
        with self.reading() as connection:
            catalog = self.catalog(connection)
        names = catalog.captures if relations is None else relations
        return {name: self._capture(catalog, name).schema for name in names}

    def preflight(self, relations: Sequence[str]) -> list[Finding]:
        with self.reading() as connection:
            return examine(connection, self.catalog(connection), relations)

    def link_states(self) -> list[LinkState]:
        return [LinkState(self.path.owner(), "file")] if self.path.exists() else []

    def needless_rights(self) -> list[Finding]:
        """Who may write to the file may change what views show."""
        if not self.path.exists():
            return []
        mode = self.path.stat().st_mode & 0o777
        if mode & 0o002:
            return [
                Finding(
                    "open-file",
                    "warning",
                    f"everybody on this machine may write to {self.path} (mode {mode:03o})",
                    f"chmod o-w {self.path}",
                )
            ]
        return [Finding("least-rights", "ok", f"{self.path} has mode {mode:03o}")]

    def setup_sql(self, relations: Sequence[str]) -> str:
        with self.reading() as connection:
            catalog = self.catalog(connection)
            for relation in relations:
                self._capture(catalog, relation)
            return setup.script(connection, relations)

    def setup(self, relations: Sequence[str]) -> None:
        self._check_allowed()
        with self.reading() as connection:
            catalog = self.catalog(connection)
            for relation in relations:
                self._refuse_problem(self._capture(catalog, relation))
        with self._writing() as writer:
            setup.install(writer, relations)

    def teardown(self) -> None:
        self._check_allowed()
        with self._writing() as writer:
            setup.remove(writer)

    def start_position(self) -> Position:
        with self.reading() as connection:
            clock = self._clock_or_refuse(connection)
            place = self._place(clock, self.catalog(connection))
        with self._lock:
            self._note_cut(clock.seq)
        return position_of(place)

    def compare_positions(self, left: Position, right: Position) -> int:
        if left["history"] != right["history"]:
            raise feed_gap(self.name, "the positions belong to different histories of the log")
        one, other = order_of(left), order_of(right)
        return (one > other) - (one < other)

    def check_position(self, position: Position) -> None:
        with self.feed((), position) as feed:
            feed.poll(0)

    def feed(self, relations: Sequence[str], start: Position) -> Feed:
        parse_position(start, self.name)
        with self.reading() as connection:
            self._clock_or_refuse(connection)
            catalog = self.catalog(connection)
        for relation in relations:
            known = relation in start["shapes"] or catalog.layouts_of(relation)
            if not known:
                capture = self._capture(catalog, relation)
                raise self._not_set_up(f"changes of {capture.table.name} are not recorded")
        return SQLiteFeed(self, connect(self.path, self.name), relations, start)

    def cut(self, relations: Sequence[str], shared: Mapping[str, Any] | None = None) -> Snapshot:
        if shared is not None:
            raise UsageError(
                "cut-not-shared",
                f"cuts of source {self.name} can't be joined",
                detail="SQLite gives a snapshot to one connection only",
            )
        self._wal_restart.enter()
        try:
            return self._cut(relations)
        except BaseException:
            self._wal_restart.leave()
            raise

    def _cut(self, relations: Sequence[str]) -> SQLiteSnapshot:
        connection = self._take()
        try:
            with translated(self.name):
                clock, catalog = self._begin_cut(connection)
            captures = {name: self._capture(catalog, name) for name in relations}
            for capture in captures.values():
                if capture.layout is None:
                    raise self._not_set_up(f"changes of {capture.table.name} are not recorded")
                if capture.unrecorded:
                    raise self._not_recorded([capture])
        except BaseException:
            self.give_back(connection)
            raise
        bound = position_of(self._place(clock, catalog))
        return SQLiteSnapshot(self, connection, bound, captures)

    def cut_closed(self, connection: sqlite3.Connection) -> None:
        self.give_back(connection)
        self._wal_restart.leave()

    def _begin_cut(self, connection: sqlite3.Connection) -> tuple[Clock, Catalog]:
        connection.execute("BEGIN")
        # Under the lock: a feed that sees more than this cut does must know of it (`_note_ends`).
        with self._lock:
            clock = self._clock_or_refuse(connection)
            self._note_cut(clock.seq)
        return clock, self.catalog(connection)

    def health(self, reached: Position | None = None) -> Health:
        with self.reading() as connection:
            catalog = self.catalog(connection)
            clock = self.clock(connection)
            known = self._confirmed
            # Of another file that had this name, nothing can be said.
            if (
                reached is not None
                and clock is not None
                and reached.get("history") == clock.history
            ):
                known = parse_position(reached, self.name)
            return health.report(connection, catalog, clock, known)

    # For feeds

    def cut_numbers(self, after: int, upto: int) -> list[int]:
        """Where cuts of this source stand between two numbers of the log."""
        with self._lock:
            low = bisect.bisect_right(self._cut_numbers, after)
            return self._cut_numbers[low : bisect.bisect_right(self._cut_numbers, upto)]

    def confirm(self, place: Place) -> None:
        """Everything up to here may be forgotten; log rows go if setup permits us to delete them."""
        self._confirmed = place
        self._pruner.confirm(place)

    def mend(self, captures: Sequence[Capture]) -> None:
        """Have tables recorded again; raises SourceError where that is for their owner to do."""
        for capture in captures:
            self._refuse_problem(capture)
        if not self._allow_setup:
            raise self._not_recorded(captures)
        with self._writing() as writer:
            setup.install(writer, [capture.table.name for capture in captures])

    def _not_recorded(self, captures: Sequence[Capture]) -> SourceError:
        names = ", ".join(capture.table.name for capture in captures)
        return SourceError(
            "not-recorded",
            f"changes of {names} in source {self.name} are not recorded any more",
            source=self.name,
            retryable=False,
            detail="; ".join(f"{c.table.name}: {c.unrecorded}" for c in captures),
            hint="viewkeeper run --allow-setup makes the triggers again and reads the table again; or "
            f"let its owner run what `viewkeeper check --setup-sql {self.name}` prints, then run "
            f"again (beside a run: viewkeeper rebuild --source {self.name})",
        )

    def _note_cut(self, seq: int) -> None:
        place = bisect.bisect_left(self._cut_numbers, seq)
        if place == len(self._cut_numbers) or self._cut_numbers[place] != seq:
            self._cut_numbers.insert(place, seq)
            del self._cut_numbers[:-CUT_NUMBERS_MAX]

    def _place(self, clock: Clock, catalog: Catalog) -> Place:
        shapes = {name: shape_of(capture) for name, capture in catalog.captures.items()}
        known = {name: shape for name, shape in shapes.items() if shape is not None}
        place = Place(clock.history, clock.seq, clock.tag, catalog.version)
        return place.with_shapes(known)

    def _capture(self, catalog: Catalog, relation: str) -> Capture:
        try:
            return catalog.captures[relation]
        except KeyError:
            raise SourceError(
                "unknown-relation",
                f"source {self.name} has no table {relation}",
                source=self.name,
                retryable=False,
                detail=f"its tables are {', '.join(sorted(catalog.captures)) or 'none'}",
                hint="tables of attached databases can't be read: make each file a source",
            ) from None

    def _clock_or_refuse(self, connection: sqlite3.Connection) -> Clock:
        clock = self.clock(connection)
        if clock is None:
            raise self._not_set_up("there is no change log in it")
        return clock

    def _not_set_up(self, detail: str) -> SourceError:
        return SourceError(
            "not-set-up",
            f"source {self.name} is not set up",
            source=self.name,
            retryable=False,
            detail=detail,
            hint=f"run the script that `viewkeeper check --setup-sql {self.name}` prints",
        )

    def _refuse_problem(self, capture: Capture) -> None:
        if capture.table.problem:
            raise SourceError(
                "not-recordable",
                f"changes of {capture.table.name} in source {self.name} can't be recorded exactly",
                source=self.name,
                retryable=False,
                detail=capture.table.problem,
                hint="change the table so that this is mended, or leave it out of the views",
            )

    def _check_allowed(self) -> None:
        if not self._allow_setup:
            raise UsageError(
                "setup-not-allowed",
                f"nothing may be created or dropped at source {self.name}",
                hint="start with --allow-setup, or let its owner run the script that "
                f"`viewkeeper check --setup-sql {self.name}` prints",
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        writer = connect(self.path, self.name, writable=True)
        try:
            with translated(self.name, "setup-failed"):
                yield writer
        finally:
            writer.close()
