"""Where a batch's transactions stand in their sources' logs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from viewkeeper.engine.integrator import Arrival, places_of
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.timeline import Transaction

NOW = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)


def at(lsn: int, timeline: int = 1, item: int = 0) -> dict[str, Any]:
    return {"system": "7", "timeline": timeline, "lsn": lsn, "item": item}


def single(number: int, source: str, position: dict[str, Any]) -> Arrival:
    origin = SourceTransaction(source, position, number, NOW, ())
    return Arrival(number, origin, Transaction(source, number, ()), 1)


def block(number: int, marks: list[int], position_of: Any) -> Arrival:
    numbers = np.asarray(marks)
    origin = TransactionBlock("shop", numbers, numbers, numbers, position_of, {})
    return Arrival(number, origin, Transaction("shop", number, (), len(marks)), 1)


def orders(found: Any) -> list[tuple[int, tuple[int, int]]]:
    return [(int(state), found.place(n).order) for n, state in enumerate(found.states)]


def test_each_transaction_has_the_state_that_it_shows_in() -> None:
    batch = [single(1, "shop", at(10)), single(2, "crm", at(7)), single(3, "shop", at(12, item=2))]
    found = places_of(batch, [0, 0, 1])
    assert found is not None
    assert orders(found["shop"]) == [(0, (10, 0)), (1, (12, 2))]
    assert orders(found["crm"]) == [(0, (7, 0))]


def test_a_block_says_what_its_transactions_would_say_one_by_one() -> None:
    marks = [20, 23, 29]
    for position_of in (at, lambda mark: at(mark // 10, item=mark % 10)):
        single_ones = [single(n, "shop", position_of(m)) for n, m in enumerate(marks, 1)]
        one_by_one = places_of(single_ones, [0, 1, 2])
        together = places_of([block(1, marks, position_of)], [0, 1, 2])
        assert one_by_one is not None
        assert together is not None
        assert orders(together["shop"]) == orders(one_by_one["shop"])
        assert together["shop"].history == one_by_one["shop"].history


def test_a_log_that_begins_anew_has_no_one_order() -> None:
    assert places_of([single(1, "shop", at(10)), single(2, "shop", at(3, 2))], [0, 1]) is None
