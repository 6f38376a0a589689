"""Every interleaving of a small quiescent ring: is it quiescent, and does nothing wait for ever?

States that were reached before are not explored again. A path that comes back to a state of its own
sends messages for ever; a state in which nothing can happen must be one of rest. Both are checked, and
the proof's invariants in every state on the way.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from viewkeeper.errors import invariant
from viewkeeper.simulator.rings.world import RingWorld
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import ViewDefinition

STATES_MAX = 500_000


@dataclass(frozen=True)
class Exploration:
    """How much there was: distinct states, steps between them, and states of rest."""

    states: int
    steps: int
    ends: int


@dataclass
class _Visit:
    """A state on the current path, and its successors that are still to be seen."""

    key: Hashable
    successors: Iterator[RingWorld]


def explored(world: RingWorld) -> Exploration:
    """Go through every interleaving from here; raises InvariantViolated where something is wrong."""
    steps = ends = 0
    start = state_key(world)
    seen: set[Hashable] = {start}
    on_path: set[Hashable] = {start}
    path = [_Visit(start, _successors(world))]
    while path:
        following = next(path[-1].successors, None)
        if following is None:
            on_path.discard(path.pop().key)
            continue
        steps += 1
        key = state_key(following)
        invariant(key not in on_path, "messages are sent for ever: a state comes back")
        if key in seen:
            continue
        invariant(len(seen) < STATES_MAX, "there are too many states to explore")
        seen.add(key)
        if not following.choices():
            following.require_finished()
            invariant(not following.on_the_way, "messages are on their way in a state of rest")
            # With the first invariant this says that the view is the one after all transactions.
            invariant(
                all(
                    dict(cut).items() <= dict(following.committed).items()
                    for cut in following.serial_cuts
                ),
                "changes wait for ever in a state of rest",
                detail=f"{following.serial_cuts} of {following.committed}",
            )
            ends += 1
        on_path.add(key)
        path.append(_Visit(key, _successors(following)))
    return Exploration(len(seen), steps, ends)


def _successors(world: RingWorld) -> Iterator[RingWorld]:
    """A copy of the world for each thing that could happen; equal messages are one choice."""
    for choice in world.choices():
        following = world.forked()
        following.take(choice)
        yield following


def state_key(world: RingWorld) -> Hashable:
    """Everything that what happens from here on depends on."""
    return (
        world.committed,
        frozenset(Counter(world.on_the_way).items()),
        world.states[-1],
        len(world.queries),
        world.ticks,
        tuple(_frozen(machine) for machine in world.machines.values()),
    )


def _frozen(value: object) -> Hashable:
    match value:
        case None | Assembly() | ViewDefinition():
            return None  # never changes
        case dict():
            return tuple((key, _frozen(item)) for key, item in value.items())
        case list() | deque():
            return tuple(_frozen(item) for item in value)
        case Hashable() if type(value).__hash__ is not object.__hash__:
            return value
        case _:
            return _frozen(vars(value))
