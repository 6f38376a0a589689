"""Every interleaving of a small scenario, and the checker's verdict on each.

The world's choices span a graph: different orders of independent events lead to the same world. Each
distinct world is visited once, and the number of interleavings (paths) is counted exactly by adding up
over the graph. A world includes the history of states that a reader saw, so no two interleavings with
different histories are ever taken for one.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.consistency import Verdict, check, check_order
from viewkeeper.errors import UsageError
from viewkeeper.protocols.messages import Protocol
from viewkeeper.simulator.scenario import Network, Scenario
from viewkeeper.simulator.world import Choice, Counters, World
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import ViewDefinition

WORLDS_MAX = 2_000_000


@dataclass
class Exploration:
    """What the search saw. ``first_violation`` comes with the choices that lead to it."""

    protocol: str
    interleavings: int = 0
    worlds: int = 0
    histories: int = 0
    violations: int = 0
    levels: dict[str, int] = field(default_factory=dict)
    first_violation: Verdict | None = None
    first_path: tuple[Choice, ...] = ()


def explore(
    protocol: type[Protocol],
    scenario: Scenario,
    network: Network = Network(),  # noqa: B008  (immutable)
    on_progress: Callable[[int], None] = lambda worlds: None,
) -> Exploration:
    """Search all interleavings; raises UsageError when the scenario is too large for that."""
    return _Explorer(protocol, scenario, on_progress).run(World(scenario, protocol, network))


class _Explorer:
    def __init__(
        self,
        protocol: type[Protocol],
        scenario: Scenario,
        on_progress: Callable[[int], None],
    ) -> None:
        self.protocol = protocol
        self.scenario = scenario
        self.histories = scenario.histories
        self.result = Exploration(protocol.name)
        self.on_progress = on_progress
        self._snapshots = Snapshots()
        self._paths_from: dict[bytes, int] = {}
        self._verdicts: dict[Any, tuple[Verdict, Verdict | None]] = {}

    def run(self, world: World) -> Exploration:
        """Depth first with an explicit stack: an interleaving can be longer than Python's recursion."""
        root = self._snapshots.taken(world)
        stack: list[_Visit] = [_Visit(root, world.choices())]
        while stack:
            visit = stack[-1]
            if visit.next >= len(visit.choices):
                self._paths_from[visit.key] = visit.paths
                stack.pop()
                if stack:
                    stack[-1].paths += visit.paths
                continue
            choice = visit.choices[visit.next]
            visit.next += 1
            child = self._snapshots.restored(visit.key)
            child.take(choice)
            key = self._snapshots.taken(child)
            known = self._paths_from.get(key)
            if known is not None:
                visit.paths += known
                continue
            choices = child.choices()
            leaf = not choices
            stack.append(_Visit(key, choices, paths=1 if leaf else 0))
            if leaf:
                self._judge(child, tuple(v.choices[v.next - 1] for v in stack[:-1]))
            self._count()
        self.result.interleavings = self._paths_from[root]
        self.result.worlds = len(self._paths_from)
        self.result.histories = len({key[:2] for key in self._verdicts})
        return self.result

    def _count(self) -> None:
        worlds = len(self._paths_from)
        if worlds > WORLDS_MAX:
            raise UsageError(
                "scenario-too-large",
                "there are too many interleavings to try them all",
                detail=f"more than {WORLDS_MAX} different worlds",
                hint="take fewer sources or transactions, or use `lab swarm`",
            )
        if worlds % 1000 == 0:
            self.on_progress(worlds)

    def _judge(self, world: World, path: tuple[Choice, ...]) -> None:
        world.require_finished()
        key = (tuple(world.states), tuple(world.claims), self._order_of(world))
        if key not in self._verdicts:
            self._verdicts[key] = self._judged(*key)
        verdict, order = self._verdicts[key]
        level = str(verdict.level)
        self.result.levels[level] = self.result.levels.get(level, 0) + 1
        missed = [v for v in (verdict, order) if v and not v.meets(self.protocol.level)]
        if missed:
            self.result.violations += 1
            if self.result.first_violation is None:
                self.result.first_violation, self.result.first_path = missed[0], path

    def _order_of(self, world: World) -> tuple[str, ...] | None:
        return tuple(world.delivered) if self.protocol.in_order else None

    def _judged(
        self, states: tuple[Any, ...], claims: tuple[Cut, ...], delivered: tuple[str, ...] | None
    ) -> tuple[Verdict, Verdict | None]:
        """The verdict on a history, and that over the order of delivery where it is promised."""
        views, shown = [self.scenario.definition], [(state,) for state in states]
        verdict = check(views, self.histories, shown, claims)
        if delivered is None:
            return verdict, None
        return verdict, check_order(views, self.histories, delivered, shown, claims)


@dataclass
class _Visit:
    """A world on the way down: what could happen there, and how many interleavings were found below."""

    key: bytes
    choices: list[Choice]
    next: int = 0
    paths: int = 0


class Snapshots:
    """Worlds as bytes: equal worlds give equal bytes, and a world can be restored from them.

    What never changes is kept aside and referred to by number, bags by their value: that makes
    snapshots small, and the comparison independent of who made which object.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def taken(self, world: World) -> bytes:
        buffer = io.BytesIO()
        pickler = _Pickler(buffer, self)
        # Without the memo two equal objects are written alike whether or not they are one object.
        pickler.fast = True
        pickler.dump(world)
        return buffer.getvalue()

    def restored(self, snapshot: bytes) -> World:
        world: World = _Unpickler(io.BytesIO(snapshot), self).load()
        return world

    def number_of(self, thing: Any) -> int | None:
        if isinstance(thing, Bag | frozenset):  # a set is pickled in the order of its hashes
            key: Any = thing
        elif isinstance(thing, Transaction | Assembly | ViewDefinition):
            key = id(thing)
        elif isinstance(thing, Counters):
            key = "counters"  # no part of what a world is
        else:
            return None
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._kept)
            self._kept.append(thing)
        return number

    def numbered(self, number: int) -> Any:
        return self._kept[number]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, snapshots: Snapshots) -> None:
        super().__init__(file, protocol=5)
        self._snapshots = snapshots

    def persistent_id(self, obj: Any) -> int | None:
        return self._snapshots.number_of(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, snapshots: Snapshots) -> None:
        super().__init__(file)
        self._snapshots = snapshots

    def persistent_load(self, pid: int) -> Any:
        return self._snapshots.numbered(pid)
