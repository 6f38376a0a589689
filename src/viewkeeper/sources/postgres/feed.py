"""The change feed: pgoutput from our slot, whole transactions and schema changes in commit order.

A position is the end of a commit record, and how many items of the next transaction were delivered
after it: a transaction that changes a schema is delivered in several items.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import (
    Feed,
    FeedItem,
    Position,
    Progress,
    RelationChange,
    Remark,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sources.postgres import pgoutput
from viewkeeper.sources.postgres.columns import PLAIN, NotPlain, decoded
from viewkeeper.sources.postgres.notes import NOTE, NOTES, TIE_PREFIX, Remarks, note_of, tie_of
from viewkeeper.sources.postgres.position import make_position, widened, widened_all
from viewkeeper.sources.postgres.shapes import (
    ChangeFields,
    Same,
    Tracked,
    TrackedRelations,
    identity_lost,
)
from viewkeeper.sources.postgres.sifting import Sieve
from viewkeeper.sources.postgres.stream import ReplicationStream
from viewkeeper.sources.postgres.watching import Seen, Watch
from viewkeeper.sources.transaction_block import TransactionBlock, one_by_one
from viewkeeper.sources.urls import SourceUrl
from viewkeeper.sources.wire import Damage, Malformed

# From this number of messages on it is quicker to read them as columns: about a hundred small transactions.
BLOCK_MESSAGES_MIN = 300
MESSAGES_PER_READ_MAX = 3_000
# No more are read before it is looked at what they are, and at the time.
MESSAGES_PER_GATHERING_MAX = 100_000
# After a block, the next one is waited for until it has this number of messages, at most this long.
LINGER_MESSAGES_MAX, LINGER_SECONDS, LINGER_STEP_SECONDS = 9_000, 0.03, 0.002
# How often it is looked, at least, at what the feed rests on beside the stream.
LOOK_SECONDS = 1.0
# For so long a place is not told while somebody may have altered what the feed rests on.
UNSURE_SECONDS = 1.0

_COMMIT = bytes((pgoutput.COMMIT,))
_kind_of = itemgetter(0)
# Of a kind of message: 1 where it has to be taken by itself.
_IS_SPECIAL = bytes(kind not in PLAIN for kind in range(256))


class PostgresFeed(Feed):
    """Follows one slot. `source.PostgresSource.feed` has checked that the slot reaches back to ``start``."""

    def __init__(
        self,
        source: str,
        url: SourceUrl,
        instance: str,
        relations: TrackedRelations,
        start: Position,
        *,
        life: str,
        xid_near: int,
        watch: Watch | None = None,
        old_until: int = 0,
        expects_ties: bool = False,
        damage: Damage | None = None,
    ) -> None:
        """``old_until``: up to this place an older set-up told schema changes by messages."""
        self.position = start
        self.life = life
        self._source, self._instance, self._relations = source, instance, relations
        self._xid_near = xid_near
        self._system, self._timeline = start["system"], start["timeline"]
        self._skip = int(start["item"])
        self._transaction: _Open | None = None
        # What stopped the feed.
        self._failure: SourceError | None = None
        self._items: list[FeedItem | TransactionBlock] = []
        # What has been read and is in no item yet: messages, and the kind of each.
        self._messages: list[bytes] = []
        self._kinds = bytearray()
        # What becomes of logical messages; our table of schema changes, once the stream has named it.
        self._remarks = Remarks()
        self._sieve = Sieve(instance, old_until, self._remarks)
        self._notes: tuple[int, pgoutput.TupleDecoder] | None = None
        # Whether the last items were a block.
        self._is_flood = False
        self._handlers = self._handler_table()
        # What the feed rests on beside the stream, when it was last looked at, and what that found
        # which nothing in the stream had told of.
        self._watch = watch
        self._looked_at = time.monotonic()
        self._suspected: tuple[int, frozenset[int]] = (0, frozenset())
        self._unsure_since: float | None = None
        self._damage = damage or Damage(source)
        self._tell_watch()
        # What need not be heeded is not even sent: a message may have a gigabyte.
        messages = expects_ties or old_until > 0
        self._stream = ReplicationStream(
            source, url, instance, int(start["lsn"]), messages=messages
        )

    # -- reading ----------------------------------------------------------------------------------

    def poll(self, timeout_seconds: float, items_max: int = 10_000) -> list[FeedItem]:
        self._await(timeout_seconds, items_max)
        items = list(one_by_one(self._items))
        items, self._items = items[:items_max], [*items[items_max:]]
        if items:
            self.position = items[-1].position
        return items

    def poll_blocks(
        self, timeout_seconds: float, items_max: int = 10_000
    ) -> Sequence[FeedItem | TransactionBlock]:
        self._await(timeout_seconds, items_max)
        items, self._items = self._items, []
        if items:
            self.position = items[-1].position
        return items

    def _await(self, timeout_seconds: float, items_max: int) -> None:
        """Read until there are items, or the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            if self._failure is None:
                self._read_on(items_max)
            self._look_if_due()
            if self._failure is not None and not self._items:
                raise self._failure
            now = time.monotonic()
            if self._items or now >= deadline:
                break
            self._stream.wait(deadline - now)

    def _read_on(self, items_max: int) -> None:
        """Take what has arrived; what stops it is raised once all before it is delivered."""
        try:
            self._gather(items_max)
            if self._is_flood:
                self._linger(items_max)
        except SourceError as error:
            self._failure = error
        try:
            self._settle()
        except SourceError as error:
            self._failure = self._failure or error

    def _gather(self, items_max: int) -> None:
        """Take what has arrived, without waiting."""
        found = len(self._items) + self._kinds.count(_COMMIT)
        for _ in range(0, MESSAGES_PER_GATHERING_MAX, MESSAGES_PER_READ_MAX):
            with self._damage.at(self._place):
                messages = self._stream.read(MESSAGES_PER_READ_MAX) if found < items_max else []
            if not messages:
                break
            kinds = bytes(map(_kind_of, messages))
            if pgoutput.MESSAGE in kinds:
                messages = self._sieve.sifted(messages)
                kinds = bytes(map(_kind_of, messages))
            self._messages += messages
            self._kinds += kinds
            found += kinds.count(_COMMIT)

    def _linger(self, items_max: int) -> None:
        """While they come by the thousand: a server that sends one by one gets time to send some more.

        To be woken up by each of them would cost more than reading them.
        """
        until = time.monotonic() + LINGER_SECONDS
        while 0 < len(self._messages) < LINGER_MESSAGES_MAX and time.monotonic() < until:
            time.sleep(LINGER_STEP_SECONDS)
            self._gather(items_max)

    def _settle(self) -> None:
        """Make items of what was read, but for the last transaction while more of it is to come."""
        self._is_flood = False
        self._messages = self._sieve.without_lonely(self._messages, self._kinds)
        while self._messages:
            if self._transaction is None and not self._skip:
                special = self._kinds.translate(_IS_SPECIAL).find(1)
                self._take_plain(special if special >= 0 else len(self._kinds))
                if special < 0:
                    break
            # What is special is in the first transaction now; or that was begun one by one.
            self._take_singly(self._kinds.find(_COMMIT) + 1 or len(self._kinds))
        # A stream that broke may have lost what it had read behind the last message here.
        if self._transaction is None and not self._messages and self._failure is None:
            self._note_progress(self._stream.sent_lsn)

    def _take_plain(self, limit: int) -> None:
        """The whole transactions among the first messages, all of which are plain."""
        whole = self._kinds.rfind(_COMMIT, 0, limit) + 1
        if whole >= BLOCK_MESSAGES_MIN:
            with contextlib.suppress(NotPlain):
                self._take_block(whole)
                self._is_flood = True
                return
        if whole:
            self._take_singly(whole)

    def _take_singly(self, size: int) -> None:
        messages = self._forget(size)
        with self._damage.at(self._place):
            for message in messages:
                self._handlers.get(message[0], self._on_unknown)(message)

    def _forget(self, size: int) -> list[bytes]:
        """Take this number of messages out."""
        messages, self._messages = self._messages[:size], self._messages[size:]
        del self._kinds[:size]
        return messages

    def _take_block(self, size: int) -> None:
        relations = self._relations.by_oid.items()
        decoders = {oid: (tracked.name, tracked.columns) for oid, tracked in relations}
        notes = self._notes[0] if self._notes is not None else None
        found = decoded(self._messages[:size], decoders, notes)
        xids = widened_all(found.xids, self._xid_near)
        block = TransactionBlock(
            self._source, xids, found.committed, found.ends, self._at, found.changes
        ).touching(found.changes)
        self._forget(size)
        self._xid_near = int(xids[-1])
        if block is not None:
            self._items.append(block)
        if block is None or block.marks[-1] != found.ends[-1]:
            self._items.append(Progress(self._source, self._at(int(found.ends[-1]))))

    def _note_progress(self, sent_lsn: int) -> None:
        """Between transactions, everything up to what the server has sent is delivered."""
        last = self._items[-1].position if self._items else self.position
        if sent_lsn > int(last["lsn"]) and not self._skip:
            self._items.append(Progress(self._source, self._at(sent_lsn)))

    # -- beside the stream ------------------------------------------------------------------------

    def _look_if_due(self) -> None:
        """Look before a place is delivered without rows, for they may be missing; and every now and then.

        A transaction needs no look: before it is applied, a cut is opened, which looks.
        """
        if self._watch is None:
            return
        is_place = bool(self._items) and isinstance(self._items[-1], Progress)
        if is_place or time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._look(self._watch)

    def _look(self, watch: Watch) -> None:
        """Raises SourceError where the feed lacks rows; tells a change that the stream has not told.

        What a look sees may not be in the stream yet. So it counts once the stream has passed it, and
        the next look still sees it.
        """
        seen = watch.look()
        found = {}
        for oid, tracked in sorted(self._relations.by_oid.items()):
            if watch.differs(seen, oid) or tracked.is_doubted:
                rewritten = watch.is_rewritten(seen, oid)
                now = self._relations.compared(oid, rewritten=rewritten)
                if isinstance(now, Same):
                    watch.adopt(seen, oid)
                else:
                    found[oid] = now
        since, suspected = self._suspected
        last = self._items[-1] if self._items else None
        is_between = self._transaction is None and not self._messages
        certain = sorted(found.keys() & suspected)
        if certain and is_between and isinstance(last, Progress) and last.position["lsn"] >= since:
            (fields,) = self._relations.found(certain[0], found[certain[0]], seen)
            self._items[-1] = SchemaChange(self._source, last.position, **fields)
            watch.adopt(seen, certain[0])
            self._tell_watch()
        else:
            if found.keys() != suspected:
                self._suspected = seen.lsn, frozenset(found)
            if (found or self._is_unsure(seen)) and isinstance(last, Progress):
                self._items.pop()  # the place is delivered once it is known what is there
        if found:
            watch.hasten()

    def _is_unsure(self, seen: Seen) -> bool:
        """Whether a commit may be in the stream of which a look shows nothing yet: for a moment only,
        for who is at work for longer is not between the log and visibility."""
        now = time.monotonic()
        self._unsure_since = (self._unsure_since or now) if seen.is_altering else None
        return self._unsure_since is not None and now - self._unsure_since < UNSURE_SECONDS

    def _tell_watch(self) -> None:
        if self._watch is not None:
            tracked = self._relations.by_oid.values()
            doubted = [each.name for each in tracked if each.is_doubted]
            self._watch.follow([each.described for each in tracked], doubted)

    def confirm(self, position: Position) -> None:
        self._stream.confirm(int(position["lsn"]))

    def close(self) -> None:
        self._stream.close()

    # -- messages ---------------------------------------------------------------------------------

    def _handler_table(self) -> Mapping[int, Callable[[bytes], None]]:
        return {
            pgoutput.BEGIN: self._on_begin,
            pgoutput.COMMIT: self._on_commit,
            pgoutput.RELATION: self._on_relation,
            pgoutput.INSERT: self._on_insert,
            pgoutput.UPDATE: self._on_update,
            pgoutput.DELETE: self._on_delete,
            pgoutput.TRUNCATE: self._on_truncate,
            pgoutput.MESSAGE: self._on_message,
            pgoutput.TYPE: pgoutput.pass_over,
            pgoutput.ORIGIN: pgoutput.pass_over,
        }

    def _on_begin(self, payload: bytes) -> None:
        microseconds, xid, final_lsn = pgoutput.decode_begin(payload)
        if self._transaction is not None:
            raise Malformed("a transaction begins before the one before it has ended")
        self._xid_near = xid = widened(xid, self._xid_near)
        self._transaction = _Open(xid, microseconds, final_lsn)

    def _on_commit(self, payload: bytes) -> None:
        end_lsn = pgoutput.end_of_commit(payload)
        transaction = self._transaction
        self._transaction = None
        if transaction is None:
            raise Malformed("a commit came without its beginning")
        changes = transaction.whole()
        if changes and not self._skip:
            # Nearly all of them: no schema change inside, so one item.
            at = self._at(end_lsn)
            self._items.append(
                SourceTransaction(
                    self._source, at, transaction.xid, transaction.committed_at, changes, transaction.tie
                )
            )  # fmt: skip
        else:
            self._items += self._finished(transaction, end_lsn)

    def _finished(self, transaction: _Open, end_lsn: int) -> Iterator[FeedItem]:
        """The transaction's items; all but the last stand before the end of its commit record."""
        pieces = transaction.pieces()
        if transaction.tie is not None and not pieces:
            self._sieve.ignore_tie("its transaction changed nothing that is read")
        before = int((self._items[-1].position if self._items else self.position)["lsn"])
        end = self._at(end_lsn)
        skip, self._skip = self._skip, 0
        for number, piece in enumerate(pieces, start=1):
            position = end if number == len(pieces) else self._at(before, number)
            if number <= skip:
                continue
            if isinstance(piece, _Schema):
                yield SchemaChange(self._source, position, **piece.fields)
            else:
                at = transaction.committed_at
                yield SourceTransaction(
                    self._source, position, transaction.xid, at, piece, transaction.tie
                )
        if not pieces:
            yield Progress(self._source, end)

    def _on_relation(self, payload: bytes) -> None:
        transaction = self._transaction or self._outside()
        relation = pgoutput.decode_relation(payload)
        if (relation.namespace, relation.name) == (self._instance, NOTES):
            parsers = [bytes.decode if c.name == NOTE else None for c in relation.columns]
            self._notes = relation.oid, pgoutput.TupleDecoder(parsers)
        for change in self._relations.meet(relation, transaction.xid):
            if self._watch is not None:
                self._watch.look()  # columns that the publication leaves out are no schema change
            transaction.schema(change)
            self._tell_watch()

    def _on_unknown(self, payload: bytes) -> None:
        raise self._broken(f"it sent a message of the unknown kind {payload[:1]!r}")

    def _outside(self) -> _Open:
        raise self._broken("it sent a change outside a transaction")

    def _broken(self, detail: str) -> SourceError:
        return SourceError(
            "feed-broken",
            f"the feed of PostgreSQL source {self._source} can't be understood",
            source=self._source,
            retryable=False,
            detail=detail,
            hint="please report it, with the server's version",
        )

    def _on_insert(self, payload: bytes) -> None:
        oid = pgoutput.relation_of(payload)
        tracked = self._relations.by_oid.get(oid)
        if self._notes is not None and oid == self._notes[0]:
            self._on_note(self._notes[1].insert(payload))
        elif tracked is not None:
            try:
                row = tracked.decoder.insert(payload)
            except ValueError as error:
                raise self._unreadable(tracked, error) from error
            (self._transaction or self._outside()).rows(tracked.name)[1].append(row)

    def _on_update(self, payload: bytes) -> None:
        tracked = self._relations.by_oid.get(pgoutput.relation_of(payload))
        if tracked is not None:
            try:
                old, new = tracked.decoder.update(payload)
            except ValueError as error:
                raise self._unreadable(tracked, error) from error
            # An update that changes nothing a view can see is no change.
            if old != new:
                deleted, inserted = (self._transaction or self._outside()).rows(tracked.name)
                deleted.append(old)
                inserted.append(new)

    def _on_delete(self, payload: bytes) -> None:
        tracked = self._relations.by_oid.get(pgoutput.relation_of(payload))
        if tracked is not None:
            try:
                row = tracked.decoder.delete(payload)
            except ValueError as error:
                raise self._unreadable(tracked, error) from error
            (self._transaction or self._outside()).rows(tracked.name)[0].append(row)

    def _on_truncate(self, payload: bytes) -> None:
        for oid in pgoutput.decode_truncate(payload).oids:
            tracked = self._relations.by_oid.get(oid)
            if tracked is not None:
                (self._transaction or self._outside()).schema(
                    {
                        "relation": tracked.name,
                        "before": tracked.described.relation,
                        "after": tracked.described.relation,
                        "statement": f"TRUNCATE {tracked.described.quoted}",
                        "rewrites": True,
                    }
                )

    def _on_note(self, row: tuple[Any, ...]) -> None:
        """A row that only the owner of our event triggers can have written."""
        note = note_of(row[0]) if row and row[0] is not None else None
        if note is None:
            detail = "a set-up of another version wrote it down"
            note = {"tag": "a command", "unclear": detail}
            self._remarks.add("note-unclear", f"a schema change could not be read: {detail}")
        self._add_changes(self._relations.noted(note, (self._transaction or self._outside()).xid))

    def _add_changes(self, changes: Iterator[ChangeFields]) -> None:
        for change in changes:
            (self._transaction or self._outside()).schema(change)
            self._tell_watch()

    def _on_message(self, payload: bytes) -> None:
        """What the sieve has left: a hint, from anybody."""
        message = pgoutput.decode_message(payload)
        transaction = self._transaction or self._outside()
        if message.prefix == TIE_PREFIX:
            tie = tie_of(message.content)
            if tie is None:
                self._sieve.ignore_tie('expected {"id": "some text", "parts": 2}')
            else:
                transaction.tie = tie
            return
        self._sieve.ignore()
        until, transaction.final_lsn = transaction.final_lsn, 0
        if until:  # the first of a transaction is hint enough
            self._add_changes(self._relations.hinted(message.lsn, until, transaction.xid))

    def remarks(self) -> list[Remark]:
        return self._remarks.taken()

    # -- places and errors ------------------------------------------------------------------------

    def _place(self) -> str:
        """Behind which transaction it is being read."""
        last = self._items[-1].position if self._items else self.position
        lsn = int(last["lsn"])
        return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"

    def _at(self, lsn: int, item: int = 0) -> Position:
        return make_position(self._system, self._timeline, lsn, item)

    def _unreadable(self, tracked: Tracked, error: ValueError) -> SourceError:
        if isinstance(error, pgoutput.UnreadableValue):
            column = tracked.described.readable[error.column].name
            return SourceError(
                "value-out-of-range",
                f"a value of {tracked.name}.{column} in source {self._source} has no exact form here",
                source=self._source,
                retryable=False,
                detail=f"found {error.text[:80].decode(errors='replace')}",
                hint="correct the value, or leave the relation out of the views",
            )
        return identity_lost(self._source, tracked.name)


class _Schema:
    """A schema change inside an open transaction: a `SchemaChange` without its position."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields


_Piece = _Schema | tuple[RelationChange, ...]


class _Open:
    """A transaction as it comes in: rows by relation, cut into pieces by its schema changes."""

    __slots__ = ("_done", "_microseconds", "_rows", "final_lsn", "tie", "xid")

    def __init__(self, xid: int, microseconds: int, final_lsn: int) -> None:
        self.xid, self._microseconds, self.final_lsn = xid, microseconds, final_lsn
        self.tie: tuple[str, int] | None = None
        self._done: list[_Piece] | None = None
        self._rows: dict[str, tuple[list[Any], list[Any]]] = {}

    @property
    def committed_at(self) -> dt.datetime:
        return pgoutput.moment(self._microseconds)

    def rows(self, relation: str) -> tuple[list[Any], list[Any]]:
        """Deleted and inserted rows of the relation in the current piece."""
        found = self._rows.get(relation)
        if found is None:
            found = self._rows[relation] = ([], [])
        return found

    def schema(self, fields: dict[str, Any]) -> None:
        self._end_piece().append(_Schema(fields))

    def whole(self) -> tuple[RelationChange, ...]:
        """All changes, if no schema change is among them; nothing where there is one, or no change."""
        if self._done is not None:
            return ()
        return self._changes()

    def _changes(self) -> tuple[RelationChange, ...]:
        return tuple(
            [
                RelationChange(name, deleted, inserted)
                for name, (deleted, inserted) in self._rows.items()
            ]
        )

    def _end_piece(self) -> list[_Piece]:
        if self._done is None:
            self._done = []
        if self._rows:
            self._done.append(self._changes())
            self._rows = {}
        return self._done

    def pieces(self) -> list[_Piece]:
        return self._end_piece()
