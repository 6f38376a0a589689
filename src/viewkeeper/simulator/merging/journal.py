"""What the merge process went through, for people: each message, and the table after it."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.merging.drawing import Drawing, drawing_of
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
    """One message: what arrived, the groups' tables after it, what goes to the warehouse."""

    message: str
    drawings: tuple[tuple[str, Drawing], ...]
    commits: tuple[str, ...]


class MergeJournal:
    """Watches a merge process: give it as ``watch``."""

    def __init__(self) -> None:
        self.entries: list[MergeEntry] = []

    def __call__(
        self, event: GroupsEvent, groups: MergeGroups, commits: tuple[CommitTransaction, ...]
    ) -> None:
        drawings = []
        for number, process in enumerate(groups.processes, 1):
            heading = f"group {number}" if len(groups.processes) > 1 else ""
            drawing = drawing_of(process.table, states=isinstance(process.algorithm, Painting))
            if not drawing.is_empty:
                drawings.append((heading, drawing))
        texts = tuple(commit_text(commit) for commit in commits)
        self.entries.append(MergeEntry(event_text(event), tuple(drawings), texts))

    def transcript(self, *, markup: bool = False) -> str:
        """All entries as text; with ``markup``, the tables in Rich's colours."""
        blocks = []
        for number, entry in enumerate(self.entries, 1):
            lines = []
            for heading, drawing in entry.drawings:
                lines += [heading] if heading else []
                lines += drawing.text(markup=markup).splitlines()
            lines += entry.commits
            blocks.append(
                f"{number:>4}  {entry.message}\n" + "".join(f"      {x}\n" for x in lines)
            )
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
