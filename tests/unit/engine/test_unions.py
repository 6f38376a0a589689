"""Where a group ends: what lies before it and what beyond."""

from __future__ import annotations

import datetime as dt

import numpy as np

from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.engine.unions import divided, latest
from viewkeeper.live.feeds import Delivery
from viewkeeper.sources.interface import Progress, SchemaChange, SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
END = {"a": {"at": 3}, "b": {"at": 3}}


def compare(_source, left, right) -> int:
    return (left["at"] > right["at"]) - (left["at"] < right["at"])


def transaction(at: int, source: str = "a") -> SourceTransaction:
    return SourceTransaction(source, {"at": at}, at, NOW, ())


def delivery(*items, at: int, source: str = "a") -> Delivery:
    return Delivery(source, items, {"at": at}, "life", 2)


def places(part: Delivery | None) -> list[int] | None:
    return None if part is None else [item.position["at"] for item in part.items]


def test_the_latest_of_some_cuts_is_taken_source_by_source():
    cuts = [{"a": {"at": 1}, "b": {"at": 5}}, {"a": {"at": 2}}, {"b": {"at": 4}, "c": {"at": 0}}]
    assert latest(cuts, compare) == {"a": {"at": 2}, "b": {"at": 5}, "c": {"at": 0}}


def test_a_delivery_before_the_end_stays_as_it_is():
    whole = delivery(transaction(2), transaction(3), at=3)
    assert divided(whole, END, compare) == (whole, None)


def test_a_delivery_across_the_end_moves_the_feed_to_it_and_no_further():
    before, beyond = divided(delivery(transaction(2), transaction(4), at=6), END, compare)
    assert (places(before), before.position, before.generation) == ([2], {"at": 3}, 2)
    assert (places(beyond), beyond.position, beyond.generation) == ([4], {"at": 6}, 2)


def test_a_delivery_beyond_the_end_still_says_that_it_was_passed():
    before, beyond = divided(delivery(transaction(4), at=4), END, compare)
    assert (places(before), before.position) == ([], {"at": 3})
    assert places(beyond) == [4]


def test_a_schema_change_that_is_told_early_goes_with_what_follows_it():
    """SQLite tells it with the place where it was noticed, before what lies up to there."""
    change = SchemaChange("a", {"at": 5}, "r", None, None, "", False)
    items = change, transaction(2), Progress("a", {"at": 4})
    before, beyond = divided(delivery(*items, at=6), END, compare)
    assert places(before) == [5, 2]
    assert places(beyond) == [4]


def test_a_block_across_the_end_is_told_singly():
    marks = np.array([2, 3, 4])
    block = TransactionBlock("a", marks, marks, marks, lambda mark: {"at": mark}, {})
    before, beyond = divided(delivery(block, at=4), END, compare)
    assert (places(before), places(beyond)) == ([2, 3], [4])
    inside = delivery(block.between(0, 2), at=4)
    (kept,) = divided(inside, END, compare)[0].items
    assert kept is inside.items[0]


def test_a_unit_is_before_the_end_or_beyond_it_part_by_part():
    def unit(a: int, b: int) -> Unit:
        parts = (delivery(transaction(n, s), at=n, source=s) for s, n in (("a", a), ("b", b)))
        return Unit(tuple(parts), {"a": {"at": 0}})

    def told(part: Unit | None) -> list[str]:
        return [] if part is None else [each.source for each in part.parts]

    found = [list(map(told, divided(unit(*at), END, compare))) for at in ((2, 3), (4, 5), (3, 4))]
    assert found == [[["a", "b"], []], [[], ["a", "b"]], [["a"], ["b"]]]
