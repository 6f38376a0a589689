"""A store finds exactly the rows that a plain search would, whatever was folded and whatever is NULL."""

from __future__ import annotations

import decimal
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slices import seeds
from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.live.questions import stores
from viewkeeper.live.questions.stores import StoreTable
from viewkeeper.spark.arrow import table_of

SCHEMA = Schema.of(a=INTEGER, b=STRING, c=DOUBLE)
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(-2, 2)),
    st.one_of(st.none(), st.sampled_from(["", "x", "y|z"])),
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("inf")])),
)
SIGNED = st.lists(st.tuples(ROWS, st.sampled_from([-1, 1, 2])), max_size=12)
KEYS = st.sampled_from([("a",), ("b",), ("c",), ("a", "b"), ("b", "a", "c")])


@settings(max_examples=seeds(150, least=20), deadline=None)
@given(base=SIGNED, changes=st.lists(SIGNED, max_size=4), columns=KEYS, wanted=SIGNED)
@pytest.mark.parametrize("overlay_max", [0, 1000])
def test_rows_by_key_are_those_of_a_plain_search(
    monkeypatch_module, overlay_max, base, changes, columns, wanted
):
    monkeypatch_module.setattr(stores, "OVERLAY_ROWS_MIN", overlay_max)
    contents = Bag.signed(SCHEMA, base)
    table = StoreTable(SCHEMA, table_of(SCHEMA, contents))
    places = [SCHEMA.position(name) for name in columns]
    key_schema = Schema(tuple(SCHEMA.fields[place] for place in places))
    keys = Bag.signed(key_schema, [(tuple(r[p] for p in places), 1) for r, _ in wanted])
    for change in changes:
        table.rows(columns, keys)  # an index that is there must learn of what comes
        numbered = [((*row, 7), count) for row, count in change]
        table.change(Bag.signed(Schema((*SCHEMA.fields, *Schema.of(t=INTEGER).fields)), numbered))
        contents = contents + Bag.signed(SCHEMA, change)
    among = {key for key, _ in keys}
    expected = [(r, n) for r, n in contents if tuple(r[p] for p in places) in among]
    assert table.rows(columns, keys) == Bag.signed(SCHEMA, expected)
    assert table.all_rows() == contents


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def test_decimals_and_many_rows_are_found_through_hashes():
    schema = Schema.of(price=decimal_type(12, 2), name=STRING)
    rows = [((decimal.Decimal(price), f"n{price % 7}"), 1) for price in range(5000)]
    table = StoreTable(schema, table_of(schema, Bag.signed(schema, rows)))
    key_schema = Schema.of(name=STRING)
    found = table.rows(("name",), Bag.signed(key_schema, [(("n3",), 1)]))
    counted = Counter(row[1] for row, _ in found)
    assert counted == {"n3": len([p for p in range(5000) if p % 7 == 3])}
