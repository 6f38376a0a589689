"""The simulated world of MEDWRAP: sources with several relations, a wrapper for each, one mediator.

As in `simulator.world`, nothing happens by itself: `choices` lists what could, `take` makes it happen. Messages
travel between source and wrapper and between wrapper and mediator, in order or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.errors import invariant
from viewkeeper.protocols.inbox import (
    AnswerMessage,
    Inbox,
    Message,
    SettledMessage,
    TransactionMessage,
)
from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.medwrap_mediator import ChangeReported, MedwrapMediator
from viewkeeper.protocols.medwrap_messages import (
    Action,
    AnswerQuery,
    AskAtCut,
    CloseCut,
    Event,
    Purpose,
    QueryArrived,
    ReportChange,
)
from viewkeeper.protocols.medwrap_wrapper import MedwrapWrapper
from viewkeeper.protocols.messages import Action as MediatorAction
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    InstallChange,
    Reflected,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.simulator.choices import Commit, DeliverQuestion, Reveal
from viewkeeper.simulator.medwrap.journal import MedwrapJournal
from viewkeeper.simulator.medwrap.snapshot_source import SnapshotSource
from viewkeeper.simulator.scenario import Network, Scenario
from viewkeeper.timeline import Cut, Transaction

MakeWrapper = Callable[[Mediation, str], MedwrapWrapper]
MakeMediator = Callable[[Mediation, Any], MedwrapMediator]


@dataclass(frozen=True, order=True)
class DeliverToWrapper:
    """A message from the source reaches its wrapper's LQueue."""

    source: str
    index: int


@dataclass(frozen=True, order=True)
class DeliverQuery:
    """The mediator's query (GMQ) reaches a wrapper's LQueue."""

    source: str
    index: int


@dataclass(frozen=True, order=True)
class DeliverToMediator:
    """A report (ΔIS) or an answer (GMQR) reaches the mediator's GQueue."""

    source: str
    index: int


Choice = Commit | Reveal | DeliverQuestion | DeliverToWrapper | DeliverQuery | DeliverToMediator


@dataclass
class MedwrapCounters:
    """What was sent and met. Conflicts are counted where they are compensated."""

    notifications: int = 0
    local_questions: int = 0
    global_questions: int = 0
    compensating_questions: int = 0
    source_reads: int = 0
    queries: int = 0
    reports: int = 0
    relational_conflicts: int = 0
    source_conflicts: int = 0
    wrapper_messages: int = 0
    mediator_messages: int = 0

    def as_dict(self) -> dict[str, int]:
        return dict(vars(self))


class MedwrapWorld:
    """Everything there is in a run of MEDWRAP or MRE."""

    def __init__(
        self,
        scenario: Scenario,
        make_wrapper: MakeWrapper = MedwrapWrapper,
        make_mediator: MakeMediator = MedwrapMediator,
        network: Network = Network(),  # noqa: B008  (immutable)
        journal: MedwrapJournal | None = None,
    ) -> None:
        self.network = network
        self.journal = journal
        self.scenario = scenario
        self.mediation = Mediation(scenario.definition)
        names = sorted(scenario.scripts)
        self.sources = {
            name: SnapshotSource(
                name, scenario.initial, scenario.scripts[name], inversions=network.inversions
            )
            for name in names
        }
        self.wrappers = {name: make_wrapper(self.mediation, name) for name in names}
        self.mediator = make_mediator(self.mediation, scenario.extent)
        self.to_source: dict[str, list[AskSource | AskAtCut]] = {name: [] for name in names}
        self.to_wrapper: dict[str, list[Message]] = {name: [] for name in names}
        self.queries: dict[str, list[AskSource]] = {name: [] for name in names}
        self.to_mediator: dict[str, list[Message]] = {name: [] for name in names}
        self.wrapper_inboxes = {name: Inbox(name) for name in names}
        self.mediator_inboxes = {name: Inbox(name) for name in names}
        # How far its source was when a wrapper made a report, by the report's number.
        self._upto: dict[tuple[str, int], int] = {}
        self.states: list[Bag] = [scenario.extent]
        self.claims: list[Cut] = [Cut.start(names)]
        self.installed: list[tuple[Bag, tuple[Transaction, ...]]] = []
        self.counters = MedwrapCounters()

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that could happen next, in a fixed order; empty when the run is over."""
        found: list[Choice] = []
        for name, source in self.sources.items():
            found += source.choices
            found += self.network.deliveries(DeliverQuestion, name, self.to_source[name])
            found += self.network.deliveries(DeliverToWrapper, name, self.to_wrapper[name])
            found += self.network.deliveries(DeliverQuery, name, self.queries[name])
            found += self.network.deliveries(DeliverToMediator, name, self.to_mediator[name])
        return found

    def take(self, choice: Choice) -> None:
        """Make it happen."""
        match choice:
            case Commit(name):
                self._commit(self.sources[name])
            case Reveal(name, number):
                self._reveal(self.sources[name], number)
            case DeliverQuestion(name, index):
                self._ask(self.sources[name], self.to_source[name].pop(index))
            case DeliverToWrapper(name, index):
                message = self.to_wrapper[name].pop(index)
                for event in self.wrapper_inboxes[name].receive(message):
                    self._wrapper_step(name, event)
            case DeliverQuery(name, index):
                self._wrapper_step(name, QueryArrived(self.queries[name].pop(index)))
            case DeliverToMediator(name, index):
                self._mediator_receives(name, self.to_mediator[name].pop(index))

    # -- sources -------------------------------------------------------------------------------------

    def _commit(self, source: SnapshotSource) -> None:
        transaction = source.commit()
        self.counters.notifications += 1
        self.to_wrapper[source.name].append(TransactionMessage(transaction, source.settled))
        if self.journal is not None:
            self.journal.committed(transaction)

    def _reveal(self, source: SnapshotSource, number: int) -> None:
        if source.reveal(number):
            self.to_wrapper[source.name].append(SettledMessage(source.settled))

    def _ask(self, source: SnapshotSource, question: AskSource | AskAtCut) -> None:
        self.counters.source_reads += 1
        match question:
            case AskSource():
                answer = source.answer(question, self.mediation.assemblies)
                if self.wrappers[source.name].snapshots:
                    source.keep(question.question)
            case AskAtCut():
                answer = source.answer_at(question, self.mediation.assemblies)
        self.to_wrapper[source.name].append(AnswerMessage(answer))
        if self.journal is not None:
            self.journal.source_answered(source.name, answer)

    # -- wrappers ------------------------------------------------------------------------------------

    def _wrapper_step(self, name: str, event: Event) -> None:
        wrapper = self.wrappers[name]
        if isinstance(event, TransactionArrived | AnswerArrived | QueryArrived):
            self.counters.wrapper_messages += 1
        conflicts = wrapper.conflicts
        for action in wrapper.step(event):
            self._carry_out(name, action)
        self.counters.relational_conflicts += wrapper.conflicts - conflicts

    def _carry_out(self, name: str, action: Action) -> None:
        match action:
            case AskSource(question) | AskAtCut(question):
                purpose = self.wrappers[name].purpose(question)
                self._count(purpose)
                self.to_source[name].append(action)
                if self.journal is not None:
                    self.journal.wrapper_asked(name, action, purpose)
            case CloseCut(_, cut_of):
                del self.sources[name].cuts[cut_of]
            case ReportChange(change, upto):
                self.counters.reports += 1
                self._upto[name, change.number] = upto
                self.to_mediator[name].append(TransactionMessage(change, change.number))
                if self.journal is not None:
                    self.journal.reported(name, action)
            case AnswerQuery(answer):
                self.to_mediator[name].append(AnswerMessage(answer))
                if self.journal is not None:
                    self.journal.query_answered(name, action)

    def _count(self, purpose: Purpose) -> None:
        match purpose:
            case Purpose.LOCAL:
                self.counters.local_questions += 1
            case Purpose.GLOBAL:
                self.counters.global_questions += 1
            case Purpose.COMPENSATING:
                self.counters.compensating_questions += 1

    # -- the mediator --------------------------------------------------------------------------------

    def _mediator_receives(self, name: str, message: Message) -> None:
        for event in self.mediator_inboxes[name].receive(message):
            match event:
                case TransactionArrived(change):
                    self.counters.mediator_messages += 1
                    upto = self._upto[name, change.number]
                    self._mediate(self.mediator.step(ChangeReported(change, upto)))
                case AnswerArrived(_, _, reflects):
                    self.counters.mediator_messages += 1
                    self.counters.source_conflicts += self._source_conflicts(name, reflects)
                    self._mediate(self.mediator.step(event))
                case SourceSettled():
                    self._mediate(self.mediator.step(event))

    def _mediate(self, actions: tuple[MediatorAction, ...]) -> None:
        for action in actions:
            match action:
                case AskSource(_, source):
                    self.counters.queries += 1
                    self.queries[source].append(action)
                    if self.journal is not None:
                        self.journal.mediator_asked(action)
                case InstallChange(change, cut, transactions):
                    self.states.append(self.states[-1] + change)
                    self.claims.append(cut)
                    self.installed.append((change, transactions))
                    if self.journal is not None:
                        self.journal.installed(action, self.states[-1])

    def _source_conflicts(self, source: str, reflects: Reflected) -> int:
        """How many reports that wait in GQueue, and change something, an answer reflects already."""
        return sum(
            1
            for waiting in getattr(self.mediator.inside, "queue", ())
            if waiting.source == source
            and reflects.includes(waiting.number)
            and not all(rows.is_empty() for _, rows in waiting.changes)
        )

    # -- at the end ----------------------------------------------------------------------------------

    def require_finished(self) -> None:
        """Nothing can happen any more: then nothing may be waiting either (liveness)."""
        invariant(not self.choices(), "the run is not over")
        inboxes = [*self.wrapper_inboxes.values(), *self.mediator_inboxes.values()]
        invariant(not any(inbox.holds for inbox in inboxes), "messages wait for ever")
        busy = [name for name, wrapper in self.wrappers.items() if not wrapper.is_idle]
        invariant(not busy, "wrappers wait for ever: nothing can happen", detail=f"{busy}")
        invariant(self.mediator.is_idle, "the mediator waits for ever: nothing can happen")
        kept = [name for name, source in self.sources.items() if source.cuts]
        invariant(not kept, "cuts are kept open for ever", detail=f"at {kept}")
