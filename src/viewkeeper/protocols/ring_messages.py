"""What goes into the machines of a ring and what comes out of them: events and actions.

The machines are in `ring_machines`: one at every source, a data node, and one at the warehouse.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.tokens import Increment, Token
from viewkeeper.timeline import Transaction

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
