"""Fingerprints of bags: order, files and splitting of counts do not matter, and everything else does."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.warehouse.fingerprints import MODULUS, fingerprint

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("t", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("b", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("x", pa.float64()),
        ("yes", pa.bool_()),
        ("_count", pa.int64()),
    ]
)
ROWS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(alphabet="ab\x00né", max_size=4),
    st.none() | st.decimals(-100, 100, places=2),
    st.none() | st.binary(max_size=3),
    st.none() | st.dates(),
    st.none()
    | st.datetimes(min_value=dt.datetime(1900, 1, 1)).map(lambda d: d.replace(tzinfo=dt.UTC)),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.booleans(),
    st.integers(-3, 3),
)


def table(rows: list[tuple]) -> pa.Table:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=SCHEMA)


@given(st.lists(ROWS, max_size=8), st.lists(ROWS, max_size=8))
def test_the_number_of_a_sum_is_the_sum_of_the_numbers_in_any_order(left, right):
    whole = fingerprint(table(left + right))
    assert whole == (fingerprint(table(left)) + fingerprint(table(right))) % MODULUS
    assert whole == fingerprint(table((left + right)[::-1]))


@given(st.lists(ROWS, min_size=1, max_size=6), st.data())
def test_a_changed_value_or_count_shows(rows, data):
    place = data.draw(st.integers(0, len(rows) - 1))
    other = data.draw(ROWS)
    changed = [*rows[:place], other, *rows[place + 1 :]]
    same = _bag(rows) == _bag(changed)
    assert (fingerprint(table(rows)) == fingerprint(table(changed))) == same


def _bag(rows: list[tuple]) -> dict[tuple, int]:
    found: dict[tuple, int] = {}
    for *row, count in rows:
        key = tuple(
            value.quantize(Decimal("0.01"))
            if isinstance(value, Decimal)
            else (type(value), str(value))
            for value in row
        )
        found[key] = found.get(key, 0) + count
    return {row: count for row, count in found.items() if count}


def test_columns_are_told_apart_and_an_empty_bag_is_zero():
    assert fingerprint(table([])) == 0
    one = table([(1, "a", None, None, None, None, None, None, 1)])
    assert fingerprint(one) != fingerprint(
        one.rename_columns(SCHEMA.names).select(
            ["t", "n", "d", "b", "day", "at", "x", "yes", "_count"]
        )
    )
