"""MEDWRAP in one place: all wrappers and the mediator as one view manager.

Paper: MEDWRAP (2002). Level: complete. Assumes: nothing beyond reliable delivery.

The paper puts each wrapper at its source. Where the sources take no programs, the wrappers run beside the
mediator, and what travels between them needs no channel; what is asked of the sources stays the same: a
source with several relations joins them itself, and is asked once where SWEEP over relations asks once
for each. Here is only the carrying of messages: `medwrap_wrapper` and `medwrap_mediator` decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from viewkeeper.errors import invariant
from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.medwrap_mediator import ChangeReported, MedwrapMediator
from viewkeeper.protocols.medwrap_messages import Action as WrapperAction
from viewkeeper.protocols.medwrap_messages import (
    AnswerQuery,
    Purpose,
    QueryArrived,
    ReportChange,
)
from viewkeeper.protocols.medwrap_wrapper import MedwrapWrapper
from viewkeeper.protocols.messages import (
    Action,
    AnswerArrived,
    AskSource,
    Assumptions,
    Event,
    InstallChange,
    Protocol,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


class Medwrap(Protocol):
    """SWEEP over sources, with a wrapper for each that compensates among its relations."""

    name = "medwrap"
    asks = "joins by the source's own engine: one for the change, N − 1 over N sources"
    level = Level.COMPLETE
    assumes = Assumptions()
    paper = "MEDWRAP"

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        mediation = Mediation(definition)
        self.mediator = MedwrapMediator(mediation, extent)
        self.wrappers = {source: MedwrapWrapper(mediation, source) for source in definition.sources}
        self._applied = CutVector.start(definition.sources)
        # Transactions that are not yet installed, and the wrapper's own number of each question.
        self._waiting: dict[tuple[str, int], Transaction] = {}
        self._questions = 0
        self._open: dict[int, tuple[str, int]] = {}

    @property
    def is_idle(self) -> bool:
        wrappers = self.wrappers.values()
        return self.mediator.is_idle and all(wrapper.is_idle for wrapper in wrappers)

    def purpose(self, question: int) -> Purpose:
        """What an open question to a source is for."""
        source, number = self._open[question]
        return self.wrappers[source].purpose(number)

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case TransactionArrived(transaction):
                source = transaction.source
                self._waiting[source, transaction.number] = transaction
                return tuple(self._carried(source, self.wrappers[source].step(event)))
            case AnswerArrived(question, answers, reflects):
                source, number = self._open.pop(question)
                answer = AnswerArrived(number, answers, reflects)
                return tuple(self._carried(source, self.wrappers[source].step(answer)))
            case SourceSettled(source):
                return tuple(self._carried(source, self.wrappers[source].step(event)))
            case _:
                invariant(False, f"{self.name} got {event}")
                return ()

    def _carried(self, source: str, actions: Iterable[WrapperAction]) -> Iterator[Action]:
        """Carry messages between wrappers and mediator, in order, until only questions are left."""
        carried: deque[tuple[str, WrapperAction | Action]] = deque((source, a) for a in actions)
        while carried:
            sender, action = carried.popleft()
            match action:
                case ReportChange() | AnswerQuery():
                    for wrapper, message in self.due(sender, action):
                        carried += [("", a) for a in self._told(wrapper, message)]
                case AskSource(_, asked) if not sender:
                    answers = self.wrappers[asked].step(QueryArrived(action))
                    carried += [(asked, a) for a in answers]
                case AskSource(number, asked, parts):
                    self._questions += 1
                    self._open[self._questions] = (asked, number)
                    yield AskSource(self._questions, asked, parts)
                case InstallChange(change, cut):
                    yield InstallChange(change, cut, tuple(self._included(cut)))
                case _:
                    invariant(False, f"nobody carries {action}")

    def due(
        self, sender: str, message: ReportChange | AnswerQuery
    ) -> Iterator[tuple[str, ReportChange | AnswerQuery]]:
        """What reaches the mediator now that a wrapper has sent a message: that message."""
        yield sender, message

    def _told(self, sender: str, message: ReportChange | AnswerQuery) -> tuple[Action, ...]:
        match message:
            case ReportChange(change, upto):
                told = self.mediator.step(ChangeReported(change, upto))
                # A wrapper's answers reflect all that it has reported.
                self.mediator.step(SourceSettled(sender, change.number))
                return told
            case AnswerQuery(answer):
                return self.mediator.step(answer)

    def _included(self, cut: CutVector) -> Iterator[Transaction]:
        """The transactions that the view includes from now on."""
        before, self._applied = self._applied, cut
        for source, number in cut:
            for newer in range(before[source] + 1, number + 1):
                yield self._waiting.pop((source, newer))
