"""Groups of events: each ends before the next begins, and what was read before a stop is delivered."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from fuzzing.binlog import event_of
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import Progress, SourceTransaction
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.catalog import Table
from viewkeeper.sources.mariadb.columns import Column
from viewkeeper.sources.mariadb.feed import MariaDBFeed
from viewkeeper.sources.mariadb.position import Place
from viewkeeper.sources.mariadb.shapes import Doubt

THINGS = Table("things", "d", "things", (Column("id", "integer", 8),), ("id",))
# Number, flags, names, one bigint, no metadata of its type, not nullable; then its name and the key.
MAP = event_of(
    binlog.TABLE_MAP,
    struct.pack("<IH", 7, 0) + b"\1\0" + b"\1d\0\6things\0" + b"\1\x08\0\0" + b"\4\3\2id\x08\1\0",
)
XID = event_of(binlog.XID, bytes(8))
UNKNOWN = event_of(200, bytes(8))
FORMAT = event_of(binlog.FORMAT, bytes(8))


def gtid(number: int, flags: int = 0):
    return event_of(binlog.GTID, struct.pack("<QIB", number, 0, flags))


def inserted(*ids: int):
    rows = b"".join(b"\0" + struct.pack("<q", each) for each in ids)
    return event_of(23, struct.pack("<IH", 7, 0) + b"\1\0" + b"\1\1" + rows)


def statement(text: str):
    return event_of(binlog.QUERY, bytes(8) + b"\1\0\0\0\0" + b"d\0" + text.encode())


def transaction(number: int):
    return [gtid(number), MAP, inserted(number), XID]


class Stream:
    """Events one after the other, then silence; or what is raised in an event's place."""

    server, file, offset, born, crossed_crash = 1, "binlog.000001", 4, 1, False

    def __init__(self, *events) -> None:
        self._events = list(events)

    def next(self, seconds):
        if not self._events:
            return None
        event = self._events.pop(0)
        if isinstance(event, Exception):
            raise event
        self.offset += 100
        return event

    def damaged(self, detail: str) -> SourceError:
        return SourceError("feed-gap", detail, source="crm", retryable=False)

    def unreadable(self, detail: str) -> SourceError:
        return SourceError("damaged-message", detail, source="crm", retryable=True)


def feed_of(*events, crossed_crash: bool = False) -> MariaDBFeed:
    stream = Stream(*events)
    stream.crossed_crash = crossed_crash
    around = SimpleNamespace(
        relations={("d", "things"): "things"}, charsets={}, note=lambda *_: None,
        table=lambda name: THINGS, name_of=lambda *place: ".".join(place), is_durable=lambda: True,
    )  # fmt: skip
    tables = {"things": (THINGS, Doubt())}
    return MariaDBFeed("crm", stream, Place("binlog.000001", 4), tables, around)  # type: ignore[arg-type]


def rows(items) -> list[int]:
    told = [item for item in items if isinstance(item, SourceTransaction)]
    return [row[0] for item in told for change in item.changes for row in change.inserted]


def code_of(feed: MariaDBFeed) -> str:
    with pytest.raises(SourceError) as caught:
        feed.poll(0)
    return caught.value.code


def test_a_group_that_another_one_follows_before_its_end_stops_the_feed():
    feed = feed_of(*transaction(1), gtid(2), MAP, inserted(2), *transaction(3))
    assert rows(feed.poll(0)) == [1]
    assert code_of(feed) == "feed-gap"
    assert code_of(feed) == "feed-gap"


def test_a_group_that_a_file_follows_before_its_end_stops_the_feed_unless_there_was_a_crash():
    events = [*transaction(1), gtid(2), MAP, inserted(2), FORMAT, *transaction(3)]
    feed = feed_of(*events)
    assert rows(feed.poll(0)) == [1]
    assert code_of(feed) == "feed-gap"
    assert rows(feed_of(*events, crossed_crash=True).poll(0)) == [1, 3]


@pytest.mark.parametrize(
    "events",
    [
        [gtid(2, binlog.GTID_STANDALONE), statement("CREATE USER u")],
        [gtid(2, binlog.GTID_COMPLETED_XA), statement("XA COMMIT X'78',X'',1")],
        [gtid(2, binlog.GTID_PREPARED_XA), event_of(binlog.XA_PREPARE, bytes(8))],
        [gtid(2), statement("COMMIT")],
        [gtid(2), MAP, inserted(2), statement("ROLLBACK")],
    ],
)
def test_whatever_ends_a_group_in_order_lets_the_next_one_begin(events):
    assert rows(feed_of(*transaction(1), *events, *transaction(3)).poll(0)) == [1, 3]


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (UNKNOWN, "unknown-event"),
        (inserted(9), "feed-gap"),
        (event_of(binlog.GTID, b"short"), "damaged-message"),
        (SourceError("link-lost", "gone", source="crm", retryable=True), "link-lost"),
    ],
    ids=["unknown", "rows outside", "malformed", "link"],
)
def test_what_was_read_before_a_stop_is_delivered_first(stop, code):
    feed = feed_of(*transaction(1), *transaction(2), stop, *transaction(3))
    items = feed.poll(0)
    assert rows(items) == [1, 2]
    assert feed.position == items[-1].position
    assert code_of(feed) == code
    assert feed.position == items[-1].position


def test_a_place_before_a_stop_is_told_though_there_are_no_rows():
    feed = feed_of(gtid(1, binlog.GTID_STANDALONE), statement("CREATE USER u"), UNKNOWN)
    (item,) = feed.poll(0)
    assert isinstance(item, Progress)
    assert code_of(feed) == "unknown-event"
