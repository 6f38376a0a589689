"""What views showed, judged once more without any claim: the independent checker searches for cuts.

All views of a state are judged together. Their history is parted where a definition becomes another one; in each part
relations are seen as the definitions read them. So a part may go across schema changes, and what such a change does to rows counts as a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import Schema
from viewkeeper.consistency import SourceHistories, Verdict, check
from viewkeeper.consistency.checker import Undecided
from viewkeeper.simulator.engine.shapes import fitting
from viewkeeper.simulator.engine.sources import SimulatedSource
from viewkeeper.simulator.engine.warehouse import Shown
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned

if TYPE_CHECKING:
    from viewkeeper.simulator.engine.world import EngineWorld


@dataclass
class Part:
    """States of the same views under the same definitions, from the first to the last."""

    definitions: Mapping[str, ViewDefinition]
    shown: list[Shown]
    # Whether the views had no other state behind these, and were to be brought to the end.
    is_last: bool = False

    @cached_property
    def schemas(self) -> dict[RelationName, Schema]:
        return dict(self._read())

    def _read(self) -> Iterator[tuple[RelationName, Schema]]:
        for definition in self.definitions.values():
            for occurrence in (o for t in definition.all_terms for o in t.occurrences):
                if occurrence.source != LOCAL:
                    yield occurrence.name, occurrence.schema

    def comparable(self) -> Iterator[Part]:
        """The part; or one for each view, where views read different columns of a relation."""
        if all(self.schemas[name] == schema for name, schema in self._read()):
            yield self
        else:
            for name, definition in self.definitions.items():
                yield Part({name: definition}, self.shown, self.is_last)


def parts_of(world: EngineWorld) -> Iterator[Part]:
    """What each group of views showed, until its views or their definitions became others."""
    found: list[Part] = []
    latest: dict[str, Part] = {}
    for shown in world.ledger.shown:
        definitions = {n: pruned(shown.views[n].definition) for n in sorted(shown.rows)}
        known = {id(latest.get(name)): latest.get(name) for name in definitions}
        part = next(iter(known.values())) if len(known) == 1 else None
        if part is None or part.definitions != definitions:
            part = Part(definitions, [])
            found.append(part)
        part.shown.append(shown)
        latest |= dict.fromkeys(definitions, part)
    over = world.ledger.ended.keys() | world.frozen
    for part in found:
        part.is_last = all(latest[n] is part and n not in over for n in part.definitions)
        yield from part.comparable()


def searched(world: EngineWorld, part: Part) -> tuple[Verdict, Level] | None:
    """What a part shows, and what it should; nothing where there is too much to search."""
    histories = _histories(world, part)
    if histories is None:
        world.counts["parts not searched"] += 1
        return None
    definitions = list(part.definitions.values())
    states = [tuple(each.rows[name] for name in part.definitions) for each in part.shown]
    try:
        block = max(each.block for each in part.shown)
        verdict = check(definitions, histories, states, block=block)
    except Undecided:
        world.counts["parts not searched"] += 1
        return None
    world.counts["parts searched"] += 1
    return verdict, _wanted(world, part)


def _wanted(world: EngineWorld, part: Part) -> Level:
    if any(each.level is Level.CONVERGENT for each in part.definitions.values()):
        return Level.CONVERGENT if part.is_last else Level.NONE
    # Views that move together show what the weakest of them shows.
    is_complete = all(
        view.choice.level is Level.COMPLETE for each in part.shown for view in each.views.values()
    )
    # A filling, and a transaction of several sources, show several transactions at once.
    is_complete = is_complete and all(each.is_step for each in part.shown[1:])
    return Level.COMPLETE if is_complete and not world.scenario.has_ties else Level.STRONG


def _histories(world: EngineWorld, part: Part) -> SourceHistories | None:
    """What the sources did between the first of the states and the last; None where a relation is not there."""
    start, end = part.shown[0].cut, part.shown[-1].cut
    schemas = part.schemas
    initial: dict[RelationName, Bag] = {}
    scripts: dict[str, list[Transaction]] = {}
    for source in sorted({name.source for name in schemas}):
        known = world.sources[source]
        places = _places(start[source], known.end if part.is_last else end[source])
        seen = [_seen(known, at, schemas) for at in (start[source], *places)]
        if None in seen:
            return None
        initial |= seen[0] or {}
        scripts[source] = [
            Transaction(source, number, tuple((n, after[n] + -before[n]) for n in after))
            for number, (before, after) in enumerate(pairwise(filter(None, seen)), 1)
        ]
    return SourceHistories(initial, scripts)


def _places(start: float, end: float) -> list[float]:
    """The places of a log behind one, up to another."""
    whole = [float(n) for n in range(int(start) + 1, int(end) + 1)]
    return [*whole, end] if end % 1 and end > start else whole


def _seen(
    source: SimulatedSource, at: float, schemas: Mapping[RelationName, Schema]
) -> dict[RelationName, Bag] | None:
    """A source's relations as a definition reads them at a cut; None where one is not there."""
    found: dict[RelationName, Bag] = {}
    for name, schema in schemas.items():
        if name.source == source.name:
            rows = fitting(source, at, name.relation, schema)
            if rows is None:
                return None
            found[name] = rows.only(schema.names)
    return found
