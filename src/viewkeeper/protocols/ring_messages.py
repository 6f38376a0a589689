"""What goes into the machines of a ring and what comes out of them: events, actions, the machines.

A ring has a machine at every source, a data node, and one at the warehouse. All are pure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.tokens import Increment, Token
from viewkeeper.timeline import Transaction
from viewkeeper.views.level import Level

# -- events -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TransactionCommitted:
    """The node's own source committed; the node is where the data is, so it knows at once."""

    transaction: Transaction


@dataclass(frozen=True)
class TokenArrived:
    token: Token


@dataclass(frozen=True)
class TokenRequested:
    """A node wants the token for its transactions up to ``upto``."""

    source: str
    upto: int


@dataclass(frozen=True)
class IncrementArrived:
    increment: Increment


@dataclass(frozen=True)
class QueryArrived:
    """A reader asks the warehouse for the view."""

    query: int


@dataclass(frozen=True)
class RefreshDue:
    """The warehouse's period is over; the clock is outside."""


Event = (
    TransactionCommitted
    | TokenArrived
    | TokenRequested
    | IncrementArrived
    | QueryArrived
    | RefreshDue
)

# -- actions ------------------------------------------------------------------------------------

# The address of the warehouse, among the names of sources.
WAREHOUSE = ""


@dataclass(frozen=True)
class PassToken:
    """Send the token to a source, or to the `WAREHOUSE`."""

    to: str
    token: Token


@dataclass(frozen=True)
class SendIncrement:
    increment: Increment


@dataclass(frozen=True)
class RequestToken:
    source: str
    upto: int


@dataclass(frozen=True)
class AnswerQuery:
    """Answer the reader with the view as it now is."""

    query: int


Action = PassToken | SendIncrement | RequestToken | AnswerQuery | InstallChange


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


@dataclass(frozen=True)
class RingSystem:
    """All machines of one view, and the tokens that are on their way from the start."""

    name: str
    nodes: Mapping[str, Machine]
    warehouse: Machine
    tokens: tuple[PassToken, ...] = ()


class RingProtocol:
    """What a ring protocol says of itself."""

    name: ClassVar[str]
    level: ClassVar[Level] = Level.STRONG
    paper: ClassVar[str]
