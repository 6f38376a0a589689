"""Does anything wait that need not? Asked of a world in which nothing can happen but that time passes.

Then everything that has arrived is committed, but what periodic views hold back: the transactions that such a view
reads while its period runs, what their sources committed later, and what changes a view together with one of those.
This is decided from the sources' logs, the ledger and the jobs that were begun, not from what the engine believes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewkeeper.protocols.choice import period_seconds
from viewkeeper.simulator.engine.selection import selects
from viewkeeper.simulator.engine.sources import number_of
from viewkeeper.sources.interface import SourceTransaction

if TYPE_CHECKING:
    from viewkeeper.engine.machine import GroupMachine
    from viewkeeper.simulator.engine.world import EngineWorld

# Timers that end sooner are about to be looked at: what they lead to is not late.
SOON_SECONDS = 1.0


@dataclass(frozen=True)
class _Missing:
    """A transaction that has arrived and is not shown by the views that it changes."""

    source: str
    number: int
    views: frozenset[str]


def late(world: EngineWorld) -> list[str]:
    """The transactions that should be committed by now, in words."""
    sources, engine = world.sources, world.engine
    if any(each.hidden or engine.is_full(name) for name, each in sources.items()):
        return []
    found: list[str] = []
    for group in engine.groups:
        is_at_rest = group.is_idle and not (group.is_over or group.predecessors)
        if is_at_rest and not group.intake.due and group.wake_at > world.now + SOON_SECONDS:
            found += _late_in(world, group)
    return found


def _late_in(world: EngineWorld, group: GroupMachine) -> Iterator[str]:
    missing = list(_missing(world, group))
    # A period begins with its group; when that was, is not known better than by when it was first looked at.
    since = world.groups_since.setdefault(group.number, world.now)
    waits_for = {
        name
        for name, view in group.scope.views.items()
        if (period := period_seconds(view.definition)) is not None
        and world.now < max(world.begun_at.get(name, since), since) + period
    }
    held = {each for each in missing if each.views & waits_for}
    while True:
        views = {view for each in held for view in each.views}
        first = {s: min(e.number for e in held if e.source == s) for s in {e.source for e in held}}
        more = {
            each
            for each in missing
            if each.views & views or each.number > first.get(each.source, each.number)
        }
        if more <= held:
            break
        held |= more
    for each in missing:
        if each not in held:
            yield f"{each.source} {each.number} waits at {world.now:.1f} s, for nothing"


def _missing(world: EngineWorld, group: GroupMachine) -> Iterator[_Missing]:
    positions = world.ledger.positions
    for source, known in world.sources.items():
        entries = ((number, item) for number, entry in enumerate(known.log, 1) for item in entry)
        for number, item in entries:
            if not isinstance(item, SourceTransaction) or item.tie is not None:
                continue
            views = {
                name
                for name, view in group.scope.views.items()
                if name in positions
                and source in positions[name]
                and number_of(positions[name][source]) < number
                and selects(view.definition, item)
            }
            if views:
                yield _Missing(source, number, frozenset(views))
