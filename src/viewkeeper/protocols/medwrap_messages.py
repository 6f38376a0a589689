"""What goes into a wrapper and what comes out of it, beside the messages of every protocol.

Towards its source a wrapper is what a view manager is: it gets transactions and answers, and asks
questions. Towards the mediator it is what a source is: it reports changes and answers queries.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    Part,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import Transaction


class Detection(enum.Enum):
    """How a wrapper knows what an answer reflects: by its place in the queue, or by being told."""

    QUEUE_ORDER = "queue-order"
    REFLECTED_SETS = "reflected-sets"


class Purpose(enum.Enum):
    """Why a wrapper asks its source: for a change, for the mediator, or to correct an answer."""

    LOCAL = "LMQ"
    GLOBAL = "GMQ"
    COMPENSATING = "CQ"


@dataclass(frozen=True)
class QueryArrived:
    """The mediator asks for products with this source's virtual relations (GMQ)."""

    query: AskSource


@dataclass(frozen=True)
class ReportChange:
    """Tell the mediator how the virtual relations changed (ΔIS); it is at ``upto`` of the source."""

    change: Transaction
    upto: int


@dataclass(frozen=True)
class AnswerQuery:
    """Answer the mediator (GMQR)."""

    answer: AnswerArrived


@dataclass(frozen=True)
class AskAtCut:
    """Ask the source again, at the cut of the answer to question ``cut_of``."""

    question: int
    source: str
    parts: tuple[Part, ...]
    cut_of: int


@dataclass(frozen=True)
class CloseCut:
    """The cut of question ``cut_of`` is no longer needed."""

    source: str
    cut_of: int


Event = TransactionArrived | AnswerArrived | SourceSettled | QueryArrived
Action = AskSource | AskAtCut | CloseCut | ReportChange | AnswerQuery
