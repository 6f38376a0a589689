"""Every order in which things can happen in a small world; each different world is visited once.

The choices span a graph: different orders of independent events lead to the same world. The number of interleavings
(paths) is counted exactly by adding up over the graph. What makes two worlds one is the world's own matter
(`World.identity`). A path that comes back to a world on it would send messages for ever: that is refused.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from viewkeeper.algebra import Bag
from viewkeeper.errors import UsageError, invariant
from viewkeeper.simulator.kernel.world import Choice, Counts, World
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import ViewDefinition

WORLDS_MAX = 2_000_000

AnyWorld = TypeVar("AnyWorld", bound=World)
# What is done at the end of every path: the world at rest, and the choices that led there.
Judge = Callable[[AnyWorld, tuple[Choice, ...]], None]


@dataclass(frozen=True)
class Explored:
    """How much there was: paths, different worlds, steps between them, and worlds at rest."""

    interleavings: int
    worlds: int
    steps: int
    ends: int


def explore_all(
    world: AnyWorld,
    judge: Judge[AnyWorld],
    on_progress: Callable[[int], None] = lambda worlds: None,
) -> Explored:
    """Search from here, every end judged; raises UsageError when there is too much for that."""
    return _Search(judge, on_progress).run(world)


@dataclass
class _Visit:
    """A world on the way down: what could happen there, and how many interleavings were found below."""

    key: bytes
    snapshot: bytes
    choices: list[Choice]
    next: int = 0
    paths: int = 0


class _Search(Generic[AnyWorld]):
    def __init__(self, judge: Judge[AnyWorld], on_progress: Callable[[int], None]) -> None:
        self.judge = judge
        self.on_progress = on_progress
        self.steps = self.ends = 0
        self._snapshots = Snapshots()
        self._paths_from: dict[bytes, int] = {}

    def run(self, world: AnyWorld) -> Explored:
        """Depth first with an explicit stack: an interleaving can be longer than Python's recursion."""
        stack = [self._visit(world)]
        on_path = {stack[0].key}
        while True:
            visit = stack[-1]
            if visit.next >= len(visit.choices):
                self._paths_from[visit.key] = visit.paths
                on_path.discard(visit.key)
                stack.pop()
                if not stack:
                    return Explored(visit.paths, len(self._paths_from), self.steps, self.ends)
                stack[-1].paths += visit.paths
                continue
            child: AnyWorld = self._snapshots.restored(visit.snapshot)
            child.take(visit.choices[visit.next])
            visit.next += 1
            self.steps += 1
            following = self._visit(child)
            known = self._paths_from.get(following.key)
            if known is not None:
                visit.paths += known
                continue
            invariant(
                following.key not in on_path, "messages are sent for ever: a state comes back"
            )
            stack.append(following)
            on_path.add(following.key)
            if not following.choices:
                following.paths = 1
                self.ends += 1
                child.require_finished()
                self.judge(child, tuple(v.choices[v.next - 1] for v in stack[:-1]))
            self._count()

    def _visit(self, world: AnyWorld) -> _Visit:
        snapshot, identity = self._snapshots.taken(world), world.identity
        compared = snapshot if identity is None else self._snapshots.taken(identity)
        # Worlds are many and large: a digest stands for one that was left behind.
        key = hashlib.blake2b(compared, digest_size=16).digest()
        return _Visit(key, snapshot, world.choices())

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


class Constant:
    """Of this, a world has one that never changes for it: copies of the world share it."""


class Snapshots:
    """Worlds as bytes: equal worlds give equal bytes, and a world can be restored from them.

    What never changes is kept aside and referred to by number, bags by their value: that makes
    snapshots small, and the comparison independent of who made which object. A world must hold each part that
    changes in one place only: a second reference would be restored as a second object.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._named_by: dict[type, Callable[[Any], Any] | None] = {}

    def taken(self, world: Any) -> bytes:
        buffer = io.BytesIO()
        pickler = _Pickler(buffer, self)
        # Without the memo two equal objects are written alike whether or not they are one object.
        pickler.fast = True
        pickler.dump(world)
        return buffer.getvalue()

    def restored(self, snapshot: bytes) -> Any:
        return _Unpickler(io.BytesIO(snapshot), self).load()

    def number_of(self, thing: Any) -> int | None:
        kind = type(thing)
        if kind not in self._named_by:
            self._named_by[kind] = _named_by(kind)
        named_by = self._named_by[kind]
        if named_by is None:
            return None
        key = named_by(thing)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._kept)
            self._kept.append(thing)
        return number

    def numbered(self, number: int) -> Any:
        return self._kept[number]


def _named_by(kind: type) -> Callable[[Any], Any] | None:
    """What things of this type are known by where they are kept aside; None for all others."""
    if issubclass(kind, Bag | frozenset):  # a set is pickled in the order of its hashes
        return lambda thing: thing
    if issubclass(kind, Transaction | Assembly | ViewDefinition | Constant):
        return id
    # What was counted is no part of what a world is.
    return (lambda thing: Counts) if issubclass(kind, Counts) else None


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
