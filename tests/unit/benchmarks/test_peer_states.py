"""The judge of shown states: right ones pass, wrong ones of either kind are counted."""

from __future__ import annotations

import pytest
from peers.states import Judge
from peers.task import RELATIONS, Task
from peers.workload import MOVES, Sizes, World, write_moves, write_workload

BASE = {
    "orders": {1: (1, 10, 5), 2: (2, 10, 6)},
    "customers": {10: (10, "ann", 100), 11: (11, "bob", 101)},
    "regions": {100: (100, "north"), 101: (101, "south")},
}
ORDER_MOVES = {
    "relation": "orders",
    "before": {"o_id": 1, "cust_id": 10, "qty": 5},
    "after": {"o_id": 1, "cust_id": 11, "qty": 5},
}
CUSTOMER_MOVES = {
    "relation": "customers",
    "before": {"cust_id": 10, "name": "ann", "region_id": 100},
    "after": {"cust_id": 10, "name": "ann", "region_id": 101},
}
OUT, IN = [-1, [1, 5, "ann", "north"]], [1, [1, 5, "bob", "south"]]
OTHER_OUT, OTHER_IN = [-1, [2, 6, "ann", "north"]], [1, [2, 6, "ann", "south"]]


@pytest.fixture
def judge() -> Judge:
    return Judge(BASE, [ORDER_MOVES, CUSTOMER_MOVES])


def test_a_transaction_shown_as_one_state_is_right(judge):
    verdict = judge.verdict([[OUT, IN], [OTHER_OUT, OTHER_IN]])
    assert (verdict.shown, verdict.other_size, verdict.never_true) == (2, 0, 0)
    assert verdict.ends_right


def test_sources_are_autonomous_so_either_may_be_seen_first(judge):
    moved_with_customer = [-1, [1, 5, "ann", "north"]], [1, [1, 5, "ann", "south"]]
    states = [
        [*moved_with_customer, OTHER_OUT, OTHER_IN],
        [[-1, [1, 5, "ann", "south"]], IN],
    ]
    assert judge.verdict(states).never_true == 0


def test_row_by_row_every_other_state_is_wrong(judge):
    verdict = judge.verdict([[OUT], [IN], [OTHER_OUT], [OTHER_IN]])
    assert (verdict.shown, verdict.other_size, verdict.never_true) == (4, 2, 2)
    assert verdict.ends_right


def test_a_state_of_the_right_size_may_be_wrong(judge):
    half = [[OUT, [1, [1, 5, "bob", "north"]]]]
    verdict = judge.verdict(half)
    assert (verdict.other_size, verdict.never_true, verdict.ends_right) == (0, 1, False)


def test_a_workload_of_moves_keeps_the_views_size_and_is_judged_right(tmp_path):
    write_moves(tmp_path, orders=100, count=40, seed=3)
    task = Task("", "join", tmp_path, tmp_path, ("moves",), moves=True)
    world = World(Sizes(100, 10, 5), 3)
    before = _view(world)
    states = []
    for _ in world.changes(40, MOVES):
        after = _view(world)
        states.append([*([-1, row] for row in before), *([1, row] for row in after)])
        before = after
    verdict = Judge.of(task).verdict(states)
    assert (verdict.shown, verdict.other_size, verdict.never_true) == (40, 0, 0)
    assert verdict.ends_right


def _view(world: World) -> list[list[object]]:
    return [
        [number, qty, f"customer {cust}", world.region_names[world.region_ids[cust]]]
        for number, (cust, qty, there) in enumerate(
            zip(world.cust_ids, world.quantities, world.is_there, strict=True)
        )
        if there
    ]


@pytest.mark.parametrize("view", ["join", "totals"])
def test_what_a_right_end_looks_like_agrees_with_a_database(tmp_path, view):
    import duckdb

    write_workload(tmp_path, 2_000, [("some", 500)], seed=1)
    task = Task("", view, tmp_path, tmp_path, ("some",))
    files = {name: f"'{task.after('some', name)}'" for name in RELATIONS}
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW shown AS {task.sql(**files)}")
        found = database.execute(task.check.format(view="shown")).fetchall()[0]
        assert task.is_right("some", found)
        stale = {name: f"'{task.base(name)}'" for name in RELATIONS}
        database.execute(f"CREATE VIEW stale AS {task.sql(**stale)}")
        assert not task.is_right(
            "some", database.execute(task.check.format(view="stale")).fetchall()[0]
        )
