"""What is not shown yet, and how old it is."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import numpy as np

from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.live.feeds import Delivery
from viewkeeper.live.standing import Standing, combined, committed_in
from viewkeeper.reports.standing import age_seconds, approval_of
from viewkeeper.sources.interface import Progress, RelationChange, SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.definition import RelationName

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
ORDERS = RelationName("shop", "orders")


def after(seconds: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=seconds)


def committed(relation: str, seconds: float) -> SourceTransaction:
    change = RelationChange(relation, (), ((1,),))
    return SourceTransaction("shop", {"at": 1}, 1, after(seconds), (change,))


def test_what_is_only_on_its_way_is_not_told():
    found = Standing({"a": after(-0.5), "b": after(-3), "c": None}, {"shop": after(-0.5)})
    late = found.late(NOON)
    assert late.views == {"a": None, "b": after(-3), "c": None}
    assert late.sources == {}


def test_groups_are_told_together_and_the_older_moment_of_a_source_counts():
    change = {"id": "7", "views": ["b"]}
    found = combined(
        [
            Standing({"a": None}, {"shop": after(-1)}),
            Standing({"b": after(-9)}, {"shop": after(-9)}, (change,)),
        ]
    )
    assert found == Standing({"a": None, "b": after(-9)}, {"shop": after(-9)}, (change,))
    told = found.as_event().as_fields()
    assert approval_of(told, "b") == change
    assert approval_of(told, "a") is None
    assert age_seconds(told["views"]["b"], NOON) == 9.0
    assert age_seconds(told["views"]["a"], NOON) == 0.0


def test_a_message_that_no_group_has_read_counts_by_its_oldest_transaction():
    items = (committed("other", -90), committed("orders", -4), committed("orders", -2))
    delivery = Delivery("shop", (Progress("shop", {"at": 0}), *items), {"at": 1}, "")
    assert committed_in(delivery, [ORDERS]) == {"shop": after(-4)}
    assert committed_in(Unit((delivery,)), [ORDERS]) == {"shop": after(-4)}
    assert committed_in(None, [ORDERS]) == {}


def test_a_block_counts_by_its_oldest_transaction():
    micros = np.asarray([after(s).timestamp() * 1e6 for s in (-8, -30, -5)], np.int64)
    numbers = np.arange(3)
    changes = {"orders": SimpleNamespace(places=numbers)}
    block = TransactionBlock("shop", numbers, micros, numbers, lambda mark: {"at": mark}, changes)
    assert committed_in(Delivery("shop", (block,), {"at": 1}, ""), [ORDERS]) == {"shop": after(-30)}
