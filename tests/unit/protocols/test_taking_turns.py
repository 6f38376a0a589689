"""Two machines of batched SWEEP that do a view's batches by turns keep it complete, as one does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import pytest

from slices import seeds
from viewkeeper.errors import InvariantViolated
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.messages import (
    Action,
    AnswerArrived,
    AskSource,
    BatchClosed,
    BatchPassed,
    Event,
    InstallBatch,
    Protocol,
    TransactionArrived,
)
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.simulator.generator import Shape, Size, random_scenario
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import simulated


class Patient(BatchedSweep):
    eager = False


class ByTurns(Protocol):
    """Begins a batch whenever the machine whose turn it is has nothing to do; installs them in order."""

    name = "by-turns"
    level, assumes, paper = BatchedSweep.level, BatchedSweep.assumes, BatchedSweep.paper

    def __init__(self, definition, extent):
        self.machines = [Patient(definition, extent) for _ in "12"]
        self.waiting = 0
        # For each machine the batches to do or to pass over, which wait while it is in one.
        self.todo: list[deque[BatchClosed | BatchPassed]] = [deque(), deque()]
        self.turn = 0
        self.begun: deque[int] = deque()
        self.found: list[deque[InstallBatch]] = [deque(), deque()]
        self.most_at_once = 0

    def step(self, event: Event) -> tuple[Action, ...]:
        return tuple(self._stepped(event))

    def _stepped(self, event: Event) -> Iterator[Action]:
        if isinstance(event, AnswerArrived):
            place = event.question % 2
            yield from self._done(place, replace(event, question=event.question // 2))
        else:
            for place in (0, 1):
                yield from self._done(place, event)
            self.waiting += isinstance(event, TransactionArrived)
        yield from self._worked_off()
        while self.waiting and not self.machines[self.turn].batch:
            size, self.waiting = self.waiting, 0
            self.begun.append(self.turn)
            self.todo[self.turn].append(BatchClosed(size))
            self.todo[1 - self.turn].append(BatchPassed(size))
            self.turn = 1 - self.turn
            yield from self._worked_off()
        while self.begun and self.found[self.begun[0]]:
            yield self.found[self.begun.popleft()].popleft()

    def _worked_off(self) -> Iterator[Action]:
        for place, machine in enumerate(self.machines):
            while self.todo[place] and not machine.batch:
                yield from self._done(place, self.todo[place].popleft())
        self.most_at_once = max(self.most_at_once, sum(bool(m.batch) for m in self.machines))

    def _done(self, place: int, event: Event) -> Iterator[Action]:
        for action in self.machines[place].step(event):
            if isinstance(action, InstallBatch):
                self.found[place].append(action)
            elif isinstance(action, AskSource):
                yield replace(action, question=2 * action.question + place)

    @property
    def is_idle(self) -> bool:
        return not self.begun and all(machine.is_idle for machine in self.machines)


@pytest.mark.parametrize("network", [Network(), Network(fifo=False, inversions=True)], ids=str)
def test_batches_by_turns_are_complete(network):
    at_once = []

    class Watched(ByTurns):
        def __init__(self, definition, extent):
            super().__init__(definition, extent)
            at_once.append(self)

    for seed in range(seeds(80, least=10)):
        size = Size(sources=3, transactions=24, shape=Shape.ANY, spread=bool(seed % 2))
        outcome = simulated(Watched, seed, size, network)
        assert outcome.is_good, f"seed {seed}: {outcome.verdict}"
    assert any(each.most_at_once == 2 for each in at_once), "they never worked at the same time"


def test_passing_over_a_batch_that_is_not_there_is_a_defect():
    scenario = random_scenario(1, Size(transactions=2))
    with pytest.raises(InvariantViolated):
        Patient(scenario.definition, scenario.extent).step(BatchPassed(1))
    with pytest.raises(InvariantViolated, match="does not work in batches"):
        Sweep(scenario.definition, scenario.extent).step(BatchPassed(1))
