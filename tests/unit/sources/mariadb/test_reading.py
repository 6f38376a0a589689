"""Keys as JSON parameters of bounded size."""

import json
from decimal import Decimal

import pyarrow as pa

from viewkeeper.sources.mariadb.reading import CHUNK_BYTES_MAX, chunks, distinct_keys


def test_keys_come_once_and_without_nulls():
    keys = pa.table({"a": [1, 1, None, 2], "b": ["x", "x", "y", None]})
    assert distinct_keys(keys) == [(1, "x")]


def test_no_keys_make_no_question():
    assert list(chunks([])) == []


def test_every_key_is_in_exactly_one_chunk_and_no_chunk_is_too_large():
    keys = [(n, "🦊" * 5000) for n in range(600)]
    found = list(chunks(keys))
    assert len(found) > 1
    assert all(len(text.encode()) <= CHUNK_BYTES_MAX for text, _ in found)
    assert sorted(key for _, members in found for key in members) == keys
    assert [tuple(key) for text, _ in found for key in json.loads(text)] == keys


def test_values_without_a_json_form_go_as_text():
    [(text, members)] = chunks([(Decimal("1.50"), b"\x00'", float("nan"))])
    assert json.loads(text) == [["1.50", "0027", None]]
    assert len(members) == 1
