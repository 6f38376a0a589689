"""Parallel SWEEP: the sides of a sweep at once, and several updates in flight.

Paper: SWEEP (1997), section 5.3, the two optimisations it sketches. Level: complete. Assumes: nothing
beyond reliable delivery.

*Sides at once.* Take the changed occurrence out of the join graph; what remains falls apart into
branches that share no predicate (left and right, for a chain). Each branch is swept on its own and the
results are joined on the changed row. In a bag that join would square the changed rows' counts, so the
branches start from each distinct changed row once, and the counts come in with the changed rows at the
end. NULL must meet NULL there: the same row, not an equal value.

*Updates pipelined.* A sweep wants each relation after exactly the updates that arrived before its own;
answers say what they reflect, so any number of sweeps can run at once, each with its own correction.
Changes are installed in the order of arrival. ``in_flight_max`` bounds how many run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.expressions import Column, Comparison, conjunction
from viewkeeper.protocols.messages import Action, AnswerArrived, Assumptions
from viewkeeper.protocols.sweeping import Sweep, branches_of, sweeps_of
from viewkeeper.protocols.view_manager import ViewManager
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


@dataclass
class _Flight:
    """One update on its way: for each changed occurrence, its branches, done or not."""

    transaction: Transaction
    starts: list[Sweep]
    branches: dict[tuple[int, int], Sweep] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return all(branch.is_complete for branch in self.branches.values())


@dataclass(frozen=True)
class _Asked:
    """Which branch of which update a question belongs to."""

    flight: int
    branch: tuple[int, int]


class ParallelSweep(ViewManager):
    """Several updates at once, several sources at once; installed in order of arrival."""

    name = "parallel-sweep"
    asks = "rows by key, n − 1 questions for each update, its two sides at once"
    level = Level.COMPLETE
    in_order = True
    assumes = Assumptions()
    paper = "SWEEP, section 5.3"
    in_flight_max = 16

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self.queue: deque[tuple[Transaction, CutVector]] = deque()
        self._flights: dict[int, _Flight] = {}
        self._started = 0

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        before = self.arrived.advanced(transaction.source, transaction.number - 1)
        self.queue.append((transaction, before))
        yield from self._proceed()

    def answer_arrived(self, asked: _Asked, answer: AnswerArrived) -> Iterable[Action]:
        flight = self._flights[asked.flight]
        sweep = flight.branches[asked.branch]
        (rows,) = answer.answers
        sweep = sweep.answered(self.assemblies[sweep.term], self.recent, rows, answer.reflects)
        flight.branches[asked.branch] = sweep
        if not sweep.is_complete:
            yield self._question(asked.flight, asked.branch, sweep)
        yield from self._proceed()

    def _proceed(self) -> Iterator[Action]:
        """Install what is complete and first in line; start what there is room for."""
        while True:
            first = next(iter(self._flights), None)
            if first is not None and self._flights[first].is_complete:
                flight = self._flights.pop(first)
                yield self.install(self._merged(flight), (flight.transaction,))
            elif self.queue and len(self._flights) < self.in_flight_max:
                yield from self._start(*self.queue.popleft())
            else:
                return

    def _start(self, transaction: Transaction, before: CutVector) -> Iterator[Action]:
        self._started += 1
        flight = _Flight(transaction, list(sweeps_of(self, transaction, before)))
        self._flights[self._started] = flight
        for number, start in enumerate(flight.starts):
            for side, branch in enumerate(branches_of(self.assemblies[start.term], start)):
                flight.branches[number, side] = branch
                yield self._question(self._started, (number, side), branch)

    def _question(self, flight: int, branch: tuple[int, int], sweep: Sweep) -> Action:
        source = self.occurrence((sweep.term, sweep.next_alias)).source
        return self.ask(source, (sweep.part,), _Asked(flight, branch))

    def _merged(self, flight: _Flight) -> Any:
        """ΔV: for each changed occurrence its rows joined with the results of all its branches."""
        change = self.nothing
        for number, start in enumerate(flight.starts):
            assembly = self.assemblies[start.term]
            partial = start.partial
            for (owner, _), branch in flight.branches.items():
                if owner == number:
                    partial = _joined_on_start(assembly, start, partial, branch.partial)
            change = change + assembly.finished(partial)
        return change


def _joined_on_start(assembly: Assembly, start: Sweep, partial: Any, branch: Any) -> Any:
    """``partial`` ⊗ ``branch`` where both have the same changed row; its columns are kept once."""
    (alias,) = start.covers
    shared = assembly.term.occurrence(alias).qualified_schema.names
    twins = {name: f"{name}′" for name in shared}
    twin = branch.renamed(twins.get(name, name) for name in branch.schema.names)
    same_row = conjunction(
        tuple(Comparison("<=>", Column(name), Column(twins[name])) for name in shared)
    )
    joined = partial.join(twin, (), same_row)
    return joined.only(n for n in joined.schema.names if n not in set(twins.values()))
