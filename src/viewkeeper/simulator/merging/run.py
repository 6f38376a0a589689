"""One simulated run of several views, for people: the engine in a seeded world, its tables and its verdict."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from viewkeeper.engine import messages as m
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.merging.messages import ActionList
from viewkeeper.merging.rows import Colour
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.protocols.choice import period_seconds
from viewkeeper.simulator.engine.generator import Mix, scenario
from viewkeeper.simulator.engine.judging import EngineVerdict, judged
from viewkeeper.simulator.engine.world import EngineWorld
from viewkeeper.simulator.merging.journal import MergeJournal, list_text, relevance_text


class Painting(enum.Enum):
    """What the views of a run promise."""

    COMPLETE = "complete"
    MIXED = "mixed"
    CONVERGENT = "convergent"


_MIXES = {
    Painting.COMPLETE: Mix(levels=("complete",), views_max=6),
    Painting.MIXED: Mix(is_periodic=True, views_max=6),
    Painting.CONVERGENT: Mix(levels=("convergent",), views_max=6),
}


@dataclass(frozen=True)
class MergeOptions:
    """Everything that a run depends on besides its seed; 0 views: as many as the seed says."""

    painting: Painting = Painting.COMPLETE
    views: int = 0
    sources: int = 3
    transactions: int = 10

    @property
    def mix(self) -> Mix:
        found = _MIXES[self.painting]
        return Mix(
            transactions=self.transactions,
            views_max=found.views_max,
            views=self.views,
            sources=self.sources,
            levels=found.levels,
            is_periodic=found.is_periodic,
        )


@dataclass(frozen=True)
class MergeOutcome:
    """What a run was, and what the judge found: each group's level by search, and everything that is wrong."""

    seed: int
    # Who keeps each view.
    views: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    verdict: EngineVerdict

    @property
    def is_good(self) -> bool:
        return not self.verdict.problems

    def as_dict(self) -> dict[str, Any]:
        found = self.verdict.levels
        return {
            "seed": self.seed,
            "views": self.views,
            "groups": [list(group) for group in self.groups],
            "levels": {
                group: {"level": str(level), "expected_level": str(expected)}
                for group, (level, expected) in found.items()
            },
            "problems": list(self.verdict.problems),
            "transactions": self.verdict.counts["transactions"],
            "states": self.verdict.states,
            "changing": self.verdict.changing,
        }


def simulated_merge(
    seed: int, options: MergeOptions = MergeOptions(), journal: MergeJournal | None = None
) -> MergeOutcome:
    """Run one seed to its end and judge it."""
    world = _WatchedWorld(seed, options, journal or MergeJournal())
    world.run()
    views = world.scenario.views
    return MergeOutcome(
        seed,
        {name: _keeper(view.definition, view.choice.protocol) for name, view in views.items()},
        tuple(tuple(group.scope.views) for group in world.engine.groups),
        judged(world),
    )


def _keeper(definition: Any, protocol: str) -> str:
    seconds = period_seconds(definition)
    return protocol if seconds is None else f"{protocol}, every {seconds:g} s"


Painted = dict[int, dict[str, Colour]]


class _WatchedWorld(EngineWorld):
    """Tells a journal whatever changes in the view update tables of its groups."""

    def __init__(self, seed: int, options: MergeOptions, journal: MergeJournal) -> None:
        self._journal = journal
        self._painted: dict[int, Painted] = {}
        self._released: list[str] = []
        super().__init__(scenario(seed, options.mix), seed)

    def _take(self, actions: Any) -> None:
        listed = tuple(actions)
        for _, action in listed:
            if isinstance(action, m.Commit):
                views = sorted({view for contents in action.contents for view in contents})
                number = sum(arrival.size for arrival in action.batch)
                shown = "one transaction" if number == 1 else f"{number} transactions"
                text = f"→ commit {action.number}: {', '.join(views)}, with {shown}"
                self._released.append(text)
        super()._take(listed)

    def _step(self, event: Any) -> None:
        super()._step(event)
        released, self._released = self._released, []
        messages = [text for group in self.engine.groups for text in self._seen(group)]
        if messages or released:
            several = len(self.engine.groups) > 1
            tables = [
                (f"group {g.number}" if several else "", g.jobs.merge.table)
                for g in self.engine.groups
            ]
            self._journal.add("; ".join(messages) or "commit is done", tables, released)

    def _seen(self, group: GroupMachine) -> list[str]:
        """What has arrived since the group's table was last looked at."""
        before, now = self._painted.get(group.number, {}), _colours(group.jobs.merge.table)
        self._painted[group.number] = now
        found = [relevance_text(row, cells) for row, cells in now.items() if row not in before]
        white = Colour.WHITE
        for view in group.scope.views:
            rows = [
                row
                for row, cells in now.items()
                if view in cells and cells[view] is not white
                if before.get(row, {}).get(view, white) is white
            ]
            if rows:
                found.append(list_text(ActionList(view, tuple(rows))))
        return found


def _colours(table: ViewUpdateTable) -> Painted:
    return {n: {v: cell.colour for v, cell in row.cells.items()} for n, row in table.rows.items()}
