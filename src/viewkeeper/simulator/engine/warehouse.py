"""The simulated ledger: what survives a kill. Every state that readers could see is remembered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from viewkeeper.algebra import Bag
from viewkeeper.engine.view import View
from viewkeeper.protocols.choice import block_size
from viewkeeper.simulator.engine.readers import Numbers
from viewkeeper.simulator.engine.sources import number_of
from viewkeeper.sources.interface import Position, SchemaChange

Positions = dict[str, Position]


@dataclass(frozen=True)
class Shown:
    """A state of some views that belong together, and the cut that it is claimed to be."""

    rows: Mapping[str, Bag]
    views: Mapping[str, View]
    cut: Mapping[str, float]
    # Whether it was reached by one transaction (or one global one) after the state before.
    is_step: bool = True
    # For how long no feed had delivered anything.
    quiet_seconds: float = 0.0

    @property
    def block(self) -> int:
        """How many transactions lie between two states of views that move together, by their texts."""
        return math.lcm(*(block_size(view.definition) for view in self.views.values()))


@dataclass
class SimulatedLedger:
    """What was committed."""

    views: dict[str, View] = field(default_factory=dict)
    extents: dict[str, Bag] = field(default_factory=dict)
    positions: dict[str, Positions] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    taken: dict[str, tuple[SchemaChange, ...]] = field(default_factory=dict)
    ties: list[tuple[str, ...]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    commits: int = 0
    # For how long no feed has delivered anything.
    quiet_seconds: float = 0.0
    numbers: Numbers = field(default_factory=Numbers)

    @property
    def standing(self) -> dict[str, Positions]:
        return {v: at for v, at in self.positions.items() if v not in self.ended}

    def show(
        self, views: Iterable[str], cut: Mapping[str, float], state: int, *, is_step: bool = True
    ) -> None:
        """Remember what these views show now: in the next entry's state of that number, from 1; 0 where it has none."""
        names = [name for name in views if name in self.extents and name not in self.ended]
        rows = {name: self.extents[name] for name in names}
        definitions = {name: self.views[name] for name in names}
        self.shown.append(Shown(rows, definitions, dict(cut), is_step, self.quiet_seconds))
        self.numbers.show(definitions, rows, cut, self.numbers.last + state)

    def enter(self, states: int, places: str = "") -> None:
        """An entry is written: this number of states, and the positions of now."""
        standing = {v: at for v, at in self.standing.items() if v in self.extents}
        self.numbers.enter(standing, states, places)


def changes_of(contents: Iterable[Mapping[str, Mapping[int, Bag]]]) -> dict[str, dict[int, Bag]]:
    """What several lists change together, by view and transaction."""
    changes: dict[str, dict[int, Bag]] = {}
    for each in contents:
        for name, found in each.items():
            mine = changes.setdefault(name, {})
            for number, change in found.items():
                mine[number] = mine[number] + change if number in mine else change
    return changes


def cut_of(positions: Mapping[str, Mapping[str, Position]]) -> dict[str, float]:
    """The cut of several views: of each source, the furthest position of any of them."""
    found: dict[str, float] = {}
    for cut in positions.values():
        for source, at in cut.items():
            found[source] = max(number_of(at), found.get(source, 0))
    return found
