"""Transactions that are told of together are the same as one after the other."""

import pytest

from viewkeeper.errors import InvariantViolated
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.messages import (
    Action,
    BatchClosed,
    Event,
    TransactionArrived,
    TransactionsArrived,
)
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.simulator.kernel.scheduling import SeededScheduler
from viewkeeper.simulator.run import judged
from viewkeeper.simulator.world import World
from viewkeeper.timeline import Transaction


class TellsLists(BatchedSweep):
    """Hears of its transactions as the live pipeline tells of them."""

    def step(self, event: Event) -> tuple[Action, ...]:
        if isinstance(event, TransactionArrived):
            event = TransactionsArrived((event.transaction,))
        return super().step(event)


@pytest.mark.thorough
def test_batched_sweep_is_complete_when_it_is_told_by_the_list():
    for seed in range(60):
        scenario = random_scenario(seed, Size(transactions=12))
        world = World(scenario, TellsLists)
        scheduler = SeededScheduler(seed)
        while (choice := scheduler.choose(world)) is not None:
            world.take(choice)
        assert judged(TellsLists, seed, scenario, world).is_good


class Patient(BatchedSweep):
    eager = False


def arrivals(*numbers: tuple[str, int]) -> tuple[Transaction, ...]:
    return tuple(Transaction(source, number, ()) for source, number in numbers)


def test_a_list_is_numbered_like_single_transactions():
    scenario = random_scenario(1, Size(transactions=2))
    first, second, *_ = scenario.definition.sources
    together, singly = (Patient(scenario.definition, scenario.extent) for _ in "12")
    told = arrivals((first, 1), (second, 1), (first, 2))
    together.step(TransactionsArrived(told))
    for transaction in told:
        singly.step(TransactionArrived(transaction))
    assert together.queue == singly.queue
    assert together.arrived == singly.arrived
    (installed,) = together.step(BatchClosed(2))
    assert list(installed.cuts) == list(singly.step(BatchClosed(2))[0].cuts)
    assert installed.numbers == (1, 2)


@pytest.mark.parametrize("name", ["sweep", "batched-sweep"])
def test_a_list_with_a_gap_is_refused(name: str):
    scenario = random_scenario(1, Size(transactions=2))
    source = scenario.definition.sources[0]
    protocol = PROTOCOLS[name](scenario.definition, scenario.extent)
    with pytest.raises(InvariantViolated, match="out of order"):
        protocol.step(TransactionsArrived(arrivals((source, 1), (source, 3))))
