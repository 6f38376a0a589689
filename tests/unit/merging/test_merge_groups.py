"""Groups of views: how they are told apart, joined and parted while they run."""

from __future__ import annotations

import random

import pytest

from unit.merging.messages_for_tests import al, rel, rows_of
from viewkeeper.errors import UsageError
from viewkeeper.merging.commit_order import ORDERS, Batched
from viewkeeper.merging.complete_n import block_end
from viewkeeper.merging.groups import partition
from viewkeeper.merging.integrator import Integrator
from viewkeeper.merging.merge_groups import MergeGroups, ViewAdded, ViewDropped
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    BlockEnded,
    CommitTransaction,
    WarehouseCommitted,
)
from viewkeeper.merging.mixtures import Promise
from viewkeeper.views.level import Level

COMPLETE, STRONG = Promise(Level.COMPLETE), Promise(Level.STRONG)


def groups_of(promise: Promise = COMPLETE, order=ORDERS["dependent-only"], **views: str):
    groups = MergeGroups(order)
    for view, relations in views.items():
        groups.step(ViewAdded(view, frozenset(relations), promise))
    return groups


# -- the partition -----------------------------------------------------------------------------------


def test_views_that_share_a_relation_are_together_also_by_way_of_others() -> None:
    views = {"a": "RS", "b": "Q", "c": "ST", "d": "TU", "e": "P"}
    assert partition(views) == (("a", "c", "d"), ("b",), ("e",))


def test_a_tie_joins_groups_and_ignores_views_that_are_not_there() -> None:
    assert partition({"a": "R", "b": "S", "c": "T"}, [("c", "a", "gone")]) == (("a", "c"), ("b",))


# -- joining -----------------------------------------------------------------------------------------


def test_a_slow_view_does_not_stop_another_group() -> None:
    groups = groups_of(a="R", b="R", c="Q")
    groups.step(rel(1, "a", "b"))
    groups.step(al("a", 1))
    groups.step(rel(2, "c"))
    assert rows_of(groups.step(al("c", 2))) == [(2,)]


def test_a_view_that_reads_relations_of_two_groups_joins_them_with_all_that_waits() -> None:
    groups = groups_of(a="R", b="RS", c="Q", d="Q", e="P")
    groups.step(rel(1, "a", "b"))
    groups.step(al("a", 1))
    groups.step(rel(2, "c", "d"))
    groups.step(al("d", 2))
    groups.step(ViewAdded("bridge", frozenset("SQ"), STRONG))
    assert groups.groups == (("a", "b", "c", "d", "bridge"), ("e",))
    assert groups.process_of("a").algorithm.name == "pa"
    groups.step(rel(3, "bridge"))
    assert not groups.step(al("bridge", 3))
    assert rows_of(groups.step(al("c", 2))) == [(2,)]
    # The new view's extent is shown when both groups have come as far as it.
    assert rows_of(groups.step(al("b", 1))) == [(1,)]
    assert rows_of(groups.step(WarehouseCommitted(1))) == []
    assert rows_of(groups.step(WarehouseCommitted(2))) == [(3,)]


def test_a_transaction_that_concerns_two_groups_makes_them_one() -> None:
    groups = groups_of(a="R", b="Q")
    assert groups.groups == (("a",), ("b",))
    groups.step(rel(1, "a", "b"))
    assert groups.groups == (("a", "b"),)
    assert not groups.step(al("a", 1))
    assert rows_of(groups.step(al("b", 1))) == [(1,)]


def test_parts_of_a_global_transaction_in_two_groups_make_them_one() -> None:
    groups = groups_of(a="R", b="Q")
    groups.step(rel(1, "a", more=True))
    groups.step(al("a", 1))
    groups.step(rel(2, "b"))
    assert groups.groups == (("a", "b"),)
    assert rows_of(groups.step(al("b", 2))) == [(1, 2)]


def test_joined_groups_stand_at_one_cut_from_the_first_common_row_on() -> None:
    """Row 1 waits in one group, rows of the other have gone ahead: row 3 brings both together."""
    groups = groups_of(a="R", b="R", c="Q")
    groups.step(rel(1, "a", "b", streams="s"))
    groups.step(al("a", 1))
    groups.step(rel(2, "c", streams="s"))
    assert rows_of(groups.step(al("c", 2))) == [(2,)]
    groups.step(rel(3, "b", "c", streams="t"))
    groups.step(al("c", 3))
    assert rows_of(groups.step(al("b", 1))) == [(1,)]
    for number in (1, 2):
        groups.step(WarehouseCommitted(number))
    assert rows_of(groups.step(al("b", 3))) == [(3,)]


def test_the_first_common_row_waits_for_commits_of_both_groups() -> None:
    groups = groups_of(a="R", a2="R", b="Q", c="P")
    groups.step(rel(1, "a", streams="s"))
    groups.step(rel(2, "b", streams="s"))
    assert rows_of(groups.step(al("a", 1))) == [(1,)]
    assert rows_of(groups.step(al("b", 2))) == [(2,)]
    groups.step(WarehouseCommitted(2))
    groups.step(rel(3, "b", "c", streams="t"))
    groups.step(al("b", 3))
    # b and c become one group, and have nothing to do with a.
    assert rows_of(groups.step(al("c", 3))) == [(3,)]
    groups.step(WarehouseCommitted(3))
    groups.step(rel(4, "a2", "c", streams="t"))
    groups.step(al("a2", 4))
    # With a2 it is different: row 1 of its group, older than row 2 in stream s, is uncommitted.
    assert rows_of(groups.step(al("c", 4))) == []
    assert rows_of(groups.step(WarehouseCommitted(1))) == [(4,)]


def test_a_row_that_concerns_nobody_still_ends_a_unit() -> None:
    groups = groups_of(a="R", b="R")
    groups.step(rel(1, "a", more=True))
    assert not groups.step(al("a", 1))
    assert rows_of(groups.step(rel(2))) == [(1,)]


# -- parting -----------------------------------------------------------------------------------------


def test_groups_part_when_the_view_between_them_is_dropped() -> None:
    groups = groups_of(a="R", between="RQ", b="Q")
    groups.step(ViewDropped("between"))
    assert groups.groups == (("a",), ("b",))


def test_rows_that_waited_for_a_dropped_view_alone_go_at_once() -> None:
    groups = groups_of(a="R", b="R", c="R")
    groups.step(rel(1, "a", "b"))
    groups.step(rel(2, "b"))
    groups.step(al("a", 1))
    assert rows_of(groups.step(ViewDropped("b"))) == [(1,)]
    assert not groups.step(al("b", 1))  # on its way when the view was dropped
    groups.step(WarehouseCommitted(1))
    assert groups.is_idle


def test_groups_part_only_when_no_commit_concerns_both() -> None:
    groups = groups_of(order=Batched, a="R", between="RQ", b="Q")
    for row, view in ((1, "a"), (2, "b"), (3, "a")):
        groups.step(rel(row, view))
    assert rows_of(groups.step(al("a", 1))) == [(1,)]
    groups.step(al("b", 2))
    groups.step(al("a", 3))
    assert rows_of(groups.step(WarehouseCommitted(1))) == [(2, 3)]
    groups.step(ViewDropped("between"))
    assert groups.groups == (("a", "b"),)
    groups.step(WarehouseCommitted(2))
    assert groups.groups == (("a",), ("b",))


def test_views_written_together_stay_together_when_the_view_between_goes() -> None:
    groups = groups_of(a="R", between="RQ", b="Q")
    groups.step(rel(1, "a", "between", "b"))
    groups.step(ViewDropped("between"))
    assert groups.groups == (("a", "b"),)


def test_without_its_weakest_view_a_group_is_merged_more_strictly() -> None:
    groups = groups_of(a="R", b="R")
    groups.step(ViewAdded("weak", frozenset("R"), Promise(Level.CONVERGENT)))
    groups.step(rel(1, "a", "b"))
    assert rows_of(groups.step(al("a", 1))) == [(1,)]
    groups.step(al("a", 2))  # early: passed on, and known again when its relevance comes
    groups.step(ViewDropped("weak"))
    assert groups.process_of("a").algorithm.name == "spa"
    (commit,) = groups.step(al("b", 1))
    assert [str(a) for a in commit.lists] == ["AL_1^b"]
    groups.step(rel(2, "a", "b"))
    assert [c.number for c in groups.step(WarehouseCommitted(1))] == [3]
    groups.step(WarehouseCommitted(2))
    (commit,) = groups.step(al("b", 2))
    assert [str(a) for a in commit.lists] == ["AL_2^b"]


def test_with_a_weaker_view_what_waited_is_passed_on() -> None:
    groups = groups_of(a="R", b="R")
    groups.step(rel(1, "a", "b"))
    assert not groups.step(al("a", 1))
    assert rows_of(groups.step(ViewAdded("weak", frozenset("R"), Promise(Level.WEAK)))) == [(1,)]


def test_an_open_block_ends_when_nobody_counts_blocks_any_more() -> None:
    groups = groups_of(a="R")
    groups.step(ViewAdded("blocks", frozenset("R"), Promise(Level.COMPLETE, every=3)))
    groups.step(rel(1, "a", "blocks"))
    assert not groups.step(al("a", 1))
    assert rows_of(groups.step(ViewDropped("blocks"))) == [(1,)]
    assert groups.step(BlockEnded()) == ()


def test_groups_that_part_inside_a_block_end_it_each_for_itself() -> None:
    groups = groups_of(Promise(Level.COMPLETE, every=3), a="R", between="RQ", b="Q")
    groups.step(rel(1, "a"))
    groups.step(al("a", 1))
    assert groups.step(ViewDropped("between")) == ()
    assert groups.groups == (("a",), ("b",))
    groups.step(rel(2, "b"))
    assert groups.step(al("b", 2)) == ()
    assert rows_of(groups.step(rel(3, "a"))) == [(2,)]
    assert rows_of(groups.step(al("a", 3))) == [(1, 3)]


def test_a_block_that_concerns_both_sides_keeps_them_together_until_it_ends() -> None:
    groups = groups_of(Promise(Level.COMPLETE, every=3), a="R", between="RQ", b="Q")
    for row, view in ((1, "a"), (2, "b")):
        groups.step(rel(row, view))
        groups.step(al(view, row))
    groups.step(ViewDropped("between"))
    assert groups.groups == (("a", "b"),)
    assert rows_of(groups.step(rel(3))) == [(1, 2)]
    groups.step(WarehouseCommitted(1))
    assert groups.groups == (("a",), ("b",))


def test_when_the_strong_view_leaves_a_block_shows_as_a_whole_or_not_at_all() -> None:
    """Rows that were announced one by one are counted into blocks when it comes to counting them."""
    groups = groups_of(a="R")
    groups.step(ViewAdded("pairs", frozenset("R"), Promise(Level.COMPLETE, every=2)))
    groups.step(ViewAdded("strong", frozenset("R"), STRONG))
    for row in (1, 2, 3):
        groups.step(rel(row, "a", "pairs", "strong"))
    groups.step(al("pairs", 1, 2))
    groups.step(al("a", 1))
    assert groups.process_of("a").algorithm.name == "pa"
    assert groups.step(ViewDropped("strong")) == ()
    assert groups.process_of("a").algorithm.name == "complete-n"
    (commit,) = groups.step(al("a", 2))
    assert [str(a) for a in commit.lists] == ["AL_1^a", "AL_2^a", "AL_2^pairs"]
    # The block that the hand-over fell into goes on.
    groups.step(WarehouseCommitted(1))
    groups.step(al("a", 3))
    groups.step(rel(4, "a", "pairs"))
    groups.step(al("pairs", 3, 4))
    assert rows_of(groups.step(al("a", 4))) == [(3, 4)]


def test_blocks_become_longer_when_a_group_joins_that_counts_otherwise() -> None:
    groups = MergeGroups()
    for view, relations, every in (("pairs", "R", 2), ("threes", "Q", 3)):
        groups.step(ViewAdded(view, frozenset(relations), Promise(Level.COMPLETE, every)))
    groups.step(rel(1, "pairs"))
    groups.step(rel(2, "threes"))
    groups.step(ViewAdded("between", frozenset("RQ"), COMPLETE))
    groups.step(rel(3, "between", "pairs"))
    # Of rows 1 to 6, all or none: the list of the pairs for 3 and 4 must not go alone.
    assert groups.step(al("pairs", 1)) == ()
    assert groups.step(al("threes", 2)) == ()
    groups.step(al("between", 3))
    for row in (4, 5, 6):
        groups.step(rel(row, "pairs"))
    groups.step(al("pairs", 3, 4))
    assert rows_of(groups.step(al("pairs", 5, 6))) == [(1, 2, 3, 4, 5, 6)]


def test_a_view_can_be_added_once_and_dropped_once() -> None:
    groups = groups_of(a="R")
    with pytest.raises(UsageError, match="already"):
        groups.step(ViewAdded("a", frozenset("R"), COMPLETE))
    with pytest.raises(UsageError, match="no view"):
        groups.step(ViewDropped("b"))


# -- at random ---------------------------------------------------------------------------------------


class RandomGroups:
    """Views that come and go while updates are numbered, maintained and committed, in any order.

    A third of them is complete, a third strong, a third complete-N.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"groups {seed}")
        self.groups = MergeGroups(ORDERS[self.rng.choice(sorted(ORDERS))])
        self.integrator = Integrator()
        self.concerned: dict[int, tuple[str, ...]] = {}
        self.pending: dict[str, list[int]] = {}
        self.promises: dict[str, Promise] = {}
        # No row joins the last block any more.
        self.is_over = False
        self.channels: dict[str, list] = {"": []}
        self.with_warehouse: list[CommitTransaction] = []
        self.shown: dict[str, list[int]] = {}
        self.names = iter(f"v{n}" for n in range(1, 1000))
        self.regrouped = 0
        self.algorithms: set[tuple[str, str]] = set()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            before, merged_by = self.groups.groups, self.merged_by()
            self.rng.choices(
                [self.update, self.maintain, self.deliver, self.commit, self.add, self.drop],
                [4, 6, 12, 8, 1, 0.7],
            )[0]()
            self.regrouped += self.groups.groups != before
            now = self.merged_by()
            self.algorithms |= {
                (merged_by[v], now[v]) for v in now.keys() & merged_by if merged_by[v] != now[v]
            }
            self.check()

    def merged_by(self) -> dict[str, str]:
        return {view: p.algorithm.name for p in self.groups.processes for view in p.table.columns}

    def update(self) -> None:
        source = self.rng.choice("stu")
        written = self.rng.sample([f"{source}{n}" for n in range(3)], self.rng.choice((1, 1, 1, 2)))
        self.announce(self.integrator.number(source, written))

    def announce(self, relevance) -> None:
        self.concerned[relevance.row] = relevance.views
        self.channels[""].append(relevance)
        for view in relevance.views:
            self.pending[view].append(relevance.row)

    def maintain(self) -> None:
        waiting = [view for view, rows in self.pending.items() if rows]
        if waiting:
            view = self.rng.choice(waiting)
            rows = self.pending[view]
            count = self.covered(self.promises[view], rows)
            self.pending[view] = rows[count:]
            if count:
                self.channels.setdefault(view, []).append(al(view, *rows[:count]))

    def covered(self, promise: Promise, rows: list[int]) -> int:
        """How many of its next rows a manager's next list covers; a block must have ended."""
        if promise.level is Level.STRONG:
            return self.rng.randint(1, len(rows))
        end = block_end(rows[0], promise.every)
        if max(self.concerned) < end and not self.is_over:
            return 0
        return sum(row <= end for row in rows)

    def deliver(self) -> None:
        senders = [sender for sender, messages in self.channels.items() if messages]
        if senders:
            self.step(self.channels[self.rng.choice(senders)].pop(0))

    def commit(self) -> None:
        if self.with_warehouse:
            index = self.rng.randrange(len(self.with_warehouse))
            commit = self.with_warehouse.pop(index)
            for action_list in commit.lists:
                if action_list.view in self.shown:
                    self.shown[action_list.view] += action_list.rows
            self.step(WarehouseCommitted(commit.number))

    def add(self) -> None:
        # The integrator tells of views in the same channel as of rows: here, when it is empty.
        while self.channels[""]:
            self.step(self.channels[""].pop(0))
        name = next(self.names)
        relations = self.rng.sample([f"{s}{n}" for s in "stu" for n in range(3)], 2)
        self.pending[name], self.shown[name] = [], []
        promise = self.rng.choice(
            (COMPLETE, STRONG, Promise(Level.COMPLETE, self.rng.choice((2, 2, 3))))
        )
        self.promises[name] = promise
        self.step(ViewAdded(name, frozenset(relations), promise))
        self.integrator.views[name] = frozenset(relations)
        self.announce(self.integrator.number_view(name, sorted({r[0] for r in relations})))

    def drop(self) -> None:
        if self.shown:
            name = self.rng.choice(sorted(self.shown))
            del self.shown[name], self.pending[name], self.integrator.views[name]
            self.step(ViewDropped(name))

    def step(self, event) -> None:
        self.with_warehouse += self.groups.step(event)

    def check(self) -> None:
        for row, views in self.concerned.items():
            showing = {row in self.shown[view] for view in views if view in self.shown}
            assert len(showing) < 2, f"row {row} shows in some of {views} only"
        for view, rows in self.shown.items():
            assert rows == sorted(rows), f"{view} shows {rows}"

    def finish(self) -> None:
        self.is_over = True
        self.channels[""].append(BlockEnded())
        while any(self.pending.values()) or any(self.channels.values()) or self.with_warehouse:
            self.rng.choice((self.maintain, self.deliver, self.commit))()
            self.check()
        assert self.groups.is_idle
        for view, rows in self.shown.items():
            assert rows == [row for row, views in self.concerned.items() if view in views]


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_views_come_and_go_and_every_update_shows_in_all_its_views_or_in_none(first: int) -> None:
    regrouped = 0
    handed_over: set[tuple[str, str]] = set()
    for seed in range(first, first + 15):
        world = RandomGroups(seed)
        world.run(300)
        world.finish()
        regrouped += world.regrouped
        handed_over |= world.algorithms
    assert regrouped > 50
    # From each of them to each other.
    assert len(handed_over) == 6


def test_an_action_list_names_its_last_row() -> None:
    assert str(ActionListArrived(ActionList("v", (2, 5))).list) == "AL_5^v"
