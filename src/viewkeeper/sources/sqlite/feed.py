"""The feed: what the triggers logged, as whole transactions and schema changes in their order.

Each poll is one short read transaction. Nothing is trusted that can be checked in it: that the file
is still the one we opened, that the log still has the row at our position with the same random tag,
and that the numbers since then are all there. So a restored backup, a replaced file and a log that
was pruned too far are each a ``feed-gap``, never a silent one.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from viewkeeper.sources.sqlite.catalogue import Catalogue
from viewkeeper.sources.sqlite.commits import CommitWatch
from viewkeeper.sources.sqlite.connection import file_identity, read_transaction, translated
from viewkeeper.sources.sqlite.layout import Layout
from viewkeeper.sources.sqlite.poison import PoisonRow, undecodable_text
from viewkeeper.sources.sqlite.positions import Clock, feed_gap, parse_position, position_of
from viewkeeper.sources.sqlite.shapes import (
    AT,
    SEQ,
    TAG,
    Segment,
    Shape,
    Tracker,
    Turn,
    inherited,
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

    catalogue: Catalogue
    start: int
    end: int
    ends: Sequence[int]
    at_end: bool
    logged: Mapping[int, Sequence[Sequence[Any]]]
    # For each number its tag and time.
    marks: Mapping[int, tuple[int, float]]


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
        # Read no further than here: behind it lies a poison row.
        self._limit: int | None = None

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
        self._source.confirmed(parse_position(position, self._source.name))

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
                batch = self._read()
            # Only now: a commit between the two reads must be seen by the next look.
            self._version = version
        return self._items(batch) if batch is not None else []

    def _read(self) -> _Batch | None:
        clock = self._source.clock(self._connection)
        if clock is None or clock.history != self._at.history:
            raise feed_gap(self._source.name, "the log belongs to another history, or is gone")
        catalogue = self._source.catalogue(self._connection)
        self._check_anchor(clock, catalogue)
        self._reached = clock.seq
        if clock.seq == self._at.seq:
            return _Batch(catalogue, clock.seq, clock.seq, (), True, {}, {})
        self._note_ends(clock, catalogue)
        end = self._choose_end()
        logged, marks = self._read_logs(catalogue, end)
        ends = [number for number in self._ends if number <= end]
        self._ends = self._ends[len(ends) :]
        return _Batch(catalogue, self._at.seq, end, ends, end == clock.seq, logged, marks)

    def _check_anchor(self, clock: Clock, catalogue: Catalogue) -> None:
        """The log must still hold the row at our position, or stand exactly there."""
        at = self._at
        if clock.seq == at.seq and clock.tag == at.tag:
            return
        if clock.seq < at.seq:
            detail = f"the log stands at {clock.seq}, and we had read {at.seq}: an older state"
            raise feed_gap(self._source.name, f"{detail} of the database was restored")
        if at.seq == 0:
            return
        for layout in catalogue.layouts:
            found = self._connection.execute(
                f"SELECT tag FROM {layout.log} WHERE seq = ?", (at.seq,)
            ).fetchone()
            if found is not None:
                if found[0] == at.tag:
                    return
                raise feed_gap(self._source.name, f"row {at.seq} of the log is another one now")
        raise feed_gap(self._source.name, f"row {at.seq} of the log is gone")

    def _note_ends(self, clock: Clock, catalogue: Catalogue) -> None:
        """Where transactions end, from the WAL and from the cuts that were opened meanwhile.

        A cut stands between transactions, so splitting there is right; and it must be split there,
        because a cut has to say of every transaction whether it reflects it.
        """
        found = self._watch.ends(catalogue.clock_page, clock.seq)
        found += self._source.cut_numbers(self._at.seq, clock.seq)
        last = self._at.seq
        self._ends = sorted({*self._ends, *(n for n in found if last < n <= clock.seq), clock.seq})

    def _choose_end(self) -> int:
        limit = self._at.seq + ROWS_PER_POLL
        if self._limit is not None:
            limit = min(limit, self._limit)
        fitting = bisect_right(self._ends, limit)
        return self._ends[max(fitting, 1) - 1]

    def _read_logs(
        self, catalogue: Catalogue, end: int
    ) -> tuple[dict[int, Sequence[Sequence[Any]]], dict[int, tuple[int, float]]]:
        logged: dict[int, Sequence[Sequence[Any]]] = {}
        marks: dict[int, tuple[int, float]] = {}
        needed = {
            layout.number
            for relation in self._relations
            for layout in line_of(catalogue, relation, self._shape(catalogue, relation))
        }
        for layout in catalogue.layouts:
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
        try:
            return self._connection.execute(
                f"SELECT {wanted} FROM {layout.log} WHERE seq > ? AND seq <= ? ORDER BY seq",
                (self._at.seq, end),
            ).fetchall()
        except sqlite3.OperationalError as error:
            if "UTF-8" in str(error):
                raise undecodable_text(self._source.name, layout.relation, error) from None
            raise

    def _items(self, batch: _Batch) -> list[FeedItem]:
        segments: list[Segment] = []
        turns: list[Turn] = []
        try:
            for relation in self._relations:
                shape = self._shape(batch.catalogue, relation)
                tracker = Tracker(self._source.name, relation, shape)
                pieces = tracker.advance(
                    batch.catalogue, batch.logged, batch.start, batch.end, batch.at_end
                )
                segments += pieces[0]
                turns += pieces[1]
        except PoisonRow as error:
            return self._before_poison(batch, error)
        self._limit = None
        turns.sort(key=lambda turn: turn.place)
        items = list(self._in_order(batch, segments, turns))
        if batch.end > self._at.seq:
            self._advance(batch, batch.end)
            items.append(Progress(self._source.name, position_of(self._at)))
        return items

    def _shape(self, catalogue: Catalogue, relation: str) -> Shape | None:
        return self._shapes.get(relation) or inherited(catalogue, relation, self._shapes)

    def _before_poison(self, batch: _Batch, error: PoisonRow) -> list[FeedItem]:
        """Deliver the whole transactions before the one with the poison row, then raise."""
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
        yield from self._changes(batch.catalogue, waiting, begin)
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
                    yield from self._changes(batch.catalogue, waiting, place)

    def _changes(
        self, catalogue: Catalogue, waiting: list[Turn], place: int
    ) -> Iterator[SchemaChange]:
        while waiting and waiting[0].place <= place:
            turn = waiting.pop(0)
            self._shapes[turn.relation] = turn.shape
            if turn.renamed_to is not None:
                # Whoever reads it under its new name goes on from here.
                now = shape_of(catalogue.captures[turn.renamed_to])
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
