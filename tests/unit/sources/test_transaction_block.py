"""A block and its transactions are two ways to say the same."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER
from viewkeeper.arrow import arrow_schema
from viewkeeper.sources.interface import Progress, RelationChange, SourceTransaction
from viewkeeper.sources.transaction_block import ChangedRows, TransactionBlock, one_by_one

SCHEMA = Schema.of(value=INTEGER)
RELATIONS = ("a", "b", "c")
# For each transaction: the rows that it takes out of each relation, and puts in.
rows = st.lists(st.integers(0, 9), max_size=3)
script = st.dictionaries(st.sampled_from(RELATIONS), st.tuples(rows, rows), min_size=1).filter(
    lambda changed: any(out or new for out, new in changed.values())
)
scripts = st.lists(script, min_size=1, max_size=8)
Script = dict[str, tuple[list[int], list[int]]]


def position_of(mark: int) -> dict[str, int]:
    return {"at": mark}


def block_of(changed: list[Script], source: str = "s", first: int = 1) -> TransactionBlock:
    """A transaction block that do this, with identities and places from ``first`` on."""
    changes = {}
    for relation in RELATIONS:
        signed = [
            (place, value, count)
            for place, each in enumerate(changed)
            for values, count in zip(each.get(relation, ([], [])), (-1, 1), strict=True)
            for value in values
        ]
        if signed:
            places, values, counts = zip(*signed, strict=True)
            table = pa.table([pa.array(values, pa.int64())], schema=arrow_schema(SCHEMA))
            changes[relation] = ChangedRows(SCHEMA, table, np.array(places), np.array(counts))
    numbers = np.arange(first, first + len(changed))
    return TransactionBlock(source, numbers, numbers * 1_000_000, numbers, position_of, changes)


def transactions_of(changed: list[Script], source: str = "s") -> list[SourceTransaction]:
    return [
        SourceTransaction(
            source,
            {"at": number},
            number,
            dt.datetime.fromtimestamp(number, dt.UTC),
            tuple(
                RelationChange(relation, [(v,) for v in each[relation][0]], [(v,) for v in each[relation][1]])
                for relation in RELATIONS
                if relation in each and any(each[relation])
            ),
        )
        for number, each in enumerate(changed, start=1)
    ]  # fmt: skip


@given(scripts)
def test_a_block_has_its_transactions(changed: list[Script]):
    block = block_of(changed)
    assert block.transactions() == transactions_of(changed)
    assert block.position == {"at": len(changed)}
    assert block.committed_at == transactions_of(changed)[-1].committed_at


@given(scripts, st.data())
def test_a_part_of_a_block_is_the_block_of_a_part(changed: list[Script], data: st.DataObject):
    start = data.draw(st.integers(0, len(changed) - 1))
    end = data.draw(st.integers(start + 1, len(changed)))
    part = block_of(changed).between(start, end)
    assert part.transactions() == transactions_of(changed)[start:end]
    assert len(part) == end - start


@given(scripts, st.sets(st.sampled_from(RELATIONS)))
def test_transactions_that_change_none_of_some_relations_are_left_out(
    changed: list[Script], names: set[str]
):
    found = block_of(changed).touching(names)
    expected = [
        transaction
        for transaction in transactions_of(changed)
        if any(change.relation in names for change in transaction.changes)
    ]
    assert (found.transactions() if found is not None else []) == expected


@given(scripts)
def test_relations_that_one_transaction_changes_are_known(changed: list[Script]):
    expected = {frozenset(c.relation for c in t.changes) for t in transactions_of(changed)}
    assert block_of(changed).relations_together() == expected


@given(scripts)
def test_items_are_told_one_by_one(changed: list[Script]):
    progress = Progress("s", {"at": 0})
    assert list(one_by_one([progress, block_of(changed)])) == [
        progress,
        *transactions_of(changed),
    ]
