"""Declared types, and values that are none of them."""

import datetime as dt
from decimal import Decimal

import pytest

from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Type,
    decimal_type,
)
from viewkeeper.sources.sqlite.codec import Misfit, column_type, decode_column, encode_key


@pytest.mark.parametrize(
    ("declared", "type"),
    [
        ("INTEGER", INTEGER),
        ("unsigned big int", INTEGER),
        ("FLOATING POINT", INTEGER),  # SQLite finds INT in POINT
        ("varchar(255)", STRING),
        ("CLOB", STRING),
        ("BLOB", BINARY),
        ("double precision", DOUBLE),
        ("bool", BOOLEAN),
        ("Decimal( 10 , 2 )", decimal_type(10, 2)),
        ("NUMERIC(5)", decimal_type(5, 0)),
        ("DATE", DATE),
        ("timestamp", LOCAL_TIMESTAMP),
        ("timestamp  with time zone", TIMESTAMP),
    ],
)
def test_a_declared_type_is_read_as_sqlite_itself_would_take_it(declared, type):
    assert column_type(declared) == type


@pytest.mark.parametrize("declared", ["", "ANY", "NUMERIC", "DECIMAL(39,2)", "JSON", "STRING"])
def test_a_type_that_says_too_little_is_refused_with_a_reason(declared):
    reason = column_type(declared)
    assert isinstance(reason, str)
    assert len(reason) > 10


@pytest.mark.parametrize(
    ("values", "type", "wrong"),
    [
        ([1, None, "2"], INTEGER, 2),
        ([1, 2.0], INTEGER, 1),
        (["a", b"b"], STRING, 1),
        ([b"a", "b"], BINARY, 1),
        ([1.0, 1], DOUBLE, 1),
        ([0, 1, 2], BOOLEAN, 2),
        ([1.5, 1.234], decimal_type(10, 2), 1),
        ([99.5, 100], decimal_type(4, 2), 1),
        ([float("inf")], decimal_type(4, 2), 0),
        (["2024-01-01", "2024-1-1"], DATE, 1),
        (["2024-02-30"], DATE, 0),
        (["2024-01-01 10:00", "2024-01-01 10:00Z"], LOCAL_TIMESTAMP, 1),
        (["2024-01-01 10:00Z", "2024-01-01 10:00"], TIMESTAMP, 1),
    ],
)
def test_the_first_value_of_another_kind_is_named(values, type, wrong):
    with pytest.raises(Misfit) as caught:
        decode_column(values, type)
    assert (caught.value.index, caught.value.value) == (wrong, values[wrong])


@pytest.mark.parametrize(
    ("stored", "type", "expected"),
    [
        (0.1, decimal_type(10, 2), "0.10"),
        (-0.0, decimal_type(10, 2), "0.00"),
        (123456789012.34, decimal_type(20, 4), "123456789012.3400"),
        (1e20, decimal_type(38, 0), "100000000000000000000"),
        (2**62, decimal_type(38, 2), f"{2**62}.00"),
    ],
)
def test_a_decimal_is_the_text_that_was_written(stored, type, expected):
    assert [str(v) for v in decode_column([stored], type)] == [expected]


def test_a_key_is_bound_as_it_is_stored():
    assert encode_key(Decimal("3.00")) == 3
    assert encode_key(Decimal("0.10")) == 0.1
    assert encode_key(dt.date(2024, 1, 2)) == "2024-01-02"


def test_decoding_gives_canonical_values():
    assert decode_column([1, 0, None], BOOLEAN) == [True, False, None]
    (zero,) = decode_column([-0.0], Type(DOUBLE.kind))
    assert str(zero) == "0.0"
    (instant,) = decode_column(["2024-07-01T12:00:00.5+02:00"], TIMESTAMP)
    assert instant == dt.datetime(2024, 7, 1, 10, 0, 0, 500_000, dt.UTC)
