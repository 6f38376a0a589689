"""MVC (1997): the worked examples, the claims, and where the print is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from simulation.broken_merging import PaintingAsPrinted, PaintingThatKeepsApplyRows
from simulation.promptness import could_go
from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.consistency import SourceHistories, check
from viewkeeper.merging.commit_order import Batched, DependentOnly, Sequential
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.simulator.merging.examples import EXAMPLES, played_example
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.level import Level


def rel(row: int, *views: str) -> RelevanceArrived:
    return RelevanceArrived(row, views)


def al(view: str, *rows: int, contents: object = None) -> ActionListArrived:
    return ActionListArrived(ActionList(view, rows, contents))


def process_of(name: str) -> MergeProcess:
    """The merge process of an example, as the engine makes it for a group."""
    return MergeProcess(EXAMPLES[name].views)


def rows_of(commits: tuple[CommitTransaction, ...]) -> list[tuple[int, ...]]:
    return [commit.rows for commit in commits]


def colours(table: ViewUpdateTable, row: int) -> str:
    return "".join(table.cell(row, view).colour.value for view in table.columns)


def states(table: ViewUpdateTable, row: int) -> list[int]:
    return [table.cell(row, view).state for view in table.columns]


# -- Example 1: the problem --------------------------------------------------------------------------

R, S, T = RelationName("r", "R"), RelationName("s", "S"), RelationName("t", "T")
SCHEMAS = {
    R: Schema.of(A=INTEGER, B=INTEGER),
    S: Schema.of(B=INTEGER, C=INTEGER),
    T: Schema.of(C=INTEGER, D=INTEGER),
}


def joined(name: str, left: RelationName, right: RelationName, on: str) -> ViewDefinition:
    one, two = Occurrence("l", left, SCHEMAS[left]), Occurrence("r", right, SCHEMAS[right])
    (first, _), (_, last) = SCHEMAS[left].names, SCHEMAS[right].names
    names = {first: f"l.{first}", on: f"l.{on}", last: f"r.{last}"}
    outputs = tuple(Output(n, Column(c)) for n, c in names.items())
    return ViewDefinition(
        name, (Term((one, two), (Comparison("=", Column(f"l.{on}"), Column(f"r.{on}")),), outputs),)
    )


V1, V2 = joined("V1", R, S, "B"), joined("V2", S, T, "C")


def table_1(level: Level) -> list[tuple[Bag, Bag]]:
    """Table 1 of the paper, with the views changed in the transactions that the merge process makes."""
    changes = {"V1": Bag.of(V1.schema, [(1, 2, 3)]), "V2": Bag.of(V2.schema, [(2, 3, 4)])}
    name = "example-1" if level is Level.COMPLETE else "example-1-as-they-come"
    seen = [{"V1": Bag(V1.schema), "V2": Bag(V2.schema)}]

    def commit(transaction: CommitTransaction) -> None:
        state = dict(seen[-1])
        for action_list in transaction.lists:
            state[action_list.view] = state[action_list.view] + changes[action_list.view]
        seen.append(state)

    played_example(EXAMPLES[name], commit)
    return [(state["V1"], state["V2"]) for state in seen]


@pytest.mark.parametrize(
    ("level", "reached"), [(Level.CONVERGENT, Level.CONVERGENT), (Level.COMPLETE, Level.COMPLETE)]
)
def test_example_1_two_views_contradict_each_other_unless_they_are_merged(level, reached) -> None:
    initial = {
        R: Bag.of(SCHEMAS[R], [(1, 2)]),
        S: Bag(SCHEMAS[S]),
        T: Bag.of(SCHEMAS[T], [(3, 4)]),
    }
    insert = Transaction("s", 1, ((S, Bag.of(SCHEMAS[S], [(2, 3)])),))
    histories = SourceHistories(initial, {"r": (), "s": (insert,), "t": ()})
    verdict = check([V1, V2], histories, table_1(level))
    assert verdict.level is reached
    if level is Level.CONVERGENT:
        assert verdict.violation is not None
        assert verdict.violation.state == 1


# -- Examples 2 to 5: the table ----------------------------------------------------------------------


def after_each_message(name: str) -> Iterator[ViewUpdateTable]:
    merge = process_of(name)
    for message in EXAMPLES[name].messages:
        for commit in merge.step(message):
            merge.step(WarehouseCommitted(commit.number))
        yield merge.table


def test_example_2_a_list_paints_its_cell_red() -> None:
    *_, before_last, _ = [
        [colours(table, row) for row in (1, 2)] for table in after_each_message("example-2")
    ]
    assert before_last == ["wrb", "bww"]


def test_example_3_an_update_overtakes_one_that_concerns_other_views() -> None:
    merge = process_of("example-3")
    commits = [merge.step(message) for message in EXAMPLES["example-3"].messages]
    assert [rows_of(c) for c in commits] == [[], [], [], [], [(2,)], [], [(1,)]]
    # WT_3 depends on WT_1: it is ready, and waits until the warehouse has committed that.
    assert rows_of(merge.step(WarehouseCommitted(2))) == [(3,)]


def test_example_4_nothing_goes_before_the_row_that_a_list_reaches() -> None:
    merge = process_of("example-4")
    *earlier, last = [merge.step(message) for message in EXAMPLES["example-4"].messages]
    assert not any(earlier)
    assert rows_of(last) == [(1, 2, 3)]


def test_example_5_colours_and_states_are_those_of_the_paper() -> None:
    found = []
    for table in after_each_message("example-5"):
        found.append({row: (colours(table, row), states(table, row)) for row in table.rows})
    assert found[2:] == [
        {1: ("wwb", [0, 0, 0]), 2: ("bww", [0, 0, 0]), 3: ("bww", [0, 0, 0])},
        {1: ("wrb", [0, 1, 0]), 2: ("bww", [0, 0, 0]), 3: ("bww", [0, 0, 0])},
        {1: ("wrb", [0, 1, 0]), 2: ("brw", [0, 3, 0]), 3: ("brw", [0, 3, 0])},
        {1: ("wrb", [0, 1, 0]), 2: ("brr", [0, 3, 2]), 3: ("brw", [0, 3, 0])},
        # The commit that follows is an event too, so row 1, gray at t_5, is purged already.
        {2: ("brr", [0, 3, 2]), 3: ("brw", [0, 3, 0])},
        {},
    ]


def channels(messages) -> dict[str, list]:
    """The messages by sender: the integrator, and each view manager."""
    by_sender: dict[str, list] = {}
    for message in messages:
        sender = "" if isinstance(message, RelevanceArrived) else message.list.view
        by_sender.setdefault(sender, []).append(message)
    return by_sender


def interleavings(by_sender: dict[str, list]) -> Iterator[list]:
    senders = [sender for sender, messages in by_sender.items() for _ in messages]
    for order in dict.fromkeys(itertools.permutations(senders)):
        queues = {sender: iter(messages) for sender, messages in by_sender.items()}
        yield [next(queues[sender]) for sender in order]


@pytest.mark.parametrize("name", ["example-3", "example-4", "example-5"])
def test_in_every_order_of_arrival_all_is_applied_in_order_and_promptly(name: str) -> None:
    """Relevance may come after lists; messages of one sender keep their order."""
    example = EXAMPLES[name]
    orders = 0
    for order in interleavings(channels(example.messages)):
        orders += 1
        merge = process_of(name)
        applied: dict[str, list[ActionList]] = {}
        commits = 0
        for message in order:
            pending = list(merge.step(message))
            assert not could_go(merge.table)
            while pending:
                commit = pending.pop()
                commits += 1
                for action_list in commit.lists:
                    applied.setdefault(action_list.view, []).append(action_list)
                pending += merge.step(WarehouseCommitted(commit.number))
        assert merge.is_idle
        if example.level is Level.COMPLETE:
            # Theorem 4.1, as far as orders of arrival go: where managers are complete, every update is a commit.
            assert commits == len([m for m in order if isinstance(m, RelevanceArrived)])
        sent = {s: [m.list for m in ms] for s, ms in channels(order).items() if s}
        assert applied == sent
    assert orders > 100


# -- what the print gets wrong -----------------------------------------------------------------------

# AL_3^x covers rows 1 and 3; y's second change is here, its first waits for z.
INTERTWINED = [
    rel(1, "x"),
    rel(2, "y", "z"),
    rel(3, "x", "y"),
    al("y", 2),
    al("y", 3),
    al("x", 1, 3),
]


def test_a_recursive_call_must_not_apply_what_its_caller_has_not_checked() -> None:
    ours = MergeProcess("xyz")
    assert not any(ours.step(message) for message in INTERTWINED)
    assert rows_of(ours.step(al("z", 2))) == [(2,)]
    assert rows_of(ours.step(WarehouseCommitted(1))) == [(1, 3)]

    printed = MergeProcess("xyz", algorithm=PaintingAsPrinted)
    *_, last = [printed.step(message) for message in INTERTWINED]
    assert rows_of(last) == [(1, 3)]  # y shows its change of row 3, and not that of row 2


def test_a_failed_attempt_must_leave_nothing_in_apply_rows() -> None:
    # Row 3 is red and needs row 1, which is white in w. Then row 2, on its own, succeeds.
    messages = [rel(1, "x", "w"), rel(2, "z"), rel(3, "x"), al("x", 1), al("x", 3), al("z", 2)]
    ours = MergeProcess("xzw")
    assert rows_of([ours.step(message) for message in messages][-1]) == [(2,)]
    kept = MergeProcess("xzw", algorithm=PaintingThatKeepsApplyRows)
    assert rows_of([kept.step(message) for message in messages][-1]) == [(2, 3)]


# -- section 4.3: the order of commits ---------------------------------------------------------------


def three_transactions(order) -> tuple[MergeProcess, list]:
    """WT_1 over x, WT_2 over x, WT_3 over y, all ready at the same time."""
    merge = MergeProcess("xy", order())
    merge.step(rel(1, "x"))
    merge.step(rel(2, "x"))
    merge.step(rel(3, "y"))
    return merge, [rows_of(merge.step(m)) for m in (al("x", 1), al("x", 2), al("y", 3))]


def test_one_after_the_other() -> None:
    merge, found = three_transactions(Sequential)
    assert found == [[(1,)], [], []]
    assert rows_of(merge.step(WarehouseCommitted(1))) == [(2,)]
    assert rows_of(merge.step(WarehouseCommitted(2))) == [(3,)]


def test_only_dependent_transactions_wait() -> None:
    merge, found = three_transactions(DependentOnly)
    assert found == [[(1,)], [], [(3,)]]
    assert rows_of(merge.step(WarehouseCommitted(2))) == []
    assert rows_of(merge.step(WarehouseCommitted(1))) == [(2,)]


def test_a_batch_gathers_while_another_is_being_committed() -> None:
    merge, found = three_transactions(Batched)
    assert found == [[(1,)], [], []]
    (batch,) = merge.step(WarehouseCommitted(1))
    assert [str(a) for a in batch.lists] == ["AL_2^x", "AL_3^y"]


# -- sections 6.2 and 6.3 ----------------------------------------------------------------------------


def test_a_transaction_over_two_relations_shows_in_both_views_at_once() -> None:
    """V_1 = R and V_2 = S have no relation in common, and one transaction writes both."""
    merge = MergeProcess(["V1", "V2"])
    merge.step(rel(1, "V1", "V2"))
    assert not merge.step(al("V1", 1))
    assert rows_of(merge.step(al("V2", 1))) == [(1,)]


def test_a_periodic_refresh_takes_part_as_a_strongly_consistent_manager() -> None:
    merge = MergeProcess(["fresh", "slow"])
    for row in (1, 2, 3):
        merge.step(rel(row, "fresh", "slow"))
        assert not merge.step(al("fresh", row))
    assert rows_of(merge.step(al("slow", 1, 2, 3))) == [(1, 2, 3)]


def test_a_thousand_rows_behind_one_list_are_applied_when_it_comes() -> None:
    merge = MergeProcess("xy", Batched())
    merge.step(rel(1, "x", "y"))
    for row in range(2, 3001):
        merge.step(rel(row, "x"))
    for row in range(1, 3001):
        assert not merge.step(al("x", row))
    assert merge.step(al("y", 1))
    merge.step(WarehouseCommitted(1))
    assert merge.table.is_empty
