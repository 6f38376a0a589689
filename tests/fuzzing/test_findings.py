"""What hostile or broken bytes did to the decoders once, each kept from coming back."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from contextlib import contextmanager

import pytest

from fuzzing import binlog as events
from fuzzing import corpus, pgoutput, wal
from viewkeeper.errors import SourceError
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.codec import log_reader
from viewkeeper.sources.mariadb.columns import Column
from viewkeeper.sources.mariadb.position import Place
from viewkeeper.sources.mariadb.prepared import _row
from viewkeeper.sources.mariadb.stream import BinlogStream
from viewkeeper.sources.postgres.backlog import _payload
from viewkeeper.sources.postgres.codec import Codec, ColumnType, codec_for
from viewkeeper.sources.postgres.pgoutput import MissingOldValue, UnreadableValue
from viewkeeper.sources.postgres.stream import ReplicationStream
from viewkeeper.sources.sqlite.commits import CommitWatch
from viewkeeper.sources.wire import READS_MAX, ByteReader, Damage, Malformed

MIB = 1 << 20


@contextmanager
def within(bytes_max):
    """No more memory than this is asked for inside."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bytes_max
    finally:
        tracemalloc.stop()


# -- PostgreSQL -----------------------------------------------------------------------------------


def row_messages():
    by_oid = {relation.described.oid: relation for relation in pgoutput.relations()}
    for message in corpus.messages("postgres"):
        relation = by_oid.get(int.from_bytes(message[1:5], "big"))
        if message[:1] in (b"I", b"U", b"D") and relation is not None:
            yield relation, message


def refused(relation, message):
    reads = {b"I": "insert", b"U": "update", b"D": "delete"}
    with pytest.raises((Malformed, UnreadableValue, MissingOldValue)):
        getattr(relation.typed, reads[message[:1]])(message)
    assert pgoutput._as_columns(relation, message) is None


def test_a_message_that_was_cut_short_is_no_row_in_either_way():
    for relation, message in list(row_messages())[::7]:
        for size in {8, len(message) // 2, len(message) - 2, len(message) - 1}:
            if 8 <= size < len(message):
                refused(relation, message[:size])


def test_a_message_with_something_behind_it_is_no_row_in_either_way():
    for relation, message in list(row_messages())[::11]:
        refused(relation, message + b"n")
        refused(relation, message + message)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 1_000_000_000])
def test_a_false_length_asks_for_no_memory(size):
    relation = pgoutput.relations()[0]
    oid = struct.pack(">I", relation.described.oid)
    message = b"I" + oid + b"N" + struct.pack(">H", 2) + b"t" + struct.pack(">I", size) + b"1"
    with within(4 * MIB):
        refused(relation, message)


def test_a_hexadecimal_number_is_none_in_either_way():
    relation = next(r for r in pgoutput.relations() if r.described.name == "v2")  # bigint
    message = relation.neighbour.replace(b"-9223372036854775808", b"0x00000000000000001F")
    assert message != relation.neighbour
    refused(relation, message)


@pytest.mark.parametrize(
    ("kind", "modifier", "text"),
    [
        ("int8", -1, b"9" * 20), ("int8", -1, b"9223372036854775808"), ("int8", -1, b"0x1F"),
        ("bool", -1, b"x"), ("bool", -1, b""), ("float8", -1, b"1_0"), ("float4", -1, b"1e300"),
        ("numeric", (10 << 16 | 2) + 4, b"abc"), ("numeric", (10 << 16 | 2) + 4, b"1.001"),
        ("numeric", (10 << 16 | 2) + 4, b"123456789.00"), ("numeric", (10 << 16 | 2) + 4, b"NaN"),
        ("numeric", (10 << 16 | 2) + 4, b"5"), ("numeric", (2 << 16 | 2) + 4, b"1.12"), ("bytea", -1, b"0102"), ("bytea", -1, b""),
        ("date", -1, b"20240101"), ("date", -1, b"2024-W01-1"), ("timestamp", -1, b"2024-01-01 00:00:00+00"),
        ("timestamptz", -1, b"2024-01-01 00:00:00"), ("timestamptz", -1, b"2024-01-01 00:00:00+02"),
    ],
)  # fmt: skip
def test_a_text_that_postgres_would_not_write_is_no_value(kind, modifier, text):
    codec = codec_for(ColumnType(f"pg_catalog.{kind}", "b", modifier))
    assert isinstance(codec, Codec)
    with pytest.raises((ValueError, ArithmeticError)):
        codec.parse(text)


@pytest.mark.parametrize(
    "message",
    [b"w", b"w" + bytes(24), b"k" + bytes(3), b"k" + bytes(30), b"?" + bytes(40)],
)
def test_what_is_neither_payload_nor_keepalive_is_refused(message):
    class Sent:
        def get_copy_data(self, _):
            return len(message), memoryview(message)

    stream = ReplicationStream.__new__(ReplicationStream)
    stream._pq, stream._backlog, stream._unanswered_since = Sent(), None, None
    with pytest.raises(Malformed):
        stream.read(1)


@pytest.mark.parametrize(
    "line", [b"", b"\0\1", b"\0\1\0\0\0\5abc", b"\0\2\0\0\0\3abc", b"\0\1\0\0\0\0"]
)
def test_a_line_of_the_backlog_is_as_long_as_it_says(line):
    with pytest.raises(Malformed):
        _payload(memoryview(line))
    assert _payload(memoryview(b"\0\1\0\0\0\3abc")) == b"abc"


# -- MariaDB --------------------------------------------------------------------------------------


def bomb(declared, size):
    """A compressed insertion that says it has so many bytes, and has as many."""
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()
    body = bytes(8) + b"\2\3" + b"\x84" + struct.pack(">I", declared) + rows
    return events.sealed(166, body)


@pytest.mark.parametrize("declared", [100, 64 * MIB - 1, 2**31])
def test_a_compressed_event_grows_no_further_than_it_says_and_than_is_allowed(declared):
    event = bomb(declared, 64 * MIB)
    with within(min(declared, binlog.EVENT_BYTES_MAX) * 2 + 4 * MIB), pytest.raises(Malformed):
        binlog.parse_event(event)


def test_a_compressed_event_that_says_too_much_is_refused_before_it_is_opened():
    with within(4 * MIB), pytest.raises(binlog.TooLarge):
        binlog.parse_event(events.sealed(166, bytes(8) + b"\2\3\x84\x40\0\0\0"))


def test_an_event_that_was_cut_short_and_sealed_again_is_no_row():
    for pair in events.pairs()[::5]:
        if pair.rows[4] not in binlog.ROW_EVENTS:
            continue
        body = pair.rows[19:-4]
        _, whole = events.decoded(pair.table_map, pair.rows)
        for size in (len(body) - 1, len(body) - 2, len(body) // 2, 9):
            try:
                _, images = events.decoded(pair.table_map, events.sealed(pair.rows[4], body[:size]))
            except Malformed:
                continue
            # Cut between two rows: an event of fewer rows is one, too.
            assert images == whole[: len(images)]
            assert len(images) < len(whole)
        with pytest.raises(Malformed):
            events.decoded(pair.table_map, events.sealed(pair.rows[4], body + b"\0"))


def test_rows_without_columns_do_not_go_on_for_ever():
    event = events.event_of(23, bytes(8) + b"\0" + b"more")
    with pytest.raises(Malformed):
        binlog.row_images(event, (), ())
    with pytest.raises(Malformed):
        binlog.parse_table_map(bytes(8) + b"\1d\0\1t\0" + b"\0\0")


def test_an_update_without_its_new_row_is_refused():
    reader = log_reader(Column("id", "integer", 1))
    event = events.event_of(24, bytes(8) + b"\1\1\1" + b"\0\7")
    with pytest.raises(Malformed, match="without a new one"):
        binlog.row_images(event, (reader,), (0,))


@pytest.mark.parametrize(
    ("column", "data"),
    [
        (Column("v", "bit", 60), b"\xff" * 8),
        (Column("v", "decimal", precision=10, scale=2), b"\x80text"),
        (Column("v", "time", scale=6), b"\xff" * 6),
        (Column("v", "datetime", scale=6), b"\x80\0\0\0\0\xff\xff\xff"),
        (Column("v", "timestamp", scale=6), b"\0\0\0\1\xff\xff\xff"),
        (Column("v", "enum", 1, labels=("a", "b")), b"\3"),
        (Column("v", "set", 1, labels=("a", "b")), b"\4"),
        (Column("v", "uuid", 16), b"\x11" + bytes(17)),
        (Column("v", "inet6", 16), b"\x11" + bytes(17)),
        (Column("v", "varchar", 300), b"\xff"),
        (Column("v", "integer", 8), b"\1\2\3"),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
def test_a_value_past_its_type_or_its_event_is_refused(column, data):
    event = events.event_of(23, bytes(8) + b"\1\1" + b"\0" + data)
    with pytest.raises(Malformed):
        binlog.row_images(event, (log_reader(column),), (0,))


def test_a_key_of_a_column_that_is_not_there_is_refused():
    body = bytes(8) + b"\1d\0\1t\0" + b"\1\x08\0\0" + b"\x08\1\x05"
    with pytest.raises(Malformed, match="key"):
        binlog.parse_table_map(body)


def test_a_decimal_of_too_many_digits_is_stepped_over_and_the_rest_of_its_row_read():
    """It ended the feed of a table that has one with a UsageError."""
    names = b"\4\6\2id\2no"
    table = bytes(8) + b"\1d\0\1t\0" + b"\2\xf6\3" + b"\2\x2e\x26" + b"\0" + names
    rows = bytes(8) + b"\2\3" + b"\0" + bytes(21) + b"\7\0\0\0"
    layout, images = events.decoded(events.sealed(19, table), events.sealed(23, rows))
    assert list(layout.table.schema.refused) == ["id"]
    assert images == [(7,)]


def test_an_answer_that_was_cut_short_is_no_row():
    masks = [(log_reader(Column("id", "integer", 8)), 4)]
    assert _row(b"\0\0" + struct.pack("<q", 5), 2, masks) == (5,)
    for packet in (b"", b"\0", b"\0\0\1", b"\0\0" + bytes(9), b"\7\0" + bytes(8)):
        with pytest.raises(Malformed):
            _row(packet, 2, masks)


def stream_of(packets, damage):
    stream = BinlogStream.__new__(BinlogStream)
    stream._source, stream._doing, stream._damage, stream._ahead = "crm", "read", damage, None
    stream.file, stream.offset, stream.born, stream._start = "binlog.000007", 4, 0, Place("", 4)
    stream._buffer = bytearray()
    for packet in packets:
        stream._buffer += len(packet).to_bytes(3, "little") + b"\0" + packet
    stream._at, stream._parts = 0, b""
    return stream


def test_a_flipped_bit_is_read_again_and_stops_the_source_by_name_if_it_stays():
    damage = Damage("crm")
    good = corpus.events()[0]
    for read in range(1, READS_MAX + 1):
        packet = b"\0" + good[:30] + bytes([good[30] ^ 1]) + good[31:]
        with pytest.raises(SourceError) as caught:
            stream_of([packet], damage).next(0)
        error = caught.value
        assert (error.code, error.source) == ("damaged-message", "crm")
        assert error.retryable == (read < READS_MAX)
        assert "binlog.000007:4" in error.message
        assert "checksum" in error.detail
    assert "rebuild --source crm" in error.hint
    assert stream_of([b"\0" + good], damage).next(0).type == binlog.FORMAT


def test_an_empty_packet_ends_the_stream_by_name():
    with pytest.raises(SourceError) as caught:
        stream_of([b""], Damage("crm")).next(0)
    assert caught.value.retryable


def test_an_event_of_too_many_packets_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(binlog, "EVENT_BYTES_MAX", 20_000_000)
    stream = stream_of([b"\0" * 0xFFFFFF, b"\0" * 0xFFFFFF], Damage("crm"))
    with pytest.raises(SourceError) as caught:
        stream.next(0)
    assert (caught.value.code, caught.value.retryable) == ("event-too-large", False)


# -- SQLite ---------------------------------------------------------------------------------------


def ends_of(content, name="sqlite-512"):
    told = corpus.facts("sqlite")["histories"][name]
    with wal._copy(name, content) as path:
        return CommitWatch(path, bytes.fromhex(told["history"])).ends(told["clock_page"], 2**62)


@pytest.mark.parametrize("page_size", [0, 1, 511, 3 << 10, 1 << 17, 1 << 31, 2**32 - 8])
def test_a_false_page_size_is_no_log_and_asks_for_no_memory(page_size):
    content = corpus.content("sqlite-512.wal")
    content = content[:8] + struct.pack(">I", page_size) + content[12:]
    with within(4 * MIB):
        assert ends_of(content) == []
        assert ends_of(wal.resealed(content)) == []


def test_a_flipped_bit_moves_no_end_of_a_transaction():
    """Also in the mark that says which frame is the last of a commit."""
    content, told = (
        corpus.content("sqlite-512.wal"),
        corpus.facts("sqlite")["histories"]["sqlite-512"],
    )
    assert ends_of(content) == told["ends"]
    for frame in range((len(content) - 32) // 536):
        for place in (0, 3, 4, 7, 8, 16, 24, 300):
            at = 32 + frame * 536 + place
            harmed = content[:at] + bytes([content[at] ^ 0x80]) + content[at + 1 :]
            found = ends_of(harmed)
            assert found == told["ends"][: len(found)], (frame, place)


# -- the reader of all ----------------------------------------------------------------------------


def test_a_reader_takes_nothing_past_its_end_and_leaves_nothing():
    reader = ByteReader(b"\1\2\3", "little")
    assert reader.number(2) == 0x201
    for size in (2, -1, 2**60):
        with pytest.raises(Malformed):
            reader.take(size)
    with pytest.raises(Malformed):
        reader.finish()
    for data in (b"\xfb", b"\xff", b"\xfc\1", b"\xfe\1\1"):
        with pytest.raises(Malformed):
            ByteReader(data, "little").length_coded()
    with pytest.raises(Malformed):
        ByteReader(b"abc", "big").terminated()
    with pytest.raises(Malformed):
        ByteReader(b"\xff\0", "big").terminated()


@pytest.mark.parametrize(("kind", "seconds"), [("datetime", 5), ("timestamp", 4), ("time", 3)])
def test_a_fraction_has_no_more_digits_than_its_column(kind, seconds):
    # Found after three CPU minutes: DATETIME(3) with 462.6 milliseconds, which the server would show as 462.
    read = log_reader(Column("v", kind, scale=3))
    at_zero = {
        "datetime": 0x80_0000_0000 + ((2020 * 13 + 1) << 22) + (1 << 17),
        "timestamp": 1,
        "time": 0x80_0000,
    }[kind]
    for fraction, is_right in ((4620, True), (4626, False)):
        data = at_zero.to_bytes(seconds, "big") + fraction.to_bytes(2, "big")
        if is_right:
            assert "462" in str(read(data, 0)[0])
        else:
            with pytest.raises(Malformed, match="more than 3 digits"):
                read(data, 0)
