"""Whatever a server sends: read as columns it says the same as read one by one."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slices import seeds
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import FeedItem, Progress, SourceTransaction
from viewkeeper.sources.postgres import feed as feeds
from viewkeeper.sources.postgres.catalog import described
from viewkeeper.sources.postgres.columns import NotPlain, decoded
from viewkeeper.sources.postgres.feed import PostgresFeed
from viewkeeper.sources.postgres.position import make_position, widened, widened_all
from viewkeeper.sources.postgres.shapes import TrackedRelations
from viewkeeper.sources.transaction_block import TransactionBlock, one_by_one

ORDERS, NOTES, UNKNOWN = 77, 78, 79
# What PostgreSQL prints for values of each type; the last one can't be read, and is passed over.
TEXTS = {
    "int8": st.integers(-(2**63), 2**63 - 1).map(str),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9),
    "bool": st.sampled_from("tf"),
    "numeric": st.decimals(-99_999_999, 99_999_999, places=2).map(str),
    "float8": st.sampled_from(["NaN", "-0", "0", "1.5", "-Infinity", "1e+300"]),
    "date": st.dates().map(str),
    "money": st.just("$1.00"),
}
COLUMNS = {ORDERS: ("int8", "int8", "text"), NOTES: tuple(TEXTS)}
MODIFIERS = {"numeric": (10 << 16 | 2) + 4}

Value = str | None
Row = tuple[Value, ...]


def document(oid: int, types: tuple[str, ...]) -> dict[str, object]:
    columns = [
        {
            "num": n, "name": f"c{n}", "generated": "", "oid": 1000 + n, "modifier": -1,
            "type": f"pg_catalog.{kind}", "category": "b", "element": "", "element_category": "",
            "base_modifier": MODIFIERS.get(kind, -1),
        }
        for n, kind in enumerate(types, start=1)
    ]  # fmt: skip
    return {
        "oid": oid, "schema": "public", "name": f"r{oid}", "columns": columns,
        "key": ["c1"], "children": [],
    }  # fmt: skip


def written(row: Row, before: Row | None = None) -> bytes:
    """A row; values that are in the row before as they are now were left where they are, if long."""
    found = struct.pack(">H", len(row))
    for place, value in enumerate(row):
        if value is None:
            found += b"n"
        elif before is not None and value == before[place] and len(value) > 6:
            found += b"u"
        else:
            text = value.encode()
            found += b"t" + struct.pack(">I", len(text)) + text
    return found


@dataclass(frozen=True)
class Change:
    oid: int
    old: Row | None
    new: Row | None
    leaves_long_values: bool = False

    @property
    def message(self) -> bytes:
        number = struct.pack(">I", self.oid)
        if self.old is None:
            return b"I" + number + b"N" + written(self.new or ())
        if self.new is None:
            return b"D" + number + b"O" + written(self.old)
        before = self.old if self.leaves_long_values else None
        return b"U" + number + b"O" + written(self.old) + b"N" + written(self.new, before)


def begin(xid: int) -> bytes:
    return b"B" + struct.pack(">QQI", 1, 800_000_000_000_000 + xid * 1_000, xid & 0xFFFFFFFF)


def commit(end: int) -> bytes:
    return b"C" + struct.pack(">BQQQ", 0, end - 8, end, 5)


TRUNCATE = b"T" + struct.pack(">IBI", 1, 0, ORDERS)
_SAID = json.dumps({"id": "order 5", "parts": 2}).encode()
TIE = b"M\1" + bytes(8) + feeds.TIE_PREFIX.encode() + b"\0" + struct.pack(">I", len(_SAID)) + _SAID


def changes(oid: int) -> st.SearchStrategy[Change]:
    types = COLUMNS.get(oid, ("int8",))
    rows = st.tuples(*(st.none() | TEXTS[kind] for kind in types))
    return (
        st.builds(Change, st.just(oid), st.none(), rows)
        | st.builds(Change, st.just(oid), rows, st.none())
        | st.builds(Change, st.just(oid), rows, rows, st.booleans())
        # An update after which everything is as it was.
        | rows.map(lambda row: Change(oid, row, row))
    )


some_changes = st.sampled_from([ORDERS, ORDERS, NOTES, UNKNOWN]).flatmap(changes)
messages_inside = some_changes.map(lambda change: change.message)
transactions = st.lists(messages_inside, max_size=5) | st.lists(
    messages_inside | st.sampled_from([TRUNCATE, TIE]), max_size=5
)


def streamed(scripts: list[list[bytes]]) -> list[bytes]:
    found = []
    for number, script in enumerate(scripts, start=1):
        found += [begin(2**32 - 3 + number), *script, commit(1_000 * number)]
    return found


@dataclass
class Server:
    """Sends messages in chunks, and nothing in between."""

    chunks: list[list[bytes]]
    sent_lsn: int = 0
    waits: int = field(default=0)

    def read(self, most: int) -> list[bytes]:
        if not self.chunks or not self.chunks[0]:
            return []
        found, self.chunks[0] = self.chunks[0][:most], self.chunks[0][most:]
        return found

    def wait(self, seconds: float) -> None:
        self.waits += 1
        if self.chunks and not self.chunks[0]:
            self.chunks.pop(0)


def feed_of(server: Server, monkeypatch: pytest.MonkeyPatch) -> PostgresFeed:
    relations = [described(f"r{oid}", document(oid, types)) for oid, types in COLUMNS.items()]
    tracked = TrackedRelations("shop", relations, lambda oids: {}, lambda oid, name: None)
    monkeypatch.setattr(feeds, "ReplicationStream", lambda *_, **__: server)
    monkeypatch.setattr(feeds, "LINGER_SECONDS", 0.0)
    start = make_position("system", 1, 0)
    url: object = None
    return PostgresFeed("shop", url, "slot", tracked, start, life="", xid_near=2**32 - 3)  # type: ignore[arg-type]


def delivered(
    messages: list[bytes], sizes: list[int], block_min: int, *, plainly: bool
) -> tuple[list[FeedItem | TransactionBlock], PostgresFeed]:
    chunks, left = [], messages
    for size in sizes:
        chunks.append(left[:size])
        left = left[size:]
    server = Server([*chunks, left])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeds, "BLOCK_MESSAGES_MIN", block_min)
        feed = feed_of(server, patch)
        items: list[FeedItem | TransactionBlock] = []
        poll = feed.poll if plainly else feed.poll_blocks
        while server.chunks:
            items += poll(0.0)
            server.wait(0.0)
        items += poll(0.0)  # what stopped the feed comes behind what it had read
    return items, feed


def told(items: list[FeedItem | TransactionBlock]) -> Iterator[object]:
    """What was told; in which order one transaction changed its relations is no part of it."""
    for item in one_by_one(items):
        if isinstance(item, SourceTransaction):
            yield item._replace(changes=tuple(sorted(item.changes, key=lambda c: c.relation)))
        elif not isinstance(item, Progress):
            yield item


@settings(max_examples=seeds(150, least=20), deadline=None)
@given(st.lists(transactions, max_size=12), st.lists(st.integers(0, 20), max_size=6))
def test_columns_say_the_same_as_rows(scripts: list[list[bytes]], sizes: list[int]):
    messages = streamed(scripts)
    singly, first = delivered(messages, sizes, 10**9, plainly=True)
    together, second = delivered(messages, sizes, 1, plainly=False)
    assert not any(isinstance(item, TransactionBlock) for item in singly)
    assert list(told(together)) == list(told(singly))
    assert second.position == first.position
    plain, third = delivered(messages, sizes, 1, plainly=True)
    assert list(told(plain)) == list(told(singly))
    assert third.position == first.position


def test_plain_transactions_do_come_as_columns():
    scripts = [[Change(ORDERS, None, ("1", str(n), "x")).message] for n in range(200)]
    items, _ = delivered(streamed(scripts), [], feeds.BLOCK_MESSAGES_MIN, plainly=False)
    (block,) = items
    assert isinstance(block, TransactionBlock)
    assert len(block) == 200
    assert block.changes["r77"].rows.column("c2").to_pylist() == list(range(200))


def test_a_transaction_that_comes_in_pieces_is_told_as_one():
    script = [Change(ORDERS, None, ("1", str(n), "x")).message for n in range(1_000)]
    messages = streamed([script])
    items, _ = delivered(messages, [1, 300, 300], 1, plainly=False)
    (block,) = items
    assert isinstance(block, TransactionBlock)
    assert len(block) == 1
    assert len(block.changes["r77"]) == 1_000


@pytest.mark.parametrize(
    ("row", "error"),
    [(("1", "2" * 30, "x"), "value-out-of-range"), (("1", "what", "x"), "value-out-of-range")],
)
def test_what_can_not_be_read_is_complained_about_as_ever(row: Row, error: str):
    good = [[Change(ORDERS, None, ("1", "2", "x")).message]] * 3
    messages = streamed([*good, [Change(ORDERS, None, row).message]])
    with pytest.raises(NotPlain):
        decoded(messages, decoders())
    for block_min in (1, 10**9):
        with pytest.raises(SourceError) as raised:
            delivered(messages, [], block_min, plainly=False)
        assert raised.value.code == error


def test_an_old_row_with_its_key_only_is_refused():
    message = b"U" + struct.pack(">I", ORDERS) + b"K" + written(("1",))
    for block_min in (1, 10**9):
        with pytest.raises(SourceError) as raised:
            delivered(streamed([[message]]), [], block_min, plainly=False)
        assert raised.value.code == "identity-lost"


def test_a_row_outside_a_transaction_is_no_row():
    message = Change(ORDERS, None, ("1", "2", "x")).message
    for block_min in (1, 10**9):
        with pytest.raises(SourceError) as raised:
            delivered([message, begin(5), commit(9)], [], block_min, plainly=False)
        assert raised.value.code == "feed-broken"


def decoders():
    relations = {oid: described(f"r{oid}", document(oid, t)) for oid, t in COLUMNS.items()}
    tracked = TrackedRelations("s", list(relations.values()), lambda o: {}, lambda o, n: None)
    return {oid: (each.name, each.columns) for oid, each in tracked.by_oid.items()}


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1), st.integers(2**33, 2**40))
def test_numbers_of_transactions_are_widened_together_as_one_by_one(xids: list[int], near: int):
    import numpy as np

    found = widened_all(np.asarray(xids, np.int64), near)
    assert found.tolist() == [widened(xid, near) for xid in xids]


def inserted(n: int) -> bytes:
    return Change(ORDERS, None, ("1", str(n), "x")).message


@pytest.mark.parametrize(
    "harmed",
    [
        [begin(5), inserted(1)[:-1], commit(9)],
        [begin(5), inserted(1) + b"n", commit(9)],
        [begin(5), inserted(1)[:7], commit(9)],
        [begin(5)[:-1], inserted(1), commit(9)],
        [begin(5), inserted(1), commit(9) + b"\0"],
        [begin(5), inserted(1), begin(6), inserted(2), commit(9)],
        [commit(9)],
        [begin(5), b"Y" + inserted(1)[1:], commit(9)],
        [begin(5), b"O" + inserted(1)[1:], commit(9)],
        [begin(5), TRUNCATE[:-1], commit(9)],
        [begin(5), TIE[:-1], inserted(1), commit(9)],
        [b"B" + struct.pack(">QQI", 1, 2**63 - 1, 5), inserted(1), commit(9)],
    ],
)
def test_a_harmed_message_is_named_with_its_place_in_either_way(harmed: list[bytes]):
    good = [begin(3), inserted(0), commit(0x500)]
    for block_min in (1, 10**9):
        with pytest.raises(SourceError) as raised:
            delivered([*good, *harmed], [3], block_min, plainly=False)
        error = raised.value
        assert (error.code, error.source, error.retryable) == ("damaged-message", "shop", True)
        assert "behind 0/500" in error.message


class Broken(Server):
    """The stream ends behind its chunks, having heard how far the server was."""

    def read(self, most: int) -> list[bytes]:
        found = super().read(most)
        if not found:
            self.sent_lsn = 99_000
            raise SourceError("link-lost", "gone", source="shop", retryable=True)
        return found


BAD = [Change(ORDERS, None, ("1", "what", "x")).message]


@pytest.mark.parametrize("block_min", [1, 10**9])
@pytest.mark.parametrize(
    ("server", "code"),
    [
        (lambda good: Server([streamed([*good, BAD, *good])]), "value-out-of-range"),
        (lambda good: Server([[*streamed(good), b"?what is it"]]), "feed-broken"),
        (lambda good: Server([[*streamed(good), b"C too short"]]), "damaged-message"),
        (lambda good: Broken([streamed(good)]), "link-lost"),
    ],
    ids=["value", "unknown", "malformed", "link"],
)
def test_what_was_read_before_a_stop_is_delivered_first(server, code, block_min, monkeypatch):
    good = [[Change(ORDERS, None, ("1", str(n), "x")).message] for n in range(5)]
    monkeypatch.setattr(feeds, "BLOCK_MESSAGES_MIN", block_min)
    feed = feed_of(server(good), monkeypatch)
    # Some at a time: what is left over is delivered before the stop, too.
    found: list[FeedItem] = [item for _ in range(3) for item in feed.poll(0.0, 2)]
    told_rows = [
        item.changes[0].inserted[0][1] for item in found if isinstance(item, SourceTransaction)
    ]
    assert told_rows == [0, 1, 2, 3, 4]
    # They end the position: what a broken stream had read there is lost.
    assert feed.position["lsn"] == 5_000
    for _ in range(2):
        with pytest.raises(SourceError) as raised:
            feed.poll(0.0)
        assert raised.value.code == code
    assert feed.position["lsn"] == 5_000
