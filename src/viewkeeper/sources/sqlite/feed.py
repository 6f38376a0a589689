"""The feed: what the triggers logged, as whole transactions and schema changes in their order.

Each poll is one short read transaction. Nothing is trusted that can be checked in it: that the file
is still the one we opened, that the log still has the row at our position with the same random tag,
and that the numbers since then are all there. So a restored backup, a replaced file and a log that
was pruned too far are each a ``feed-gap``, never a silent one.

The same snapshot shows whether every change of our tables is still recorded. Tools rebuild a table by
putting a copy in its place, without our triggers, and its name may be gone for a moment: that is given
time to settle, then the triggers are made again where we may, and else the feed says what is missing.
After it the feed *skips*: what happened unrecorded has no place in the log, so that no state before
the present one is known (see `shapes`).
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from viewkeeper.sources.interface import (
    Feed,
    FeedItem,
    Position,
    Progress,
    RelationChange,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sources.sqlite.catalog import Capture, Catalog
from viewkeeper.sources.sqlite.commits import CommitWatch
from viewkeeper.sources.sqlite.connection import file_identity, read_transaction, translated
from viewkeeper.sources.sqlite.layout import Layout
from viewkeeper.sources.sqlite.position import Clock, feed_gap, parse_position, position_of
from viewkeeper.sources.sqlite.row_decoding import PoisonRow, undecodable_text
from viewkeeper.sources.sqlite.shapes import (
    AT,
    SEQ,
    TAG,
    Segment,
    Shape,
    Tracker,
    Turn,
    are_written_by_us,
    captured,
    first_shape,
    inherited,
    is_gone,
    is_known,
    is_torn,
    line_of,
    shape_of,
)

if TYPE_CHECKING:
    from viewkeeper.sources.sqlite.source import SQLiteSource

# Rows read in one poll, unless a single transaction has more.
ROWS_PER_POLL = 50_000
POLL_SECONDS_FIRST, POLL_SECONDS_MAX = 0.001, 0.02
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_JULIAN_EPOCH = 2440587.5


@dataclass(frozen=True)
class _Batch:
    """What one read transaction gave."""

    catalog: Catalog
    start: int
    end: int
    ends: Sequence[int]
    at_end: bool
    logged: Mapping[int, Sequence[Sequence[Any]]]
    # For each number its tag and time.
    marks: Mapping[int, tuple[int, float]]
    # Relations to be read again at the end, because all that lies before it is skipped; else None.
    skipped: frozenset[str] | None = None


class SQLiteFeed(Feed):
    """See `Feed`. Opened by `SQLiteSource.feed`, which has checked the start position."""

    def __init__(
        self,
        source: SQLiteSource,
        connection: sqlite3.Connection,
        relations: Sequence[str],
        start: Position,
    ) -> None:
        self._source, self._connection = source, connection
        self.position = start
        self._at = parse_position(start, source.name)
        self._shapes = dict(self._at.shapes)
        self._relations = tuple(dict.fromkeys(relations))
        self._file = file_identity(source.path)
        self._watch = CommitWatch(source.path, bytes.fromhex(self._at.history))
        self._ends: list[int] = []
        self._pending: list[FeedItem] = []
        self._closed = threading.Event()
        # What the last look saw: SQLite's change counter, and the log's newest number.
        self._version: object = None
        self._reached = -1
        # Read no further than here: behind it lies a row that can't be decoded.
        self._limit: int | None = None
        # Since when a table is missing, or not recorded.
        self._unsettled_since: float | None = None

    def poll(self, timeout_seconds: float, items_max: int = 10_000) -> list[FeedItem]:
        deadline = time.monotonic() + timeout_seconds
        pause = POLL_SECONDS_FIRST
        while not self._pending:
            self._pending = self._look()
            left = deadline - time.monotonic()
            if self._pending or left <= 0 or self._closed.wait(min(pause, left)):
                break
            pause = min(pause * 1.5, POLL_SECONDS_MAX)
        items, self._pending = self._pending[:items_max], self._pending[items_max:]
        if items:
            self.position = items[-1].position
        return items

    def confirm(self, position: Position) -> None:
        self._source.confirm(parse_position(position, self._source.name))

    def close(self) -> None:
        self._closed.set()
        self._connection.close()

    def _look(self) -> list[FeedItem]:
        """One look at the database; cheap when nothing was committed since the last one."""
        name = self._source.name
        if file_identity(self._source.path) != self._file:
            raise feed_gap(name, "the database's file was replaced by another one")
        with translated(name):
            version = self._connection.execute("PRAGMA data_version").fetchone()
            if version == self._version and self._at.seq == self._reached and not self._limit:
                return []
            with read_transaction(self._connection):
                clock, catalog = self._check_log()
                is_settled, lost = self._settled(catalog)
                batch = self._read(clock, catalog) if is_settled and not lost else None
            # Only now: a commit between the two reads must be seen by the next look.
            self._version = version if batch is not None else None
        if lost:
            self._source.mend(lost)
            self._unsettled_since = None
        return self._items(batch) if batch is not None else []

    def _check_log(self) -> tuple[Clock, Catalog]:
        clock = self._source.clock(self._connection)
        if clock is None or clock.history != self._at.history:
            raise feed_gap(self._source.name, "the log belongs to another history, or is gone")
        catalog = self._source.catalog(self._connection)
        self._check_anchor(clock, catalog)
        for relation in self._relations:
            if self._shape(catalog, relation) is None:
                shape = first_shape(catalog, relation, self._at.seq)
                self._shapes |= {} if shape is None else {relation: shape}
                self._at = self._at.with_shapes(self._shapes)
        return clock, catalog

    def _settled(self, catalog: Catalog) -> tuple[bool, list[Capture]]:
        """Whether the relations are known as they are, and tables that are not recorded any more.

        A rebuild takes a table's name away, or its triggers, and gives them back a moment later.
        """
        shapes = [(relation, self._shape(catalog, relation)) for relation in self._relations]
        found = [
            captured(catalog, *each) for each in shapes if each[1] is None or is_known(each[1])
        ]
        lost = [capture for capture in found if capture is not None and capture.unrecorded]
        if not lost and not any(is_gone(catalog, *each) for each in shapes):
            self._unsettled_since = None
            return True, []
        now = time.monotonic()
        self._unsettled_since = self._unsettled_since or now
        if now - self._unsettled_since < self._source.settle_seconds:
            return False, []
        return True, lost

    def _read(self, clock: Clock, catalog: Catalog) -> _Batch:
        self._reached = clock.seq
        shapes = {relation: self._shape(catalog, relation) for relation in self._relations}
        if any(is_torn(catalog, *each) for each in shapes.items()):
            return self._skipping(clock, catalog, shapes)
        if clock.seq == self._at.seq:
            return _Batch(catalog, clock.seq, clock.seq, (), True, {}, {})
        self._note_ends(clock, catalog)
        end, logged, marks = self._read_sound(catalog, self._choose_end())
        ends = [number for number in self._ends if number <= end]
        self._ends = self._ends[len(ends) :]
        return _Batch(catalog, self._at.seq, end, ends, end == clock.seq, logged, marks)

    def _skipping(
        self, clock: Clock, catalog: Catalog, shapes: Mapping[str, Shape | None]
    ) -> _Batch:
        """Go to the present at once. What was logged of other relations on the way is not told
        either: beside rows that are not known it would be shown in states that never were."""
        after, end = self._at.seq, clock.seq
        skipped = {
            relation
            for relation, shape in shapes.items()
            if is_torn(catalog, relation, shape)
            or any(
                self._has_rows(layout, after, end) for layout in line_of(catalog, relation, shape)
            )
        }
        self._ends, self._limit = [], None
        marks = {end: (clock.tag, 0.0)}
        return _Batch(catalog, after, end, (), True, {}, marks, frozenset(skipped))

    def _has_rows(self, layout: Layout, after: int, end: int) -> bool:
        sql = f"SELECT 1 FROM {layout.log} WHERE seq > ? AND seq <= ? LIMIT 1"
        return self._connection.execute(sql, (after, end)).fetchone() is not None

    def _check_anchor(self, clock: Clock, catalog: Catalog) -> None:
        """The log must still hold the row at our position, or stand exactly there."""
        at = self._at
        if catalog.version < at.schema:
            detail = f"its schema is of version {catalog.version}, and we had read {at.schema}"
            raise feed_gap(self._source.name, f"{detail}: an older state was restored")
        if clock.seq == at.seq and clock.tag == at.tag:
            return
        if clock.seq < at.seq:
            detail = f"the log stands at {clock.seq}, and we had read {at.seq}: an older state"
            raise feed_gap(self._source.name, f"{detail} of the database was restored")
        if at.seq == 0:
            return
        for layout in catalog.layouts:
            found = self._connection.execute(
                f"SELECT tag FROM {layout.log} WHERE seq = ?", (at.seq,)
            ).fetchone()
            if found is not None:
                if found[0] == at.tag:
                    return
                raise feed_gap(self._source.name, f"row {at.seq} of the log is another one now")
        raise feed_gap(self._source.name, f"row {at.seq} of the log is gone")

    def _note_ends(self, clock: Clock, catalog: Catalog) -> None:
        """Where transactions end, from the WAL and from the cuts that were opened meanwhile.

        A cut stands between transactions, so splitting there is right; and it must be split there,
        because a cut has to say of every transaction whether it reflects it.
        """
        found = self._watch.ends(catalog.clock_page, clock.seq)
        found += self._source.cut_numbers(self._at.seq, clock.seq)
        last = self._at.seq
        self._ends = sorted({*self._ends, *(n for n in found if last < n <= clock.seq), clock.seq})

    def _choose_end(self) -> int:
        limit = self._at.seq + ROWS_PER_POLL
        if self._limit is not None:
            limit = min(limit, self._limit)
        fitting = bisect_right(self._ends, limit)
        return self._ends[max(fitting, 1) - 1]

    def _read_sound(
        self, catalog: Catalog, end: int
    ) -> tuple[int, dict[int, Sequence[Sequence[Any]]], dict[int, tuple[int, float]]]:
        """What was logged up to there, or up to the last transaction before a row that can't be read."""
        try:
            return end, *self._read_logs(catalog, end)
        except PoisonRow as error:
            sound = bisect_left(self._ends, error.index)
            if not sound:
                raise
            return self._read_sound(catalog, self._ends[sound - 1])

    def _read_logs(
        self, catalog: Catalog, end: int
    ) -> tuple[dict[int, Sequence[Sequence[Any]]], dict[int, tuple[int, float]]]:
        logged: dict[int, Sequence[Sequence[Any]]] = {}
        marks: dict[int, tuple[int, float]] = {}
        needed = {
            layout.number
            for relation in self._relations
            for layout in line_of(catalog, relation, self._shape(catalog, relation))
        }
        for layout in catalog.layouts:
            rows = self._read_log(layout, end, "*" if layout.number in needed else "seq, at, tag")
            if not rows:
                continue
            marks.update((row[SEQ], (row[TAG], row[AT])) for row in rows)
            if layout.number in needed:
                logged[layout.number] = rows
        missing = end - self._at.seq - len(marks)
        if missing:
            raise feed_gap(
                self._source.name,
                f"{missing} of the log's rows between {self._at.seq} and {end} are gone",
            )
        return logged, marks

    def _read_log(self, layout: Layout, end: int, wanted: str) -> Sequence[Sequence[Any]]:
        sql = f"SELECT {wanted} FROM {layout.log} WHERE seq > ? AND seq <= ? ORDER BY seq"
        rows: list[Sequence[Any]] = []
        try:
            rows += self._connection.execute(sql, (self._at.seq, end))
        except sqlite3.OperationalError as error:
            if "UTF-8" not in str(error):
                raise
            undecodable = undecodable_text(self._source.name, layout.relation, error)
            # All before it have been read.
            undecodable.index = self._next_row(layout, rows[-1][SEQ] if rows else self._at.seq)
            raise undecodable from None
        if not are_written_by_us(rows, layout, is_whole=wanted == "*"):
            detail = f"{layout.log} does not hold what our triggers write there"
            raise feed_gap(self._source.name, detail)
        return rows

    def _next_row(self, layout: Layout, after: int) -> int:
        sql = f"SELECT min(seq) FROM {layout.log} WHERE seq > ?"
        (found,) = self._connection.execute(sql, (after,)).fetchone()
        return int(found)

    def _items(self, batch: _Batch) -> list[FeedItem]:
        if batch.skipped is not None:
            items: list[FeedItem] = list(self._present(batch, batch.skipped))
        else:
            try:
                segments, turns = self._pieces(batch)
            except PoisonRow as error:
                return self._before_poison(batch, error)
            self._limit = None
            items = list(self._in_order(batch, segments, turns))
        version = batch.catalog.version if batch.at_end else self._at.schema
        if batch.end > self._at.seq or version != self._at.schema:
            # Last of all: a position that counts a change of the schema has everything before it.
            if batch.end > self._at.seq:
                self._advance(batch, batch.end)
            self._at = replace(self._at, schema=version)
            items.append(Progress(self._source.name, position_of(self._at)))
        return items

    def _pieces(self, batch: _Batch) -> tuple[list[Segment], list[Turn]]:
        segments: list[Segment] = []
        turns: list[Turn] = []
        for relation in self._relations:
            shape = self._shape(batch.catalog, relation)
            tracker = Tracker(self._source.name, relation, shape)
            pieces = tracker.advance(
                batch.catalog, batch.logged, batch.start, batch.end, batch.at_end
            )
            segments += pieces[0]
            turns += pieces[1]
        turns.sort(key=lambda turn: turn.place)
        return segments, turns

    def _present(self, batch: _Batch, skipped: frozenset[str]) -> Iterator[SchemaChange]:
        turns: list[Turn] = []
        for relation in self._relations:
            shape = self._shape(batch.catalog, relation)
            tracker = Tracker(self._source.name, relation, shape)
            turns += tracker.skip(batch.catalog, batch.end, rewrites=relation in skipped)
        self._advance(batch, batch.end)
        for change in self._changes(batch.catalog, turns, batch.end):
            yield replace(change, skips=change.relation in skipped)

    def _shape(self, catalog: Catalog, relation: str) -> Shape | None:
        return self._shapes.get(relation) or inherited(catalog, relation, self._shapes)

    def _before_poison(self, batch: _Batch, error: PoisonRow) -> list[FeedItem]:
        """Deliver the whole transactions before the one whose row can't be decoded, then raise."""
        sound = [number for number in batch.ends if number < error.index]
        if not sound:
            raise error
        self._limit = sound[-1]
        self._ends = sorted({*self._ends, *batch.ends})
        self._version = None
        return self._look()

    def _in_order(
        self, batch: _Batch, segments: Sequence[Segment], turns: Sequence[Turn]
    ) -> Iterator[FeedItem]:
        """Transactions, cut in pieces where a schema changed within one."""
        begin = batch.start
        waiting = list(turns)
        yield from self._changes(batch.catalog, waiting, begin)
        for end in batch.ends:
            first = begin
            for place in (*_places(waiting, begin, end), end):
                changes = _changes_between(segments, begin, place)
                if changes:
                    self._advance(batch, place)
                    yield SourceTransaction(
                        self._source.name,
                        position_of(self._at, first),
                        end,
                        _moment(batch.marks[place][1]),
                        changes,
                    )
                begin = place
                if waiting:
                    yield from self._changes(batch.catalog, waiting, place)

    def _changes(self, catalog: Catalog, waiting: list[Turn], place: int) -> Iterator[SchemaChange]:
        while waiting and waiting[0].place <= place:
            turn = waiting.pop(0)
            self._shapes[turn.relation] = turn.shape
            if turn.renamed_to is not None:
                # A feed that reads it under its new name goes on from here.
                now = shape_of(catalog.captures[turn.renamed_to])
                self._shapes |= {} if now is None else {turn.renamed_to: now}
            self._at = self._at.with_shapes(self._shapes)
            yield SchemaChange(
                self._source.name,
                position_of(self._at),
                turn.relation,
                turn.before,
                turn.after,
                _statement(turn),
                turn.rewrites,
                turn.renamed_columns,
                turn.renamed_to,
            )

    def _advance(self, batch: _Batch, seq: int) -> None:
        self._at = self._at.moved(seq, batch.marks[seq][0])


def _places(turns: Sequence[Turn], begin: int, end: int) -> Sequence[int]:
    """Where schemas change within a transaction."""
    return sorted({turn.place for turn in turns if begin < turn.place < end}) if turns else ()


def _changes_between(
    segments: Sequence[Segment], begin: int, end: int
) -> tuple[RelationChange, ...]:
    changes = []
    for segment in segments:
        low, high = bisect_right(segment.seqs, begin), bisect_right(segment.seqs, end)
        if low == high:
            continue
        signs, rows = segment.signs[low:high], segment.rows[low:high]
        deleted = [row for sign, row in zip(signs, rows, strict=True) if sign < 0]
        inserted = [row for sign, row in zip(signs, rows, strict=True) if sign > 0]
        changes.append(RelationChange(segment.relation, deleted, inserted))
    return tuple(changes)


def _moment(julian_day: float) -> dt.datetime:
    return _EPOCH + dt.timedelta(days=julian_day - _JULIAN_EPOCH)


def _statement(turn: Turn) -> str:
    """What must have been done; SQLite keeps no record of the statement itself."""
    if turn.renamed_to is not None:
        return f"ALTER TABLE {turn.relation} RENAME TO {turn.renamed_to}"
    if turn.after is None:
        return f"DROP TABLE {turn.relation}"
    if turn.renamed_columns:
        return "; ".join(
            f"ALTER TABLE {turn.relation} RENAME COLUMN {old} TO {new}"
            for old, new in turn.renamed_columns.items()
        )
    return f"ALTER TABLE {turn.relation}" if not turn.rewrites else f"replaced {turn.relation}"
