"""What a cut reflects of what waits, and which feeds are behind one."""

from __future__ import annotations

import numpy as np
import pytest

from unit.engine.small_group import SmallGroup
from viewkeeper.engine import cuts as cut_rules
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.transaction_block import TransactionBlock


class TwoToFour:
    """A cut that shows the transactions 2 to 4."""

    @staticmethod
    def reflects_each(transactions):
        return [2 <= each.identity <= 4 for each in transactions]

    @staticmethod
    def reflects_block(block):
        return [2 <= mark <= 4 for mark in block.marks]


def hidden_middle() -> SmallGroup:
    """Three transactions of s, of which cuts do not show the second."""
    group = SmallGroup()
    for is_hidden in (False, True, False):
        group.write("s", is_hidden=is_hidden)
    group.deliver("s")
    return group


def test_a_cut_reflects_a_beginning_of_what_waits_and_some_that_follow():
    group = hidden_middle()
    found = cut_rules.reflected(group.snapshots(), group.state.intake, {"s": 0, "t": 0})
    assert found == {"s": Reflected(1, also=frozenset({3})), "t": Reflected(0)}


def test_numbers_go_on_behind_what_is_applied():
    group = hidden_middle()
    found = cut_rules.reflected(group.snapshots(), group.state.intake, {"s": 10, "t": 4})
    assert found == {"s": Reflected(11, also=frozenset({13})), "t": Reflected(4)}


def test_blocks_and_single_transactions_are_told_in_their_order():
    group = SmallGroup()
    for _ in range(5):
        group.write("s")
    single = [item for entry in group.sources["s"].log for item in entry]
    marks = np.array([2, 3])
    block = TransactionBlock("s", marks, marks, marks, lambda mark: {"n": mark}, {})
    waiting = [single[1], block, single[4], single[3]]
    assert cut_rules.reflected_by(TwoToFour, 7, waiting) == Reflected(10, also=frozenset({12}))


@pytest.mark.parametrize("delivered", [(), ("s",), ("s", "t")])
def test_feeds_are_behind_until_they_have_delivered_the_bound(delivered):
    group = SmallGroup()
    for source in ("s", "t"):
        group.write(source)
    cuts = group.snapshots()
    for source in delivered:
        group.deliver(source)
    behind = [name for name in ("s", "t") if name not in delivered]
    assert cut_rules.behind(cuts, group.state.intake) == behind


def test_a_feed_that_has_said_nothing_yet_is_behind_every_cut():
    group = SmallGroup()
    group.state.intake.life["t"] = None
    assert cut_rules.behind(group.snapshots(), group.state.intake) == ["t"]
