"""Whole transactions and schema changes out of the binary log's events.

A *group* of events begins with a GTID. It is a transaction, ended by XID or COMMIT, or a statement
that stands alone, which is a definition. Row events refer to table maps; a map describes its table
fully, so rows are always read by the layout that the log itself gives at that place, and a restart
behind a schema change needs no memory of older schemas.

What can't be kept exactly stops the feed with a name: XA transactions, rows logged as statements,
partial row images, a table that a change of schema made inexact, a crash under settings that may
have lost the log's end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.types import Row
from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.interface import (
    Feed,
    FeedItem,
    Position,
    Progress,
    RelationChange,
    SchemaChange,
    SourceTransaction,
    ToldColumns,
)
from viewkeeper.sources.mariadb import binlog, ddl
from viewkeeper.sources.mariadb.catalog import Table, refuse_problems
from viewkeeper.sources.mariadb.columns import holds
from viewkeeper.sources.mariadb.dialect import logged
from viewkeeper.sources.mariadb.layout import Layout, layout_of
from viewkeeper.sources.mariadb.position import Place
from viewkeeper.sources.mariadb.shapes import Doubt
from viewkeeper.sources.mariadb.stream import BinlogStream
from viewkeeper.sources.wire import Malformed

EVENTS_PER_POLL_MAX = 100_000
# A table gets a new number, and its maps are new ones, whenever the server opens it again.
LAYOUTS_MAX = 1_000


@dataclass
class _Group:
    """A group while it is being read: its changes so far, and the savepoints among them."""

    gtid: binlog.Gtid
    changes: list[tuple[str, list[Row], list[Row]]]
    savepoints: dict[str, int]


@dataclass(frozen=True)
class Context:
    """What the feed asks the server beside the log: the catalog now, and how durable it is."""

    # The table of this relation as it is now; None when there is none.
    table: Callable[[str], Table | None]
    # Relation names by (database, table); those that are read.
    relations: Mapping[tuple[str, str], str]
    # What views would call the table (database, table).
    name_of: Callable[[str, str], str]
    charsets: Mapping[int, str]
    # Whether a crash can't have lost the end of the log or of the tables.
    is_durable: Callable[[], bool]
    # Gets how a table is from a place in the log on.
    note: Callable[[str, Place, Table | None, Doubt], None]


class MariaDBFeed(Feed):
    """Owns its stream. Confirming does nothing: MariaDB keeps its log by age, not by reader."""

    def __init__(
        self,
        source: str,
        stream: BinlogStream,
        start: Place,
        tables: Mapping[str, tuple[Table | None, Doubt]],
        context: Context,
    ) -> None:
        """``tables``: as they are believed to be at the start."""
        self._source = source
        self._stream = stream
        self._context = context
        self._place = self._reported = start
        self._group: _Group | None = None
        # What stopped it. It is raised once all that was read before it is delivered.
        self._failure: SourceError | None = None
        self._tables: dict[str, Table | None] = {name: table for name, (table, _) in tables.items()}
        # Relations whose table is only believed to be so: what the catalog says now may be later
        # than this place in the log.
        self._believed: dict[str, Doubt] = {name: doubt for name, (_, doubt) in tables.items()}
        self._layouts: dict[bytes, Layout | None] = {}
        self._by_number: dict[int, Layout | None] = {}

    @property
    def position(self) -> Position:  # type: ignore[override]
        return self._place.as_position()

    @property
    def place(self) -> Place:
        return self._place

    def poll(self, timeout_seconds: float, items_max: int = 10_000) -> list[FeedItem]:
        items: list[FeedItem] = []
        # What happens in tables that no view reads gives no items, and may go on for ever.
        for _ in range(EVENTS_PER_POLL_MAX):
            if len(items) >= items_max:
                break
            moved = items or self._place is not self._reported
            try:
                event = self._next(0.0 if moved else timeout_seconds)
                if event is None:
                    break
                items += self._took(event)
            except SourceError as error:
                self._failure = error
                break
        if self._place is not self._reported and (not items or items[-1].position != self.position):
            items.append(Progress(self._source, self.position))
        self._reported = self._place
        if self._failure is not None and not items:
            raise self._failure
        return items

    def _next(self, timeout_seconds: float) -> binlog.Event | None:
        if self._failure is not None:
            raise self._failure
        return self._stream.next(timeout_seconds)

    def confirm(self, position: Position) -> None:
        return None

    def close(self) -> None:
        self._stream.close()

    def __exit__(self, *raised: object) -> None:
        self.close()

    # -- events -------------------------------------------------------------------------------

    def _took(self, event: binlog.Event) -> list[FeedItem]:
        try:
            return self._told_by(event)
        except Malformed as error:
            raise self._stream.unreadable(f"an event of type {event.type}: {error}") from error

    def _told_by(self, event: binlog.Event) -> list[FeedItem]:
        items: list[FeedItem] = []
        if event.type == binlog.GTID:
            self._begin(event)
        elif event.type == binlog.TABLE_MAP:
            items = self._map(event.body)
        elif event.type in binlog.ROW_EVENTS:
            self._rows(event)
        elif event.type == binlog.QUERY:
            items = self._statement(event)
        elif event.type == binlog.XID:
            items = self._commit(event.timestamp)
        elif event.type == binlog.XA_PREPARE:
            self._group = None
        elif event.type == binlog.FORMAT:
            self._new_file()
        elif not binlog.is_understood(event):
            raise self._stop(
                "unknown-event", f"the log holds an event of unknown type {event.type}",
                "this server is newer than Viewkeeper knows, or the log is damaged",
            )  # fmt: skip
        # Never behind the mark that closes a file: who starts again there must see how it was closed.
        if self._group is None and event.type not in (binlog.ROTATE, binlog.STOP):
            self._advance(self._place.gtid)
        return items

    def _advance(self, gtid: str) -> None:
        stream = self._stream
        self._place = Place(stream.file, stream.offset, stream.born, gtid)

    def _begin(self, event: binlog.Event) -> None:
        gtid = binlog.gtid(event, self._stream.server)
        self._check_ended(f"transaction {gtid} begins")
        self._check_sequence(gtid)
        self._group = _Group(gtid, [], {})
        self._by_number.clear()

    def _check_ended(self, event: str) -> None:
        """A group that has no end would be left out without a word."""
        if self._group is not None:
            raise self._stream.damaged(f"{event} before transaction {self._group.gtid} has ended")

    def _check_sequence(self, gtid: binlog.Gtid) -> None:
        """Numbers of one domain and server only grow; smaller ones mean another history."""
        known = self._place.gtid.split("-")
        same = len(known) == 3 and known[:2] == [str(gtid.domain), str(gtid.server)]
        if same and gtid.sequence <= int(known[2]):
            raise self._stream.damaged(f"transaction {gtid} follows {self._place.gtid}")

    def _new_file(self) -> None:
        """A file that was never closed means that its server crashed."""
        if self._stream.crossed_crash and not self._context.is_durable():
            raise self._stop(
                "crash-lost-log",
                f"the server crashed before it began {self._stream.file}, and its settings let a "
                "crash lose committed transactions",
                "set sync_binlog=1 and innodb_flush_log_at_trx_commit=1, then "
                + rebuild_command(self._source),
            )
        if self._stream.crossed_crash:
            # What the crash cut off was never committed: the server rolled it back when it came up.
            self._group = None
        self._check_ended(f"{self._stream.file} begins")

    # -- rows ---------------------------------------------------------------------------------

    def _map(self, body: bytes) -> list[FeedItem]:
        number = binlog.table_number(body)
        if body in self._layouts:
            self._by_number[number] = self._layouts[body]
            return []
        try:
            table_map = binlog.parse_table_map(body)
        except Malformed as error:
            raise self._stream.unreadable(f"a table map can't be read: {error}") from error
        relation = self._context.relations.get((table_map.database, table_map.table))
        layout, items = None, list[FeedItem]()
        if relation is not None:
            layout, items = self._agreed(relation, table_map)
        if len(self._layouts) >= LAYOUTS_MAX:
            self._layouts.clear()
        self._layouts[body] = self._by_number[number] = layout
        return items

    def _agreed(self, relation: str, table_map: binlog.TableMap) -> tuple[Layout, list[FeedItem]]:
        """The map's layout, once it agrees with the table we know, or corrects what we believed."""
        known = self._tables[relation]
        layout = layout_of(table_map, relation, known, self._context.charsets)
        if layout is None:
            raise self._drifted(relation, "the log has no names of columns, or unknown types")
        doubt = self._believed.pop(relation, None)
        if known is not None and known.schema.fingerprint == layout.table.schema.fingerprint:
            return replace(layout, table=known), []
        if doubt is None:
            raise self._drifted(relation, "its columns changed without an entry in the log")
        self._tables[relation] = layout.table
        self._context.note(relation, self._place, layout.table, doubt)
        if not doubt.statement:
            return layout, []  # the catalog was ahead of a feed that starts in the past
        change = SchemaChange(
            self._source,
            self.position,
            relation,
            before=known.schema if known is not None else None,
            after=layout.table.schema,
            statement=doubt.statement,
            rewrites=doubt.rewrites or not _has_all(layout.table, known),
            corrects=True,
        )
        return layout, [change]

    def _rows(self, event: binlog.Event) -> None:
        layout = self._by_number.get(binlog.table_number(event.body), _MISSING)
        if layout is None:
            return
        group = self._group
        if isinstance(layout, _Missing) or group is None:
            raise self._stream.damaged("rows came without their table map")
        if group.gtid.flags & binlog.GTID_PREPARED_XA:
            raise self._stop(
                "xa-transaction",
                f"an XA transaction changed {layout.table.relation}: cuts are not exact with them",
                "keep XA transactions away from tables that views read, then "
                + rebuild_command(self._source),
            )
        try:
            images = binlog.row_images(event, layout.readers, layout.kept)
        except binlog.Incomplete as error:
            raise self._stop(
                "bad-row-image", f"{layout.table.relation}: {error}",
                "SET GLOBAL binlog_row_image = FULL, then "
                + rebuild_command(self._source),
            ) from error  # fmt: skip
        except Malformed as error:
            raise self._stream.unreadable(f"{layout.table.relation}: {error}") from error
        relation = layout.table.relation
        if event.type in binlog.WRITE_ROWS:
            group.changes.append((relation, [], images))
        elif event.type in binlog.DELETE_ROWS:
            group.changes.append((relation, images, []))
        else:
            group.changes.append((relation, images[::2], images[1::2]))

    def _commit(self, timestamp: int) -> list[FeedItem]:
        group, self._group = self._group, None
        if group is None:
            raise self._stream.damaged("a commit came without its beginning")
        self._advance(str(group.gtid))
        if not group.changes:
            return []
        collected: dict[str, tuple[list[Row], list[Row]]] = {}
        for relation, deleted, inserted in group.changes:
            olds, news = collected.setdefault(relation, ([], []))
            olds += deleted
            news += inserted
        return [
            SourceTransaction(
                source=self._source,
                position=self.position,
                identity=self._place.identity,
                committed_at=dt.datetime.fromtimestamp(timestamp, dt.UTC),
                changes=tuple(RelationChange(r, *rows) for r, rows in collected.items()),
            )
        ]

    # -- statements ---------------------------------------------------------------------------

    def _statement(self, event: binlog.Event) -> list[FeedItem]:
        said = logged(event.body)
        verdict = ddl.judged(said.text, said.database, said.dialect)
        changes: list[SchemaChange] = []
        match verdict:
            case ddl.Commits(undone):
                if undone and self._group is not None:
                    self._group.changes.clear()
                return self._commit(event.timestamp)
            case ddl.MarksSavepoint(name) if self._group is not None:
                self._group.savepoints[name] = len(self._group.changes)
            case ddl.ReturnsToSavepoint(name) if self._group is not None:
                # Logged only where a table without transactions kept part of it.
                del self._group.changes[self._group.savepoints.get(name, 0) :]
            case ddl.ChangesTables():
                changes = self._redefined(verdict, said.dialect.masked(said.text))
            case ddl.Unknown():
                raise self._stop(
                    "statement-logged",
                    f"the log holds a statement instead of rows: {said.text.split()[0][:20].upper()} …",
                    "SET GLOBAL binlog_format = ROW, also in every session, then "
                    + rebuild_command(self._source),
                )
        if self._group is not None and _is_whole(self._group.gtid, verdict):
            gtid, self._group = str(self._group.gtid), None
            self._advance(gtid)
            changes = [replace(change, position=self.position) for change in changes]
        return list(changes)

    def _redefined(self, verdict: ddl.ChangesTables, text: str) -> list[SchemaChange]:
        self._layouts.clear()
        self._by_number.clear()
        concerned = [
            (place, relation)
            for place, relation in sorted(self._context.relations.items())
            if place in verdict.tables or (place[0], None) in verdict.tables
        ]
        return [
            change
            for place, relation in concerned
            for change in self._schema_changes(relation, place, verdict, text)
        ]

    def _schema_changes(
        self, relation: str, place: tuple[str, str], verdict: ddl.ChangesTables, text: str
    ) -> Iterator[SchemaChange]:
        """One; or two, where ALTER TABLE renames a table and changes it: then first the change."""
        before, now = self._tables[relation], self._context.table(relation)
        moved = verdict.moved(place)
        if moved is None:
            if now is not None:
                refuse_problems(self._source, now)
            after = shape_after(before, now, verdict)
            self._now_is(relation, after, Doubt(text, verdict.rewrites))
            yield self._schema_change(relation, (before, after), verdict, text)
            return
        if now is not None:
            # Views read a table by its name, which another one has by now: they stay where they are
            # until the statement that gave it the name.
            return
        renamed_to = self._context.name_of(*moved)
        if not verdict.only_renames:
            between = shape_after(before, self._context.table(renamed_to), verdict)
            if between is not None:
                between = replace(between, relation=relation)
            change = self._schema_change(relation, (before, between), verdict, text)
            if change.rewrites or change.before != change.after:
                yield change
            before = between
        self._now_is(relation, None, Doubt(text))
        if before is not None:
            database, name = moved
            there = replace(before, relation=renamed_to, database=database, name=name)
            self._context.note(renamed_to, self._behind, there, Doubt(text))
        yield replace(
            self._schema_change(relation, (before, None), verdict, text),
            rewrites=False,
            renamed_columns={},
            renamed_to=renamed_to,
            told=ToldColumns(),
        )

    def _now_is(self, relation: str, table: Table | None, doubt: Doubt) -> None:
        """From behind this statement on, a table is so."""
        self._context.note(relation, self._behind, table, doubt)
        self._tables[relation] = table
        self._believed[relation] = doubt

    @property
    def _behind(self) -> Place:
        """Behind the event that is being read."""
        return Place(self._stream.file, self._stream.offset, self._stream.born)

    def _schema_change(
        self,
        relation: str,
        shapes: tuple[Table | None, Table | None],
        verdict: ddl.ChangesTables,
        text: str,
    ) -> SchemaChange:
        before, after = shapes
        renamed = {
            old: new
            for old, new in verdict.renamed_columns
            if _same_column(before, old, after, new)
        }
        return SchemaChange(
            source=self._source,
            position=self.position,
            relation=relation,
            before=before.schema if before is not None else None,
            after=after.schema if after is not None else None,
            statement=text,
            rewrites=verdict.rewrites
            and not (verdict.only_retypes and _holds_all(before, after, renamed)),
            renamed_columns=renamed,
            told=verdict.told,
        )

    # -- what stops it ------------------------------------------------------------------------

    def _drifted(self, relation: str, detail: str) -> SourceError:
        return self._stop(
            "schema-drift", f"table {relation}: {detail}",
            "never change a schema with sql_log_bin=0; set binlog_row_metadata=FULL; "
            + rebuild_command(self._source),
        )  # fmt: skip

    def _stop(self, code: str, detail: str, hint: str) -> SourceError:
        return SourceError(
            code,
            f"the feed of source {self._source} can't go on exactly"
            f" at {self._stream.file}:{self._stream.offset}",
            source=self._source,
            retryable=False,
            detail=detail,
            hint=hint,
        )


def _is_whole(gtid: binlog.Gtid, verdict: ddl.Verdict) -> bool:
    """Whether a group is this statement alone: a definition, or the end of an XA transaction."""
    ends_xa = gtid.flags & binlog.GTID_COMPLETED_XA and isinstance(verdict, ddl.Harmless)
    return gtid.is_standalone or bool(ends_xa)


def shape_after(
    before: Table | None, now: Table | None, verdict: ddl.ChangesTables
) -> Table | None:
    """A table behind a statement. ``now``: as the catalog has it, perhaps many statements later."""
    if before is None or verdict.drops:
        return now
    if verdict.told is None:
        # It went on since: until its rows come and tell what it is, it is what it was.
        return before if now is None else now
    told = verdict.told
    columns = [
        replace(column, name=name)
        for column in before.columns
        if (name := told.name_after(column.name)) is not None
    ]
    names = {column.name.casefold() for column in columns}
    wanted = {name.casefold() for name in told.added} - names
    columns += [c for c in (now.columns if now else ()) if c.name.casefold() in wanted]
    key = tuple(name for name in map(told.name_after, before.key) if name is not None)
    if now is not None and (set(now.columns), now.key) == (set(columns), key):
        return now  # with the order of its columns
    leading = frozenset(n for n in map(told.name_after, before.leading) if n is not None)
    return replace(before, columns=tuple(columns), key=key, leading=leading)


def _has_all(table: Table, known: Table | None) -> bool:
    """Whether a table has every column that we know, as we know it."""
    return known is not None and set(known.columns) <= set(table.columns)


def _same_column(before: Table | None, old: str, after: Table | None, new: str) -> bool:
    """Whether the column under its new name has the values that it had."""
    one = before.column(old) if before is not None else None
    other = after.column(new) if after is not None else None
    return one is not None and other is not None and holds(other, one)


def _holds_all(before: Table | None, after: Table | None, renamed: Mapping[str, str]) -> bool:
    """Whether no column that remained can have lost anything to its new type."""
    if before is None or after is None:
        return False
    pairs = ((c, after.column(renamed.get(c.name, c.name))) for c in before.columns)
    return all(other is None or holds(other, one) for one, other in pairs)


class _Missing:
    """No table map of that number came in this group."""


_MISSING = _Missing()
