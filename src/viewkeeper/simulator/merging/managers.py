"""A view manager as a process: a protocol, its inboxes, and the action lists that it sends.

Protocols count the transactions of each source, so a manager gets all that its sources commit; rows
that are irrelevant to the view are left out of its action lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.errors import invariant
from viewkeeper.merging.complete_n import block_end
from viewkeeper.merging.messages import ActionList
from viewkeeper.protocols.inbox import AnswerMessage, Inbox, SettledMessage, TransactionMessage
from viewkeeper.protocols.messages import (
    Action,
    AnswerArrived,
    AskSource,
    Event,
    InstallBatch,
    InstallChange,
    Reflected,
)
from viewkeeper.simulator.merging.scenario import ManagedView
from viewkeeper.simulator.one_view import steps_of
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.assembly import Assembly


@dataclass(frozen=True)
class Numbered:
    """The integrator hands on a transaction with its row."""

    row: int
    transaction: Transaction
    is_relevant: bool


@dataclass(frozen=True)
class Settled:
    source: str
    upto: int


@dataclass(frozen=True)
class BlockClosed:
    """All rows up to ``upto`` have been handed on, and the block ends here."""

    upto: int


@dataclass(frozen=True)
class Answer:
    source: str
    answer: AnswerArrived


ToManager = Numbered | Settled | BlockClosed | Answer


@dataclass(frozen=True)
class Change:
    """Contents of an action list: rows in and out."""

    rows: Bag


@dataclass(frozen=True)
class Replacement:
    """Contents of a periodic refresh: the whole view."""

    rows: Bag


class ManagerProcess:
    """Drives one protocol; returns questions to sources and lists for the merge process."""

    def __init__(self, view: ManagedView, extent: Bag, start: CutVector | None = None) -> None:
        """``extent`` is the view at the cut ``start``; protocols count from there."""
        self.view = view
        self.start = dict(CutVector.start(view.definition.sources) if start is None else start)
        self.assemblies = tuple(Assembly(term) for term in view.definition.terms)
        self.protocol = view.protocol(view.definition, extent)
        self.inboxes = {source: Inbox(source) for source in view.definition.sources}
        self.extent = extent
        self._rows: dict[tuple[str, int], int] = {}
        self._outstanding: set[int] = set()
        # Installed by the protocol, and not yet sent: rows with the change that they make.
        self._held: list[tuple[tuple[int, ...], Bag]] = []
        self._closed = 0

    @property
    def may_refresh(self) -> bool:
        return self.view.periodic and bool(self._held)

    @property
    def is_idle(self) -> bool:
        holds = any(inbox.holds for inbox in self.inboxes.values())
        return self.protocol.is_idle and not self._held and not holds

    def receive(self, message: ToManager) -> Iterator[AskSource | ActionList]:
        match message:
            case Numbered(row, original, is_relevant):
                number = original.number - self.start[original.source]
                transaction = original._replace(number=number)
                if is_relevant:
                    self._rows[transaction.source, transaction.number] = row
                    self._outstanding.add(row)
                inbox = self.inboxes[transaction.source]
                yield from self._events(inbox.receive(TransactionMessage(transaction, 0)))
            case Settled(source, _):
                yield from self._events(self.inboxes[source].receive(self._settled(message)))
            case Answer(source, answer):
                since = _since(answer, self.start[source])
                yield from self._events(self.inboxes[source].receive(AnswerMessage(since)))
            case BlockClosed(upto):
                self._closed = upto
                yield from self._full_blocks()

    def refresh(self) -> ActionList:
        """The period is over: the whole view, for all rows since the last time."""
        rows = tuple(sorted(row for held, _ in self._held for row in held))
        self._held = []
        return ActionList(self.view.name, rows, Replacement(self.extent))

    def _settled(self, message: Settled) -> SettledMessage:
        return SettledMessage(max(message.upto - self.start[message.source], 0))

    def _events(self, events: tuple[Event, ...]) -> Iterator[AskSource | ActionList]:
        for event in events:
            for action in self.protocol.step(event):
                yield from self._carried_out(action)

    def _carried_out(self, action: Action) -> Iterator[AskSource | ActionList]:
        match action:
            case AskSource():
                yield action
            case InstallChange():
                yield from self._installed(action)
            case InstallBatch():
                for step in steps_of(action):
                    yield from self._installed(step)

    def _installed(self, install: InstallChange) -> Iterator[ActionList]:
        numbers = [(t.source, t.number) for t in install.transactions]
        rows = tuple(sorted(self._rows.pop(n) for n in numbers if n in self._rows))
        self.extent = self.extent + install.change
        if not rows:
            invariant(install.change.is_empty(), "an irrelevant transaction changed the view")
            return
        self._outstanding.difference_update(rows)
        if self.view.periodic or self.view.every > 1:
            self._held.append((rows, install.change))
            yield from self._full_blocks()
        else:
            yield ActionList(self.view.name, rows, Change(install.change))

    def _full_blocks(self) -> Iterator[ActionList]:
        """One list for each block of which nothing is outstanding."""
        if self.view.every == 1:
            return
        first_missing = min(self._outstanding, default=self._closed + 1)
        while self._held:
            # A block that was ended early goes no further than that.
            ends = min(block_end(self._held[0][0][0], self.view.every), self._closed)
            if self._held[0][0][0] > ends or first_missing <= ends:
                return
            block = [held for held in self._held if held[0][-1] <= ends]
            self._held = self._held[len(block) :]
            rows = tuple(row for held, _ in block for row in held)
            yield ActionList(self.view.name, rows, Change(_sum([change for _, change in block])))


def _since(answer: AnswerArrived, start: int) -> AnswerArrived:
    """The answer as a manager sees it that counts transactions from there."""
    reflects = answer.reflects
    invariant(
        all(reflects.includes(number) for number in range(1, start + 1)),
        "an answer misses a transaction that was in the view from its start",
    )
    later = Reflected(
        max(reflects.upto - start, 0),
        frozenset(n - start for n in reflects.also if n > start),
        frozenset(n - start for n in reflects.without if n > start),
    )
    return replace(answer, reflects=later)


def _sum(changes: list[Bag]) -> Any:
    total = changes[0]
    for change in changes[1:]:
        total = total + change
    return total
