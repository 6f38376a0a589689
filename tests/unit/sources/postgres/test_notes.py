"""What is believed of messages and notes: nothing that has another shape than ours, and no exception for it."""

from __future__ import annotations

import copy
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.sources.postgres.catalog import described
from viewkeeper.sources.postgres.notes import Remarks, note_of, tie_of, told
from viewkeeper.sources.postgres.sifting import Sieve

OURS = "viewkeeper_src"
COLUMN = {
    "num": 1, "name": "id", "generated": "", "oid": 20, "modifier": -1, "type": "pg_catalog.int8",
    "category": "b", "element": "", "element_category": "", "base_modifier": -1,
}  # fmt: skip
TABLE = {
    "oid": 70, "schema": "public", "name": "things", "columns": [COLUMN], "key": ["id"],
    "children": [], "partial": [], "kind": "r", "persistence": "p",
}  # fmt: skip
NOTE: dict[str, Any] = {
    "tag": "ALTER TABLE", "before": TABLE, "after": TABLE, "rewritten": False,
}  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document where something could stand."""
    found = [path] if path else []
    if isinstance(document, dict):
        found += [p for key in document for p in places(document[key], (*path, key))]
    elif isinstance(document, list):
        found += [p for n, each in enumerate(document) for p in places(each, (*path, n))]
    return found


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


@given(st.sampled_from(places(NOTE)), anything)
def test_a_note_with_anything_anywhere_is_read_or_passed_over(path, value):
    note = note_of(json.dumps(put(NOTE, path, value)))
    if note is not None:
        for each in ("before", "after"):
            if note[each] is not None:
                described("things", note[each])


@given(st.binary(max_size=50) | anything.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_sent_is_no_note_and_no_tie(content):
    assert note_of(content) is None
    assert tie_of(content) is None


def test_ours_are_read():
    assert note_of(json.dumps(NOTE)) == NOTE
    assert note_of(json.dumps({**NOTE, "after": None})) is not None
    assert tie_of(b'{"id": "t", "parts": 2}') == ("t", 2)


def test_what_a_command_did_is_told_without_its_text():
    def table(*names: str, **more: Any):
        columns = [{**COLUMN, "name": n, "num": i} for i, n in enumerate(names, 1) if n]
        return described("things", {**TABLE, "columns": columns, "key": [], **more})

    before = table("a", "b")
    assert told("ALTER TABLE", before, table("a", 'c"', "d")) == (
        'ALTER TABLE things RENAME COLUMN b TO "c""", ADD COLUMN d int8'
    )
    assert told("ALTER TABLE", before, table("a", "", schema="s", name="t")) == (
        "ALTER TABLE things DROP COLUMN b, SET SCHEMA s, RENAME TO t"
    )
    assert told("DROP TABLE", before, None) == "DROP TABLE things"
    assert told("ALTER SCHEMA", before, table("a", "b", schema="s")) == (
        "ALTER SCHEMA, which changed things"
    )


# -- messages as they arrive ------------------------------------------------------------------------


def message(prefix: str, content: bytes = b"[]", *, flags: int = 1, lsn: int = 50) -> bytes:
    head = struct.pack(">cBQ", b"M", flags, lsn)
    return head + prefix.encode() + b"\0" + struct.pack(">I", len(content)) + content


def test_messages_are_dropped_before_anything_is_read_of_them():
    remarks = Remarks()
    sieve = Sieve(OURS, 0, remarks)
    rows = [b"B", b"I1", b"C"]
    flood = [
        message(OURS), message(OURS, flags=0), message("other"), message("", b""), message(OURS + "_"),
        message("viewkeeper.transaction", flags=0), b"M", b"M\1", message("viewkeeper"),
        b"M\1" + bytes(8) + b"\xff\xfe",
    ]  # fmt: skip
    assert sieve.sifted([rows[0], *flood, rows[1], *flood, rows[2]]) == rows
    assert {each.code for each in remarks.taken()} == {"message-ignored", "tie-ignored"}


def test_ties_of_transactions_without_rows_are_dropped_and_others_stay():
    remarks = Remarks()
    sieve = Sieve(OURS, 0, remarks)
    tie = message("viewkeeper.transaction")
    alone, with_row = [b"B1", tie, tie, b"C1"], [b"B2", tie, b"I2", b"C2"]
    messages = [*with_row, *alone, *with_row, *alone, b"B3", tie]
    kinds = bytearray(each[0] for each in messages)
    kept = sieve.without_lonely(messages, kinds)
    assert kept == [*with_row, b"B1", b"C1", *with_row, b"B1", b"C1", b"B3", tie]
    assert bytes(kinds) == bytes(each[0] for each in kept)
    assert [each.code for each in remarks.taken()] == ["tie-ignored"]


def test_messages_of_an_older_set_up_are_hints_up_to_the_place_where_it_ended():
    sieve = Sieve(OURS, 60, Remarks())
    heeded = message(OURS, lsn=59)
    assert sieve.sifted([heeded, message(OURS, lsn=60), message(OURS, lsn=59, flags=0)]) == [heeded]


@pytest.mark.parametrize(("count", "lines"), [(1, 1), (9, 1), (10, 2), (12_345, 5)])
def test_what_comes_by_the_thousand_takes_a_handful_of_lines(count, lines):
    remarks = Remarks()
    for _ in range(count):
        remarks.add("code", "something was passed over")
    assert len(remarks.taken()) == lines
    assert remarks.taken() == []
