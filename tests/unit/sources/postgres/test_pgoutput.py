import contextlib
import datetime as dt
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.sources.postgres import pgoutput
from viewkeeper.sources.postgres.codec import ColumnType, codec_for
from viewkeeper.sources.postgres.pgoutput import (
    MissingOldValue,
    TupleDecoder,
    UnreadableValue,
    decode_relation,
)
from viewkeeper.sources.wire import Malformed


def tuple_of(*values):
    """A tuple as the stream has it: bytes for text, None for NULL, ... for an unchanged value."""
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is ...:
            parts.append(b"u")
        else:
            parts.append(b"t" + struct.pack(">I", len(value)) + value)
    return b"".join(parts)


def insert(*values):
    return b"I" + struct.pack(">I", 7) + b"N" + tuple_of(*values)


def update(old, new, mark=b"O"):
    return b"U" + struct.pack(">I", 7) + mark + tuple_of(*old) + b"N" + tuple_of(*new)


DECODER = TupleDecoder([int, bytes.decode])


def test_an_inserted_row_is_parsed_and_null_is_not_the_empty_string():
    assert DECODER.insert(insert(b"12", b"")) == (12, "")
    assert DECODER.insert(insert(None, None)) == (None, None)


def test_an_unchanged_toast_value_is_taken_from_the_old_row():
    old, new = DECODER.update(update((b"1", b"very long"), (b"2", ...)))
    assert (old, new) == ((1, "very long"), (2, "very long"))


def test_an_unchanged_value_without_an_old_row_is_an_error():
    with pytest.raises(MissingOldValue):
        DECODER.insert(insert(b"1", ...))


@pytest.mark.parametrize("mark", [b"K", b"N"])
def test_an_update_without_its_whole_old_row_is_an_error(mark):
    with pytest.raises(MissingOldValue):
        DECODER.update(update((b"1", None), (b"2", b"x"), mark))


def test_a_delete_gives_its_old_row_or_an_error():
    message = b"D" + struct.pack(">I", 7) + b"O" + tuple_of(b"5", b"x")
    assert DECODER.delete(message) == (5, "x")
    with pytest.raises(MissingOldValue):
        DECODER.delete(message.replace(b"O", b"K", 1))


def test_columns_without_a_parser_are_skipped_whatever_they_hold():
    decoder = TupleDecoder([None, int, None])
    for skipped in (None, ..., b"anything"):
        assert decoder.insert(insert(skipped, b"5", skipped)) == (5,)


def test_a_value_that_can_not_be_parsed_says_which_column_it_was():
    decoder = TupleDecoder([None, bytes.decode, int])
    with pytest.raises(UnreadableValue) as caught:
        decoder.insert(insert(b"x", b"y", b"infinity"))
    assert (caught.value.column, caught.value.text) == (1, b"infinity")


def test_begin_and_commit_carry_their_places():
    begin = b"B" + struct.pack(">QQI", 99, 86_400_000_000, 4_000_000_000)
    assert pgoutput.decode_begin(begin) == (86_400_000_000, 4_000_000_000, 99)
    assert pgoutput.moment(86_400_000_000).isoformat() == "2000-01-02T00:00:00+00:00"
    assert pgoutput.end_of_commit(b"C" + struct.pack(">BQQQ", 0, 99, 120, 0)) == 120


@given(st.integers(0, 60 * 365 * 86_400 * 1_000_000))
def test_a_moment_is_exact_to_the_microsecond(microseconds: int):
    since = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
    assert pgoutput.moment(microseconds) == since + dt.timedelta(microseconds=microseconds)


def test_a_relation_is_described_with_its_columns():
    columns = b"".join(
        b"\x01" + name + b"\0" + struct.pack(">Ii", oid, modifier)
        for name, oid, modifier in ((b"id", 20, -1), ("größe".encode(), 1700, 655366))
    )
    payload = b"R" + struct.pack(">I", 77) + b"\0th\0f" + struct.pack(">H", 2) + columns
    relation = pgoutput.decode_relation(payload)
    assert (relation.oid, relation.namespace, relation.name) == (77, "pg_catalog", "th")
    assert relation.identity == "f"
    assert [c.name for c in relation.columns] == ["id", "größe"]
    assert relation.columns[1].modifier == 655366


def test_truncates_and_messages_are_decoded():
    truncate = b"T" + struct.pack(">IBII", 2, 0, 11, 12)
    assert pgoutput.decode_truncate(truncate).oids == (11, 12)
    message = b"M\x01" + struct.pack(">Q", 5) + b"prefix\0" + struct.pack(">I", 2) + b"{}"
    decoded = pgoutput.decode_message(message)
    assert (decoded.transactional, decoded.prefix, decoded.content) == (True, "prefix", b"{}")


KINDS = ("int8", "text", "float8", "bool", "numeric", "timestamp", "bytea", None)
SAID = st.one_of(
    st.sampled_from([
        b"t", b"f", b"0", b"-7", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809",
        b"999999999999999999", b"1.50", b"-0.00", b"NaN", b"Infinity", b"1e999", b"1_0", b" 1", b"0x1F",
        b"2024-02-29 12:00:00", b"2024-02-29 12:00:00.5", b"2024-02-29T12:00:00", b"2024-02-29",
        "2024-02-29é12:00:00".encode(), b"2024-02-29 12:00:00+00", b"\\x00ff", b"\\x0", b"\\x0 0", b"\xff",
    ]),
    st.binary(max_size=25),
)  # fmt: skip
VALUE = st.one_of(
    SAID.map(lambda text: b"t" + len(text).to_bytes(4, "big") + text),
    st.sampled_from([b"n", b"u", b"x", b"b\0\0\0\1a", b"t", b"t\0\0", b"t\xff\xff\xff\xff", b""]),
)


def outcome(decode, *given):
    try:
        row, end = decode(*given)
        return repr(row), end
    except (Malformed, ValueError) as error:
        return type(error), str(error)


@settings(max_examples=1500, deadline=None)
@given(st.data())
def test_rows_that_are_read_quickly_are_those_that_are_read_carefully(data):
    """The two must agree on every row, and on what is wrong with it."""
    kinds = data.draw(st.lists(st.sampled_from(KINDS), max_size=5))
    parsers = [
        k and codec_for(ColumnType(f"pg_catalog.{k}", "b", (10 << 16 | 2) + 4)).parse for k in kinds
    ]
    decoder = TupleDecoder(parsers)
    payload = (
        bytes(8) + b"".join(data.draw(VALUE) for _ in kinds) + data.draw(st.binary(max_size=3))
    )
    old = data.draw(st.none() | st.just(tuple(range(sum(k is not None for k in kinds)))))
    careful = outcome(decoder._carefully, payload, 8, old)
    assert outcome(decoder._tuple, payload, 8, old) == careful
    # And what the quick one says, it does not say of a row in which something is wrong.
    with contextlib.suppress(ValueError, ArithmeticError, IndexError, struct.error):
        row, end = decoder._quickly(payload, 8, old)
        assert (repr(row), end) == careful


def test_a_relation_of_more_columns_than_there_can_be_is_refused():
    def relation(count):
        columns = b"\0c\0" + (20).to_bytes(4, "big") + b"\xff" * 4
        return b"R" + bytes(4) + b"public\0t\0f" + count.to_bytes(2, "big") + columns * count

    assert len(decode_relation(relation(1_600)).columns) == 1_600
    with pytest.raises(Malformed, match="1601 columns"):
        decode_relation(relation(1_601))
