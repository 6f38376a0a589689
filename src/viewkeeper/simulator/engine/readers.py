"""Readers of several views: what they get at the newest common cut, by the warehouse's own rule.

Views of different groups move on their own. `warehouse.one_cut` says at which number each is read, from the ledger
alone; here the ledger is the simulated one, and every entry is once the newest. What is read must be the views at
one cut of the sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.view import View
from viewkeeper.simulator.engine.sources import START, SimulatedSource
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level
from viewkeeper.warehouse.entries import Entry
from viewkeeper.warehouse.one_cut import Apart, numbers_at_one_cut
from viewkeeper.warehouse.places import Place, Places, PlacesMaker, place_of


@dataclass(frozen=True)
class Numbered:
    """A view in the state of a number, since an entry, and the cut that it is claimed to be."""

    entry: int
    number: int
    view: View
    rows: Bag
    cut: Mapping[str, float]


@dataclass
class Numbers:
    """State numbers and the entries of the ledger that give them, as the warehouse writes them."""

    entries: list[Entry] = field(default_factory=list)
    last: int = 0
    states: dict[str, list[Numbered]] = field(default_factory=dict)
    # How often each view was filled.
    incarnations: dict[str, int] = field(default_factory=dict)

    def show(
        self,
        views: Mapping[str, View],
        rows: Mapping[str, Bag],
        cut: Mapping[str, float],
        number: int,
    ) -> None:
        """These views in the state of a number, in the entry that comes next."""
        for name, view in views.items():
            mine = {source: cut[source] for source in view.definition.sources}
            state = Numbered(len(self.entries), number, view, rows[name], mine)
            self.states.setdefault(name, []).append(state)

    def enter(
        self, positions: Mapping[str, Mapping[str, Position]], states: int, places: str = ""
    ) -> None:
        """An entry with this number of new states, behind which views stand at these positions."""
        told = {
            view: {
                "incarnation": self.incarnations[view],
                "positions": {source: _told(at) for source, at in cut.items()},
            }
            for view, cut in positions.items()
        }
        first = self.last + 1
        self.last += states
        number = len(self.entries)
        self.entries.append(
            Entry(
                number,
                "epoch",
                number,
                first,
                self.last,
                0,
                1,
                START,
                views_json=json.dumps(told),
                places=places,
            )
        )

    def as_of(self, view: str, number: int, entry: int) -> Numbered | None:
        known = (each for each in reversed(self.states[view]) if each.entry <= entry)
        return next((each for each in known if each.number <= number), None)


def places_of(views: tuple[str, ...], batch: tuple[Arrival, ...], states: Any) -> str:
    """Where each transaction of an epoch stands, and in which of its states it shows."""
    makers: dict[str, PlacesMaker] = {}
    for arrival, state in zip(batch, states, strict=True):
        maker = makers.setdefault(arrival.origin.source, PlacesMaker())
        maker.add([int(state)], [_place(arrival.origin.position)])
    made = {source: maker.made() for source, maker in makers.items()}
    return Places(frozenset(views), {s: m for s, m in made.items() if m is not None}).encoded()


def read_together(numbers: Numbers) -> Iterator[list[Numbered]]:
    """What a reader of all views gets, at the end of every entry."""
    for place, entry in enumerate(numbers.entries):
        views = [name for name in json.loads(entry.views_json) if _is_strict(numbers, name, place)]
        if len(views) < 2:
            continue
        try:
            chosen = numbers_at_one_cut(
                reversed(numbers.entries[: place + 1]), views, entry.last_txn
            )
        except Apart:
            continue  # one of them has no state that is old enough
        found = [numbers.as_of(view, number, place) for view, number in chosen.items()]
        yield [each for each in found if each is not None]


def _is_strict(numbers: Numbers, view: str, entry: int) -> bool:
    """Convergent views are at no cut."""
    state = numbers.as_of(view, numbers.last, entry)
    return state is not None and state.view.definition.level is not Level.CONVERGENT


def common_cut(states: list[Numbered], sources: Mapping[str, SimulatedSource]) -> dict[str, float]:
    """The first cut that views are at which were read together, if there is one.

    A view is at every cut from the last entry of a log that it reads something of, to the one before the next.
    """
    cut: dict[str, float] = {}
    for state in states:
        read = {*state.view.definition.relations}
        for source, upto in state.cut.items():
            last = upto if upto % 1 else _last_read(sources[source], int(upto), read)
            cut[source] = max(last, cut.get(source, 0))
    return cut


def _last_read(source: SimulatedSource, upto: int, read: set[RelationName]) -> float:
    for number in range(upto, 0, -1):
        for item in source.log[number - 1]:
            changed = [item] if isinstance(item, SchemaChange) else item.changes
            if any(RelationName(source.name, each.relation) in read for each in changed):
                return float(number)
    return 0.0


def _told(position: Position) -> dict[str, Any]:
    return {"seq": position["n"], "schema": position.get("part", 0), "history": "log"}


def _place(position: Position) -> Place:
    return place_of(_told(position))
