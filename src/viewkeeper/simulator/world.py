"""The simulated world: sources, channels, one view manager, and the states a reader could see.

The world does nothing by itself. `choices` lists what could happen next, `take` makes one of them
happen; who chooses (a seeded scheduler, an exhaustive search, a scripted scenario) is outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Column, Comparison, Literal
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import invariant
from viewkeeper.protocols.inbox import (
    AnswerMessage,
    Inbox,
    Message,
    SettledMessage,
    TransactionMessage,
)
from viewkeeper.protocols.messages import (
    TXN,
    Action,
    AskSource,
    Event,
    InstallBatch,
    InstallChange,
    Protocol,
    TransactionArrived,
)
from viewkeeper.simulator.choices import Commit, DeliverMessage, DeliverQuestion, Reveal
from viewkeeper.simulator.journal import Journal
from viewkeeper.simulator.scenario import Network, Scenario
from viewkeeper.simulator.source import SimulatedSource
from viewkeeper.timeline import Cut
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import ViewDefinition

Choice = Commit | Reveal | DeliverQuestion | DeliverMessage
MakeProtocol = Callable[[ViewDefinition, Any], Protocol]


@dataclass
class Counters:
    """What was sent. ``rows_asked`` counts the rows that questions carry, ``rows`` those in answers."""

    notifications: int = 0
    queries: int = 0
    answers: int = 0
    rows: int = 0
    rows_asked: int = 0
    parts: int = 0

    def as_dict(self) -> dict[str, int]:
        return dict(vars(self))


class World:
    """Everything there is in a run."""

    def __init__(
        self,
        scenario: Scenario,
        make_protocol: MakeProtocol,
        network: Network = Network(),  # noqa: B008  (immutable)
        embody: Callable[[Bag], Any] = lambda bag: bag,
        journal: Journal | None = None,
    ) -> None:
        definition = scenario.definition
        self.network = network
        self.assemblies = tuple(Assembly(term) for term in definition.all_terms)
        self.sources = {
            name: SimulatedSource(
                name, scenario.initial, script, embody, inversions=network.inversions
            )
            for name, script in sorted(scenario.scripts.items())
        }
        self.to_warehouse: dict[str, list[Message]] = {name: [] for name in self.sources}
        self.to_source: dict[str, list[AskSource]] = {name: [] for name in self.sources}
        self.inboxes = {name: Inbox(name) for name in self.sources}
        extent = embody(scenario.extent)
        self.protocol = make_protocol(definition, extent)
        self.states: list[Any] = [extent]
        self.claims: list[Cut] = [Cut.start(self.sources)]
        # The source of each transaction that the protocol got, in the order of delivery.
        self.delivered: list[str] = []
        self.counters = Counters()
        self.journal = journal
        if journal:
            journal.begun(self.assemblies, extent)

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that could happen next, in a fixed order; empty when the run is over."""
        found: list[Choice] = []
        for name, source in self.sources.items():
            found += source.choices
            found += self.network.deliveries(DeliverQuestion, name, self.to_source[name])
            found += self.network.deliveries(DeliverMessage, name, self.to_warehouse[name])
        return found

    def take(self, choice: Choice) -> None:
        """Make it happen."""
        match choice:
            case Commit(name):
                self._commit(self.sources[name])
            case Reveal(name, number):
                self._reveal(self.sources[name], number)
            case DeliverQuestion(name, index):
                self._answer(self.sources[name], self.to_source[name].pop(index))
            case DeliverMessage(name, index):
                self._receive(name, self.to_warehouse[name].pop(index))

    def _commit(self, source: SimulatedSource) -> None:
        transaction = source.commit()
        self.counters.notifications += 1
        self.to_warehouse[source.name].append(TransactionMessage(transaction, source.settled))
        if self.journal:
            self.journal.committed(transaction)

    def _reveal(self, source: SimulatedSource, number: int) -> None:
        if source.reveal(number):
            self.to_warehouse[source.name].append(SettledMessage(source.settled))
        if self.journal:
            self.journal.revealed(source.name, number)

    def _answer(self, source: SimulatedSource, question: AskSource) -> None:
        answer = source.answer(question, self.assemblies)
        self.counters.answers += 1
        if isinstance(answer.answers[0], Bag):
            self.counters.rows += sum(rows.total for rows in answer.answers)
        self.to_warehouse[source.name].append(AnswerMessage(answer))
        if self.journal:
            self.journal.answered(source.name, question, answer)

    def _receive(self, name: str, message: Message) -> None:
        for event in self.inboxes[name].receive(message):
            if self.journal:
                self.journal.arrived(name, event)
            self._step(event)

    def _step(self, event: Event) -> None:
        if isinstance(event, TransactionArrived):
            self.delivered.append(event.transaction.source)
        for action in self.protocol.step(event):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case AskSource(_, source, parts):
                self.counters.queries += 1
                self.counters.parts += len(parts)
                self.counters.rows_asked += sum(
                    part.given.total for part in parts if isinstance(part.given, Bag)
                )
                self.to_source[source].append(action)
                if self.journal:
                    self.journal.asked(action)
            case InstallChange():
                self._install(action)
            case InstallBatch():
                for step in steps_of(action):
                    self._install(step)

    def _install(self, install: InstallChange) -> None:
        self.states.append(self.states[-1] + install.change)
        self.claims.append(install.cut)
        if self.journal:
            self.journal.installed(install, self.states[-1])

    # -- at the end --------------------------------------------------------------------------------

    def require_finished(self) -> None:
        """Nothing can happen any more: then nothing may be waiting either (liveness)."""
        invariant(not self.choices(), "the run is not over")
        holding = [name for name, inbox in self.inboxes.items() if inbox.holds]
        invariant(not holding, "messages wait for ever", detail=f"from {holding}")
        invariant(
            self.protocol.is_idle,
            f"{self.protocol.name} waits for ever: nothing can happen, and it is not idle",
        )


def steps_of(batch: InstallBatch) -> Iterator[InstallChange]:
    """A batch as the sequence of changes that it stands for: each is a state a reader can ask for."""
    names = [name for name in batch.change.schema.names if name != TXN]
    for number, cut, transaction in zip(batch.numbers, batch.cuts, batch.transactions, strict=True):
        step = Comparison("=", Column(TXN), Literal(number, INTEGER))
        yield InstallChange(batch.change.where(step).only(names), cut, (transaction,))
