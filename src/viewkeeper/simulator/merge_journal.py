"""What the merge process went through, for people: each message, and the table after it."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.merging.drawing import drawn
from viewkeeper.merging.merge_groups import GroupsEvent, MergeGroups, ViewAdded, ViewDropped
from viewkeeper.merging.messages import (
    ActionListArrived,
    BlockEnded,
    CommitTransaction,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.painting import Painting


@dataclass(frozen=True)
class MergeEntry:
    """One message: what arrived, the tables after it, what goes to the warehouse."""

    message: str
    tables: str
    commits: tuple[str, ...]


class MergeJournal:
    """Watches a merge process; give it as ``watch``. With ``markup`` the tables are in Rich's colours."""

    def __init__(self, *, markup: bool = False) -> None:
        self.entries: list[MergeEntry] = []
        self.markup = markup

    def __call__(
        self, event: GroupsEvent, groups: MergeGroups, commits: tuple[CommitTransaction, ...]
    ) -> None:
        tables = "".join(self._drawn(groups, index) for index in range(len(groups.processes)))
        self.entries.append(MergeEntry(event_text(event), tables, tuple(map(commit_text, commits))))

    def _drawn(self, groups: MergeGroups, index: int) -> str:
        process = groups.processes[index]
        if not process.table.rows and not any(c.early for c in process.table.columns.values()):
            return ""
        states = isinstance(process.algorithm, Painting)
        heading = f"group {index + 1}\n" if len(groups.processes) > 1 else ""
        return heading + drawn(process.table, states=states, markup=self.markup)

    def transcript(self) -> str:
        """All entries as text."""
        blocks = []
        for number, entry in enumerate(self.entries, 1):
            lines = [f"{number:>4}  {entry.message}\n"]
            lines += [f"      {line}\n" for line in entry.tables.splitlines()]
            lines += [f"      {line}\n" for line in entry.commits]
            blocks.append("".join(lines))
        return "\n".join(blocks)


def event_text(event: GroupsEvent) -> str:
    """An event as the paper writes it."""
    match event:
        case RelevanceArrived(row, views, _, more):
            listed = "{" + ", ".join(views) + "}"
            return f"REL_{row} = {listed}" + (", more to come in this unit" if more else "")
        case ActionListArrived(action_list):
            covers = ", ".join(f"U_{row}" for row in action_list.rows)
            return f"{action_list}, for {covers}" if len(action_list.rows) > 1 else str(action_list)
        case BlockEnded():
            return "the block ends"
        case WarehouseCommitted(number):
            return f"commit {number} is done"
        case ViewAdded(view):
            return f"{view} is added"
        case ViewDropped(view):
            return f"{view} is dropped"


def commit_text(commit: CommitTransaction) -> str:
    rows = ", ".join(f"U_{row}" for row in commit.rows)
    return f"→ commit {commit.number}: {rows} by {', '.join(map(str, commit.lists))}"
