"""The machines of a ring: a data node at every source, one at the warehouse, and what rings share.

All are pure: `Machine.step` takes one event in and gives the actions that follow. What a node does when
the token comes, and what the warehouse does when an increment's turn has come, is the protocol's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import Assumptions
from viewkeeper.protocols.ring_messages import (
    Action,
    Event,
    IncrementArrived,
    PassToken,
    TokenArrived,
    TransactionCommitted,
)
from viewkeeper.protocols.tokens import Increment, LocalData, Token
from viewkeeper.timeline import Transaction
from viewkeeper.views.level import Level


class Machine(ABC):
    """A node or the warehouse: `step` is its only entry; it does nothing by itself."""

    @abstractmethod
    def step(self, event: Event) -> tuple[Action, ...]:
        """Take one event in; the actions must be carried out in the order given."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether it has nothing left to hand on."""

    @property
    def kept(self) -> tuple[Token, ...]:
        """Tokens that wait here for others."""
        return ()

    @property
    def waiting(self) -> tuple[Increment, ...]:
        """Increments that wait here for an earlier one, or for the rest of their change."""
        return ()


class DataNode(Machine):
    """Lives where its source's data is; its source's changes wait here for the token."""

    def __init__(self, data: LocalData, *, one_at_a_time: bool) -> None:
        """``one_at_a_time``: a token takes in one transaction at a visit, and no state is left out."""
        self.data = data
        self.one_at_a_time = one_at_a_time
        self._queue: deque[Transaction] = deque()

    @property
    def is_idle(self) -> bool:
        return not self._queue

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case TransactionCommitted(transaction):
                self._queue.append(transaction)
                return tuple(self._requests())
            case TokenArrived(token):
                return tuple(self._token_arrived(token))
            case _:
                invariant(False, f"a data node got {event}")
                return ()

    @abstractmethod
    def _token_arrived(self, token: Token) -> Iterator[Action]:
        """Let the token go on, with what waits here put in."""

    def _requests(self) -> Iterable[Action]:
        """Ask for the token, where it does not come by itself."""
        return ()

    def _taken(self) -> tuple[Transaction, ...]:
        """The changes that go into the token now, Δ_i: all that wait, or the first."""
        number = min(1, len(self._queue)) if self.one_at_a_time else len(self._queue)
        return tuple(self._queue.popleft() for _ in range(number))


class NumberedIncrements(Machine):
    """A warehouse that installs increments in the order of the numbers that tokens gave them.

    Channels reorder: an increment waits, under its term and number, until its turn has come.
    """

    def __init__(self) -> None:
        self._early: dict[tuple[int, int], Increment] = {}

    @property
    def is_idle(self) -> bool:
        return not self._early

    @property
    def waiting(self) -> tuple[Increment, ...]:
        return tuple(self._early.values())

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case IncrementArrived(increment):
                self._early[increment.term, increment.number] = increment
                return tuple(self._due())
            case _:
                invariant(False, f"the warehouse of a ring got {event}")
                return ()

    @abstractmethod
    def _due(self) -> Iterator[Action]:
        """Install what has its turn now."""


@dataclass(frozen=True)
class RingSystem:
    """All machines of one view, and the tokens that are on their way from the start."""

    name: str
    nodes: Mapping[str, DataNode]
    warehouse: Machine
    tokens: tuple[PassToken, ...] = ()

    def is_settled(self, on_the_way: Iterable[Event]) -> bool:
        """Only tokens that carry nothing are on their way, and nobody has anything to hand on."""
        machines = (self.warehouse, *self.nodes.values())
        return all(machine.is_idle for machine in machines) and all(
            isinstance(event, TokenArrived) and event.token.is_empty for event in on_the_way
        )


class RingProtocol:
    """What a ring protocol says of itself."""

    name: ClassVar[str]
    level: ClassVar[Level] = Level.STRONG
    paper: ClassVar[str]
    asks: ClassVar[str]
    assumes: ClassVar[Assumptions] = Assumptions()
    at_sources: ClassVar[str] = "a program beside the data of every source"
    # Makes the machines of one view from its definition, its extent and its relations' contents.
    system: ClassVar[Callable[..., RingSystem]]
