"""What may be with the warehouse at one time. The three policies side by side are in tests/paper."""

from __future__ import annotations

import random

import pytest

from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.commit_order import ORDERS, Batched, DependentOnly
from viewkeeper.merging.messages import ActionList, WarehouseTransaction


def transaction(row: int, *views: str, after: tuple[int, ...] = ()) -> WarehouseTransaction:
    return WarehouseTransaction(
        (row,), tuple(ActionList(v, (row,)) for v in views), frozenset(after)
    )


def test_a_transaction_waits_for_an_uncommitted_row_of_its_stream() -> None:
    order = DependentOnly()
    assert len(order.ready([transaction(1, "x")])) == 1
    assert order.ready([transaction(2, "y", after=(1,))]) == ()
    assert [commit.rows for commit in order.committed(1)] == [(2,)]


def test_a_transaction_also_waits_for_one_that_waits() -> None:
    order = DependentOnly()
    chain = [transaction(1, "x"), transaction(2, "x", "y"), transaction(3, "y", "z")]
    assert [commit.rows for commit in order.ready([*chain, transaction(4, "w")])] == [(1,), (4,)]
    assert [commit.rows for commit in order.committed(1)] == [(2,)]


def test_a_batch_has_a_limit() -> None:
    order = Batched(batch_rows_max=2)
    (first,) = order.ready([transaction(row, "x") for row in range(1, 6)])
    assert first.rows == (1, 2)
    (second,) = order.committed(first.number)
    assert second.rows == (3, 4)


def test_a_transaction_larger_than_the_limit_goes_alone() -> None:
    order = Batched(batch_rows_max=1)
    large = WarehouseTransaction((1, 2, 3), (ActionList("x", (1, 2, 3)),))
    (commit,) = order.ready([large, transaction(4, "x")])
    assert commit.rows == (1, 2, 3)


def test_a_commit_that_was_never_given_is_refused() -> None:
    with pytest.raises(InvariantViolated, match="not given"):
        DependentOnly().committed(7)


@pytest.mark.parametrize("name", ORDERS)
def test_in_any_order_of_commits_dependent_transactions_keep_theirs(name: str) -> None:
    for seed in range(50):
        rng = random.Random(seed)
        order, last = ORDERS[name](), {}
        ready = []
        for row in range(1, 30):
            stream = rng.choice("st")
            after = (last[stream],) if stream in last else ()
            last[stream] = row
            ready.append(transaction(row, *rng.sample("uvwxyz", rng.randint(1, 2)), after=after))
        committed: list[int] = []
        flying = list(order.ready(ready[:15]))
        flying += order.ready(ready[15:])
        while flying:
            commit = flying.pop(rng.randrange(len(flying)))
            committed += commit.rows
            flying += order.committed(commit.number)
        assert sorted(committed) == list(range(1, 30))
        assert order.is_idle
        place = {row: index for index, row in enumerate(committed)}
        for later in ready:
            for earlier in ready[: later.rows[0] - 1]:
                if later.views & earlier.views or earlier.rows[0] in later.after:
                    assert place[earlier.rows[0]] < place[later.rows[0]]


def test_with_dependent_only_nothing_waits_but_for_something_uncommitted() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        order, flying = DependentOnly(), []
        for row in range(1, 40):
            after = (rng.randrange(1, row),) if row > 1 and rng.random() < 0.3 else ()
            views = rng.sample("uvwxyz", rng.randint(1, 2))
            flying += order.ready([transaction(row, *views, after=after)])
            if flying and rng.random() < 0.7:
                flying += order.committed(flying.pop(rng.randrange(len(flying))).number)
            earlier = [t for transactions in order.in_flight.values() for t in transactions]
            for waiting in order.waiting:
                rows = {n for t in earlier for n in t.rows}
                assert any(t.views & waiting.views for t in earlier) or rows & waiting.after
                earlier.append(waiting)
