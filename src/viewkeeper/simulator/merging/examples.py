"""The worked examples of the MVC paper: views, and the messages in the order that the paper gives.

Example 5 lists its messages in the text otherwise than in its tables; the tables are right. They print
the state 0 for U_2 and V_3 from t_5 on, where it stays 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    Event,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.simulator.merging.journal import MergeJournal, commit_text, event_text
from viewkeeper.views.level import Level

Message = RelevanceArrived | ActionListArrived
Committing = tuple[MergeProcess, CommitTransaction]


@dataclass(frozen=True)
class MergeExample:
    """``views``: the relations that each reads, as letters. All managers promise ``level``."""

    title: str
    views: dict[str, str]
    level: Level
    messages: tuple[Message, ...]


def _rel(row: int, *views: str) -> RelevanceArrived:
    return RelevanceArrived(row, views)


def _al(view: str, *rows: int, contents: Any = None) -> ActionListArrived:
    return ActionListArrived(ActionList(view, rows, contents))


_EXAMPLE_1 = (_rel(1, "V1", "V2"), _al("V1", 1), _al("V2", 1))
_THREE = {"V1": "RS", "V2": "STQ", "V3": "Q"}

EXAMPLES: dict[str, MergeExample] = {
    "example-1-as-they-come": MergeExample(
        "Example 1: U_1 inserts into S, and each view is changed as soon as its change is known",
        {"V1": "RS", "V2": "ST"},
        Level.CONVERGENT,
        _EXAMPLE_1,
    ),
    "example-1": MergeExample(
        "Example 1 with a merge process: V1's change waits for V2's",
        {"V1": "RS", "V2": "ST"},
        Level.COMPLETE,
        _EXAMPLE_1,
    ),
    "example-2": MergeExample(
        "Example 2: the table, with U_1 on S and U_2 on Q",
        _THREE,
        Level.COMPLETE,
        (_rel(1, "V1", "V2"), _rel(2, "V2", "V3"), _al("V2", 1), _al("V1", 1)),
    ),
    "example-3": MergeExample(
        "Example 3: SPA, with U_1 on S, U_2 on Q and U_3 on T; U_2 need not wait for U_1",
        {"V1": "RS", "V2": "ST", "V3": "Q"},
        Level.COMPLETE,
        (
            _rel(1, "V1", "V2"),
            _al("V2", 1),
            _rel(2, "V3"),
            _rel(3, "V2"),
            _al("V3", 2),
            _al("V2", 3),
            _al("V1", 1),
        ),
    ),
    "example-4": MergeExample(
        "Example 4: AL_3^V1 covers U_1 and U_3, so rows 1 and 2 must wait for row 3",
        _THREE,
        Level.STRONG,
        (
            _rel(1, "V1", "V2"),
            _rel(2, "V2", "V3"),
            _rel(3, "V1", "V2"),
            _al("V1", 1, 3),
            _al("V2", 1),
            _al("V2", 2),
            _al("V3", 2),
            _al("V2", 3),
        ),
    ),
    "example-5": MergeExample(
        "Example 5: PA, with U_1 on S, U_2 and U_3 on Q; AL_3^V2 covers U_2 and U_3",
        _THREE,
        Level.STRONG,
        (
            _rel(1, "V1", "V2"),
            _rel(2, "V2", "V3"),
            _rel(3, "V2", "V3"),
            _al("V2", 1),
            _al("V2", 2, 3),
            _al("V3", 2),
            _al("V1", 1),
            _al("V3", 3),
        ),
    ),
}


class ExampleProcesses:
    """The merge processes of an example: one for all views, as the paper has it.

    Of convergent views each has a group alone, as in the engine: nothing is merged.
    """

    def __init__(self, example: MergeExample) -> None:
        views = tuple(example.views)
        is_merged = example.level > Level.CONVERGENT
        self.processes = tuple(map(MergeProcess, [views] if is_merged else [(v,) for v in views]))

    def step(self, event: Event, process: MergeProcess | None = None) -> list[Committing]:
        """Commits, each with the process that wants it; ``process``: whose commit is done."""
        if process is not None:
            return [(process, commit) for commit in process.step(event)]
        found: list[Committing] = []
        for each in self.processes:
            match event:
                case RelevanceArrived(row, views):
                    mine = tuple(view for view in views if view in each.table.columns)
                    found += self.step(RelevanceArrived(row, mine), each)
                case ActionListArrived(action_list) if action_list.view in each.table.columns:
                    found += self.step(event, each)
        return found

    def tables(self) -> list[tuple[str, ViewUpdateTable]]:
        several = len(self.processes) > 1
        tables = [process.table for process in self.processes]
        return [(f"group {n}" if several else "", table) for n, table in enumerate(tables, 1)]


def played_example(
    example: MergeExample,
    on_commit: Callable[[CommitTransaction], None] = lambda commit: None,
) -> MergeJournal:
    """Let the messages arrive one by one; the warehouse commits at once."""
    processes = ExampleProcesses(example)
    # The paper has states beside the colours where lists may cover several rows.
    journal = MergeJournal(states=example.level is Level.STRONG)

    def arrive(event: Event, of: MergeProcess | None, *, is_told: bool = True) -> list[Committing]:
        commits = processes.step(event, of)
        if is_told or commits:
            told = [commit_text(commit) for _, commit in commits]
            journal.add(event_text(event), processes.tables(), told)
        return commits

    for message in example.messages:
        commits = arrive(message, None)
        while commits:
            (process, first), *rest = commits
            on_commit(first)
            done = WarehouseCommitted(first.number)
            commits = [*rest, *arrive(done, process, is_told=False)]
    return journal
