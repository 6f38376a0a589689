"""Values out of the log's storage format. The bytes were written down from a server's log."""

import datetime as dt
from decimal import Decimal

import pytest

from viewkeeper.algebra.types import INTEGER
from viewkeeper.sources.mariadb.codec import inet6_text, log_reader, text_decoder
from viewkeeper.sources.mariadb.columns import Column


def read(data, **column):
    value, end = log_reader(Column("c", **column))(data + b"rest", 0)
    assert end == len(data)
    return value


@pytest.mark.parametrize(
    ("data", "column", "value"),
    [
        (b"\xff\xff", {"kind": "integer", "size": 2}, -1),
        (b"\xff\xff\xff", {"kind": "integer", "size": 3, "unsigned": True}, 16777215),
        (b"\xff" * 8, {"kind": "integer", "size": 8, "unsigned": True}, Decimal(2**64 - 1)),
        (b"\x00\x05", {"kind": "bit", "size": 12}, 5),
        (b"\x78", {"kind": "year"}, 2020),
        (b"\x00", {"kind": "year"}, 0),
        (b"\x00\x00\xc0\x3f", {"kind": "float"}, 1.5),
        (b"\x02ab", {"kind": "binary", "size": 5}, b"ab\0\0\0"),
        (b"\x02\x00hi", {"kind": "char", "size": 1020, "charset": "utf8mb4"}, "hi"),
        (b"\x01\xfc", {"kind": "char", "size": 5, "charset": "latin1"}, "ü"),
        (b"\x02", {"kind": "enum", "size": 1, "labels": ("x", "ü")}, "ü"),
        (b"\x03", {"kind": "set", "size": 1, "labels": ("p", "q")}, "p,q"),
        (b"\x00\x00\x00", {"kind": "date"}, None),
        (
            b"\x99\xa5\x42\x10\x83\x11\xd0",
            {"kind": "datetime", "scale": 3},
            dt.datetime(2020, 1, 1, 1, 2, 3, 456000),
        ),
        (b"\x80\x00\x00\x05", {"kind": "decimal", "precision": 9, "scale": 0}, Decimal(5)),
        (
            b"\x7f\xff\xff\xff\xfa",
            {"kind": "decimal", "precision": 10, "scale": 2},
            Decimal("-0.05"),
        ),
    ],
)
def test_a_value_of_the_log_is_read(data, column, value):
    found = read(data, **column)
    assert (found, type(found)) == (value, type(value))


def test_latin1_is_the_servers_own():
    assert text_decoder("latin1")(bytes([0x80, 0x81, 0xE9])) == "€\x81é"


def test_an_address_is_shortened_as_the_server_does():
    assert inet6_text(bytes.fromhex("0000000100000001000000010000ffff")) == "::1:0:1:0:1:0:ffff"
    assert inet6_text(bytes.fromhex("00000000000000000000ffffc0000201")) == "::ffff:192.0.2.1"
    assert inet6_text(bytes.fromhex("00010002000300040005000600070008")) == "1:2:3:4:5:6:7:8"


@pytest.mark.parametrize(
    ("size", "kind"), [(1, int), (56, int), (57, int), (63, int), (64, Decimal)]
)
def test_bits_are_integers_up_to_where_their_type_says_so(size, kind):
    value = read(bytes((size + 7) // 8), kind="bit", size=size)
    assert type(value) is kind
    assert (Column("c", "bit", size=size).type == INTEGER) == (kind is int)
