"""The kernel of simulated worlds, tried on the smallest one: a sender, a receiver, numbers between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from viewkeeper.errors import InvariantViolated
from viewkeeper.simulator.kernel import scheduling
from viewkeeper.simulator.kernel.exploration import explore_all
from viewkeeper.simulator.kernel.journal import Journal, Told
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import (
    Act,
    Choice,
    Commit,
    Deliver,
    Network,
    Node,
    Route,
    World,
)

A, B = "a", "b"
LOOSE = Network(fifo=False)


class Sender(Node):
    """Sends the numbers from 1 on, one in each commit."""

    def __init__(self, number: int) -> None:
        self.left = list(range(1, number + 1))

    @property
    def choices(self) -> list[Act]:
        return [Commit(A)] if self.left else []

    def act(self, act: Act) -> Iterable[Any]:
        yield self.left.pop(0)


class Receiver(Node):
    """Takes numbers in; it ``wants`` so many, and sends back those in ``echoes``."""

    def __init__(self, wants: int, echoes: tuple[int, ...] = ()) -> None:
        self.wants, self.echoes = wants, echoes
        self.got: list[int] = []

    def step(self, sender: str, event: int) -> Iterable[Any]:
        self.got.append(event)
        return (str(event),) if event in self.echoes else ()

    @property
    def waits_for(self) -> str | None:
        return None if len(self.got) >= self.wants else f"{self.wants - len(self.got)} more"


class Mirror(Receiver):
    """Sends everything back, and remembers nothing."""

    def step(self, sender: str, event: Any) -> Iterable[Any]:
        return (0.0 if isinstance(event, int) else 1,)


class Numbers(World):
    counted = ("numbers",)
    routes: ClassVar = {
        int: Route(lambda sender, number: B, counted=lambda number: {"numbers": 1}),
        str: Route(lambda sender, text: A, arrives_as=int),
        float: Route(lambda sender, text: B),
    }

    def __init__(
        self, receiver: Node, number: int = 3, network: Network = LOOSE, journal: Any = None
    ) -> None:
        channels = {A: [(B, A)], B: [(A, B), (B, B)]}
        super().__init__({A: Sender(number), B: receiver}, channels, network, journal)

    @property
    def sources(self) -> dict[str, Node]:
        return {A: self.nodes[A]}

    def carry_out(self, sender: str, action: Any) -> None:
        raise NotImplementedError(f"{action} has no route")

    def told(self, sender: str, thing: Any) -> Told | None:
        return None if isinstance(thing, Act) else Told("send", str(thing))

    @property
    def got(self) -> tuple[int, ...]:
        return tuple(self.nodes[B].got)  # type: ignore[attr-defined]


def commit_all(world: Numbers) -> Numbers:
    while Commit(A) in world.choices():
        world.take(Commit(A))
    return world


def test_a_channel_that_keeps_order_delivers_its_oldest_message_only() -> None:
    world = commit_all(Numbers(Receiver(3), network=Network()))
    assert world.choices() == [Deliver(A, B, 0)]
    loose = commit_all(Numbers(Receiver(3)))
    assert loose.choices() == [Deliver(A, B, place) for place in range(3)]
    loose.take(Deliver(A, B, 2))
    assert loose.got == (3,)


@pytest.mark.parametrize(("network", "orders"), [(Network(), 1), (LOOSE, 6)])
def test_every_order_is_explored_once(network: Network, orders: int) -> None:
    seen: list[tuple[int, ...]] = []

    def judge(world: Numbers, path: tuple[Choice, ...]) -> None:
        seen.append(world.got)
        assert len(path) == 6

    found = explore_all(Numbers(Receiver(3), network=network), judge)
    assert len(seen) == len(set(seen)) == found.ends == orders
    # Three commits and three arrivals, each after its commit: 5 with FIFO (Catalan), 15 without.
    assert found.interleavings == (5 if network.fifo else 15)


def test_messages_that_are_sent_for_ever_are_found_by_the_search_and_by_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvariantViolated, match="a state comes back"):
        explore_all(Numbers(Mirror(0), number=1), lambda world, path: None)
    monkeypatch.setattr(scheduling, "STEPS_MAX", 100)
    with pytest.raises(InvariantViolated, match="does not come to rest"):
        run_to_end(Numbers(Mirror(0), number=1), SeededScheduler(1))


def test_who_waits_when_nothing_can_happen_is_named_with_what_for() -> None:
    with pytest.raises(InvariantViolated, match="waits for ever") as caught:
        run_to_end(Numbers(Receiver(4)), SeededScheduler(1))
    assert caught.value.detail == "b for 1 more"


def test_the_table_of_messages_says_who_gets_one_and_as_what() -> None:
    world = commit_all(Numbers(Receiver(3, echoes=(2,))))
    world.take(Deliver(A, B, 1))
    assert world.channels[B, A] == [2]
    assert world.counters == {"numbers": 3}
    # The sender takes nothing in, and says so.
    with pytest.raises(InvariantViolated, match="is not for this node"):
        world.take(Deliver(B, A))
    with pytest.raises(NotImplementedError, match="no route"):
        world.carry_out_all(B, [()])


def test_a_journal_has_a_message_where_it_leaves_and_where_it_arrives() -> None:
    journal = Journal()
    run_to_end(Numbers(Receiver(3), network=Network(), journal=journal), SeededScheduler(2))
    assert [e.sends for e in journal.entries if e.sends] == ["1", "2", "3"]
    assert [e.receives for e in journal.entries if e.receives] == ["1", "2", "3"]
    assert {(e.place, e.arrow) for e in journal.entries if e.receives} == {(B, A)}


def test_a_seed_means_one_run() -> None:
    def run(seed: int) -> tuple[int, ...]:
        world = Numbers(Receiver(8), number=8)
        run_to_end(world, SeededScheduler(seed))
        return world.got

    assert run(5) == run(5)
    assert len({run(seed) for seed in range(20)}) > 10
