"""What merge processes went through, for people: each message, and the tables after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.merging.drawing import Drawing, drawing_of
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    Event,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.table import ViewUpdateTable


@dataclass(frozen=True)
class MergeEntry:
    """One message: what arrived, the groups' tables after it, what goes to the warehouse."""

    message: str
    drawings: tuple[tuple[str, Drawing], ...]
    commits: tuple[str, ...]


class MergeJournal:
    """The messages of a run. ``states``: beside the colours, as the paper has it for PA."""

    def __init__(self, *, states: bool = True) -> None:
        self.entries: list[MergeEntry] = []
        self._states = states

    def add(
        self, message: str, tables: Iterable[tuple[str, ViewUpdateTable]], commits: Iterable[str]
    ) -> None:
        """A message has arrived; the tables of the groups, by a heading each, as they are then."""
        drawn = [(name, drawing_of(table, states=self._states)) for name, table in tables]
        shown = tuple((name, drawing) for name, drawing in drawn if not drawing.is_empty)
        self.entries.append(MergeEntry(message, shown, tuple(commits)))

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


def event_text(event: Event) -> str:
    """An event as the paper writes it."""
    match event:
        case RelevanceArrived(row, views):
            return relevance_text(row, views)
        case ActionListArrived(action_list):
            return list_text(action_list)
        case WarehouseCommitted(number):
            return f"commit {number} is done"


def relevance_text(row: int, views: Iterable[str]) -> str:
    return f"REL_{row} = {{{', '.join(views)}}}"


def list_text(action_list: ActionList) -> str:
    covers = ", ".join(f"U_{row}" for row in action_list.rows)
    return f"{action_list}, for {covers}" if len(action_list.rows) > 1 else str(action_list)


def commit_text(commit: CommitTransaction) -> str:
    rows = ", ".join(f"U_{row}" for row in commit.rows)
    return f"→ commit {commit.number}: {rows} by {', '.join(map(str, commit.lists))}"
