from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.warehouse.entries_for_tests import LedgerMaker, at, state
from viewkeeper.errors import UsageError
from viewkeeper.warehouse.retention import Retention, horizon, vacuum_plan
from viewkeeper.warehouse.states import serving


def ledger() -> LedgerMaker:
    """One transaction per second; folds at 3 and 6. Entry n is committed at second n."""
    maker = LedgerMaker()
    for txn in range(1, 4):
        maker.epoch(1, v=state(txn))
    maker.quiet("consolidation", v=state(4, 3))
    for txn in range(4, 7):
        maker.epoch(1, v=state(txn + 1, 3))
    maker.quiet("consolidation", v=state(8, 6))
    maker.epoch(1, v=state(9, 6))
    return maker


@pytest.mark.parametrize(
    ("transactions", "seconds", "expected"),
    [
        (0, 0, 7),
        (2, 0, 5),
        (100, 0, 0),
        (math.inf, 0, 0),
        (0, 3, 5),  # at second 6 the newest state was 5
        (0, math.inf, 0),
        (1, 3, 5),
        (4, 3, 3),
    ],
)
def test_both_promises_are_kept(transactions: float, seconds: float, expected: int) -> None:
    retention = Retention(transactions, seconds, 0)
    assert horizon(ledger().entries, retention, at(9)) == expected


def test_what_is_gone_is_not_promised_again() -> None:
    entries = ledger().entries
    entries[-1] = replace(entries[-1], oldest_txn=4)
    assert horizon(entries, Retention(math.inf, math.inf, 0), at(9)) == 4


def test_the_last_version_of_each_base_that_a_promised_state_needs_is_protected() -> None:
    entries = ledger().entries

    def protected(transactions: int) -> tuple[int, ...]:
        plan = vacuum_plan(entries, Retention(transactions, 0, 0), at(100))
        return plan.protected["v"]

    assert protected(0) == (9,)
    assert protected(1) == (9,)  # state 6 is the base itself
    assert protected(2) == (7, 9)
    assert protected(4) == (7, 9)
    assert protected(5) == (3, 7, 9)


def test_recent_versions_are_protected_for_readers_under_way() -> None:
    plan = vacuum_plan(ledger().entries, Retention(0, 0, grace_seconds=2), at(9))
    assert plan.protected["v"] == (7, 8, 9)  # current at second 7 or later
    assert plan.oldest_txn == 7


def test_a_dropped_view_is_protected_while_a_promised_state_has_it() -> None:
    maker = ledger().epoch(1)
    assert vacuum_plan(maker.entries, Retention(1, 0, 0), at(99)).protected == {"v": (9,)}
    assert vacuum_plan(maker.entries, Retention(0, 0, 0), at(99)).protected == {}


def test_negative_retention_is_refused() -> None:
    with pytest.raises(UsageError, match="bad-retention"):
        Retention(transactions=-1)


@given(
    steps=st.lists(st.sampled_from(["epoch", "long", "fold", "merge", "replace"]), max_size=30),
    transactions=st.integers(0, 12),
    seconds=st.integers(0, 12),
    grace=st.integers(0, 5),
    waited=st.integers(0, 5),
)
def test_every_promised_state_is_served_by_a_protected_version(
    steps: list[str], transactions: int, seconds: int, grace: int, waited: int
) -> None:
    maker = LedgerMaker().epoch(0, v=state(1))
    now = state(1)
    for step in steps:
        last = maker.entries[-1].last_txn
        now = replace(now, version=now.version + 1)
        match step:
            case "epoch" | "long":
                maker.epoch(1 if step == "epoch" else 4, v=now)
            case "fold":
                now = replace(now, base_txn=last)
                maker.quiet("consolidation", v=now)
            case "merge":
                maker.quiet("consolidation", v=now)
            case "replace":
                number = len(maker.entries)
                now = replace(now, incarnation=number, base_txn=last + 1, since_txn=last + 1)
                maker.epoch(1, v=now)
    plan = vacuum_plan(
        maker.entries, Retention(transactions, seconds, grace), at(len(maker.entries) + waited)
    )
    kept = [*plan.kept[:-1], replace(plan.kept[-1], oldest_txn=plan.oldest_txn)]
    for txn in range(plan.oldest_txn, kept[-1].last_txn + 1):
        before = serving(maker.entries, "v", txn)
        after = serving(kept, "v", txn)
        assert after == before
        assert after.version in plan.protected["v"]
