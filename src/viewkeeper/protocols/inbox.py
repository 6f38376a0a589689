"""Brings the messages of one source into the order that protocols rely on.

Channels may reorder. A transaction is passed on when all earlier ones of its source have been, and an
answer when everything that it reflects has been. On a FIFO channel nothing ever waits here.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.protocols.messages import (
    AnswerArrived,
    SourceEvent,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import Transaction


@dataclass(frozen=True)
class TransactionMessage:
    """A transaction as its source sends it; queries asked later see all up to ``settled``."""

    transaction: Transaction
    settled: int


@dataclass(frozen=True)
class AnswerMessage:
    answer: AnswerArrived


@dataclass(frozen=True)
class SettledMessage:
    settled: int


Message = TransactionMessage | AnswerMessage | SettledMessage


class Inbox:
    """One source's messages, made orderly. Pure: `receive` returns the events that are now due."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.delivered = 0
        self._early: dict[int, Transaction] = {}
        self._held: list[AnswerArrived] = []
        self._settled = 0
        self._settled_told = 0

    @property
    def holds(self) -> int:
        """How many messages wait for an earlier one."""
        return len(self._early) + len(self._held)

    def receive(self, message: Message) -> tuple[SourceEvent, ...]:
        match message:
            case TransactionMessage(transaction, settled):
                # A message that comes twice (a source resent it after a restart) is dropped.
                if transaction.number > self.delivered:
                    self._early[transaction.number] = transaction
                self._settled = max(self._settled, settled)
            case AnswerMessage(answer):
                self._held.append(answer)
            case SettledMessage(settled):
                self._settled = max(self._settled, settled)
        return tuple(self._due())

    def _due(self) -> list[SourceEvent]:
        due: list[SourceEvent] = list(self._due_answers())
        while (transaction := self._early.pop(self.delivered + 1, None)) is not None:
            self.delivered += 1
            due.append(TransactionArrived(transaction))
            due += self._due_answers()
        # Told only of transactions the protocol has seen: it keeps their changes until then.
        settled = min(self._settled, self.delivered)
        if settled > self._settled_told:
            self._settled_told = settled
            due.append(SourceSettled(self.source, settled))
        return due

    def _due_answers(self) -> list[SourceEvent]:
        ready = [a for a in self._held if a.reflects.highest <= self.delivered]
        self._held = [a for a in self._held if a.reflects.highest > self.delivered]
        return list(ready)
