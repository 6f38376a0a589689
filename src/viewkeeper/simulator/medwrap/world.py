"""The world of MEDWRAP: sources with several relations, a wrapper for each, one mediator.

Messages travel between source and wrapper and between wrapper and mediator, in order or not. The journal has the
paper's words: LMQ, GMQ and CQ are a wrapper's questions to its source, QR the answers, numbered at that wrapper;
GMQ and GMQR between mediator and wrapper are numbered at the mediator; ΔIS is a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, cast

from viewkeeper.algebra import Bag
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
    AnswerQuery,
    AskAtCut,
    CloseCut,
    Purpose,
    QueryArrived,
    ReportChange,
)
from viewkeeper.protocols.medwrap_wrapper import MedwrapWrapper
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    InstallChange,
    TransactionArrived,
)
from viewkeeper.simulator.kernel.journal import Journal, Told, rows_text
from viewkeeper.simulator.kernel.world import Act, Choice, Network, Node, Route
from viewkeeper.simulator.medwrap.snapshot_source import SnapshotSource
from viewkeeper.simulator.one_view import OneViewWorld
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction

MakeWrapper = Callable[[Mediation, str], MedwrapWrapper]
MakeMediator = Callable[[Mediation, Any], MedwrapMediator]

MEDIATOR = "mediator"

_COUNTED = {
    Purpose.LOCAL: "local_questions",
    Purpose.GLOBAL: "global_questions",
    Purpose.COMPENSATING: "compensating_questions",
}


def wrapper_of(source: str) -> str:
    """The name of a source's wrapper."""
    return f"{source} wrapper"


class WrapperNode(Node):
    """A wrapper, and the LQueue of its source's messages."""

    def __init__(self, source: str, wrapper: MedwrapWrapper) -> None:
        self.wrapper = wrapper
        self.inbox = Inbox(source)

    def taken_in(self, sender: str, message: Any) -> Iterable[Any]:
        return (QueryArrived(message),) if sender == MEDIATOR else self.inbox.receive(message)

    def step(self, sender: str, event: Any) -> Iterable[Any]:
        return self.wrapper.step(event)

    @property
    def waits_for(self) -> str | None:
        return None if self.wrapper.is_idle and not self.inbox.holds else "its source"


class MediatorNode(Node):
    """The mediator; reports and answers of each wrapper come in order into its GQueue."""

    def __init__(self, mediator: MedwrapMediator, sources: Iterable[str]) -> None:
        self.mediator = mediator
        self.inboxes = {wrapper_of(name): Inbox(name) for name in sources}
        # How far its source was when a wrapper made a report, by the report's number.
        self._upto: dict[tuple[str, int], int] = {}

    def taken_in(self, sender: str, message: ReportChange | AnswerQuery) -> Iterable[Any]:
        arrived: Message
        match message:
            case ReportChange(change, upto):
                self._upto[sender, change.number] = upto
                arrived = TransactionMessage(change, change.number)
            case AnswerQuery(answer):
                arrived = AnswerMessage(answer)
        return self.inboxes[sender].receive(arrived)

    def step(self, sender: str, event: Any) -> Iterable[Any]:
        if isinstance(event, TransactionArrived):
            upto = self._upto[sender, event.transaction.number]
            return self.mediator.step(ChangeReported(event.transaction, upto))
        return self.mediator.step(event)

    def conflicts(self, sender: str, answer: AnswerArrived) -> int:
        """How many reports that wait in GQueue, and change something, an answer reflects already."""
        return sum(
            1
            for waiting in getattr(self.mediator.inside, "queue", ())
            if wrapper_of(waiting.source) == sender
            and answer.reflects.includes(waiting.number)
            and not all(rows.is_empty() for _, rows in waiting.changes)
        )

    @property
    def waits_for(self) -> str | None:
        held = any(inbox.holds for inbox in self.inboxes.values())
        return None if self.mediator.is_idle and not held else "its wrappers"


def _asked_of(sender: str, question: AskSource | AskAtCut) -> str:
    return wrapper_of(question.source) if sender == MEDIATOR else question.source


def _announced(sender: str, message: Message) -> str:
    return wrapper_of(sender)


def _mediated(sender: str, message: Any) -> str:
    return MEDIATOR


class MedwrapWorld(OneViewWorld):
    """Everything there is in a run of MEDWRAP or MRE. Conflicts are counted where they are compensated."""

    counted = (
        *("notifications", "local_questions", "global_questions", "compensating_questions"),
        *("source_reads", "queries", "reports", "relational_conflicts", "source_conflicts"),
        *("wrapper_messages", "mediator_messages"),
    )
    routes: ClassVar = {
        TransactionMessage: Route(_announced, counted=lambda message: {"notifications": 1}),
        SettledMessage: Route(_announced),
        AnswerMessage: Route(_announced),
        AskSource: Route(_asked_of),
        AskAtCut: Route(_asked_of),
        ReportChange: Route(_mediated, counted=lambda message: {"reports": 1}),
        AnswerQuery: Route(_mediated),
    }

    def __init__(
        self,
        scenario: Scenario,
        make_wrapper: MakeWrapper = MedwrapWrapper,
        make_mediator: MakeMediator = MedwrapMediator,
        network: Network = Network(),  # noqa: B008  (immutable)
        journal: Journal | None = None,
    ) -> None:
        mediation = Mediation(scenario.definition)
        nodes: dict[str, Node] = {}
        channels = {}
        names = sorted(scenario.scripts)
        for name in names:
            wrapper, beside = make_wrapper(mediation, name), wrapper_of(name)
            nodes[name] = SnapshotSource(
                name,
                scenario.initial,
                scenario.scripts[name],
                inversions=network.inversions,
                assemblies=mediation.assemblies,
                keeps=wrapper.snapshots,
            )
            nodes[beside] = WrapperNode(name, wrapper)
            channels[name] = ((beside, name), (name, beside))
            channels[beside] = ((MEDIATOR, beside), (beside, MEDIATOR))
        nodes[MEDIATOR] = MediatorNode(make_mediator(mediation, scenario.extent), names)
        super().__init__(nodes, channels, network, scenario.extent, journal)
        self.installed: list[tuple[Bag, tuple[Transaction, ...]]] = []

    @property
    def wrappers(self) -> dict[str, MedwrapWrapper]:
        nodes = self.nodes.values()
        return {node.inbox.source: node.wrapper for node in nodes if isinstance(node, WrapperNode)}

    def arrived(self, sender: str, to: str, event: Any) -> None:
        super().arrived(sender, to, event)
        told = isinstance(event, TransactionArrived | AnswerArrived | QueryArrived)
        match self.nodes[to]:
            case SnapshotSource():
                self.counters["source_reads"] += 1
            case WrapperNode():
                self.counters["wrapper_messages"] += told
            case MediatorNode() as mediator:
                self.counters["mediator_messages"] += told
                if isinstance(event, AnswerArrived):
                    self.counters["source_conflicts"] += mediator.conflicts(sender, event)

    def sent(self, sender: str, to: str, message: Any) -> None:
        super().sent(sender, to, message)
        if isinstance(message, AskSource | AskAtCut):
            counted = "queries" if sender == MEDIATOR else _COUNTED[self._purpose(sender, message)]
            self.counters[counted] += 1

    def take(self, choice: Choice) -> None:
        super().take(choice)
        conflicts = sum(wrapper.conflicts for wrapper in self.wrappers.values())
        self.counters["relational_conflicts"] = conflicts

    def _purpose(self, wrapper: str, question: AskSource | AskAtCut | AnswerArrived) -> Purpose:
        return cast(WrapperNode, self.nodes[wrapper]).wrapper.purpose(question.question)

    def carry_out(self, sender: str, action: Any) -> None:
        if isinstance(action, CloseCut):
            del self.sources[action.source].cuts[action.cut_of]
            return
        if isinstance(action, InstallChange):
            self.installed.append((action.change, action.transactions))
        super().carry_out(sender, action)

    # -- in words ----------------------------------------------------------------------------------

    def told(self, sender: str, thing: Any) -> Told | None:
        match thing:
            case Act(name):
                return self.told_act(thing, wrapper_of(name))
            case AskSource(question) if sender == MEDIATOR:
                given = ", ".join(rows_text(part.given) for part in thing.parts)
                return Told("query", f"GMQ{question}", f"{given} ⊗ {thing.source}")
            case QueryArrived(query):
                return Told("", f"GMQ{query.question}")
            case AskSource() | AskAtCut():
                label = f"{self._purpose(sender, thing).value}{thing.question}"
                return Told("ask", label, ", ".join(map(_part_text, thing.parts)))
            case AnswerMessage(answer):
                asked = self._purpose(wrapper_of(sender), answer).value
                text = f"{_rows(answer)} (reflects {answer.reflects})"
                answers = f"{asked}{answer.question}"
                return Told("answer", f"QR{answer.question}", text, answers=answers)
            case AnswerArrived(question):
                return Told("", f"{'QR' if sender in self.sources else 'GMQR'}{question}")
            case TransactionArrived(transaction):
                return Told("", f"{'' if sender in self.sources else 'ΔIS'}#{transaction.number}")
            case ReportChange(change, upto):
                rows = "; ".join(rows_text(rows) for _, rows in change.changes) or "⊥"
                text = f"{rows} ({change.source} at {upto})"
                return Told("report", f"ΔIS#{change.number}", text)
            case AnswerQuery(answer):
                text = f"{_rows(answer)} (reflects ΔIS {answer.reflects})"
                return Told("result", f"GMQR{answer.question}", text)
        return None


def _part_text(part: Any) -> str:
    return ("" if part.given is None else rows_text(part.given) + " ⊗ ") + " ⊗ ".join(part.asks)


def _rows(answer: AnswerArrived) -> str:
    return ", ".join(rows_text(rows) for rows in answer.answers)
