"""MEDWRAP whose changes come in the order of arrival, as the live pipeline numbers them.

Ours, on MEDWRAP. Level: complete, in that very order. Assumes: what MEDWRAP assumes.

A wrapper that need not ask its source reports at once, and may so overtake a wrapper whose transaction
arrived earlier. The view then steps through every transaction all the same, but in another order than
the views beside it. Here reports wait until all that arrived before them are reported; an answer waits
for the reports that it reflects. Wrappers do not wait for the mediator with anything, so nobody waits for
ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from viewkeeper.protocols.medwrap import Medwrap
from viewkeeper.protocols.medwrap_messages import AnswerQuery, ReportChange
from viewkeeper.protocols.messages import Action, Event, TransactionArrived
from viewkeeper.protocols.mre import MreWrapper
from viewkeeper.views.definition import RelationName, ViewDefinition

_Sent = tuple[str, ReportChange | AnswerQuery]


class OrderedMedwrap(Medwrap):
    """MEDWRAP in the order of arrival."""

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self._order: deque[tuple[str, int]] = deque()
        self._reports: dict[tuple[str, int], ReportChange] = {}
        self._answers: list[tuple[str, AnswerQuery]] = []
        self._reported = dict.fromkeys(definition.sources, 0)

    def step(self, event: Event) -> tuple[Action, ...]:
        if isinstance(event, TransactionArrived):
            self._order.append((event.transaction.source, event.transaction.number))
        return super().step(event)

    def due(self, sender: str, message: ReportChange | AnswerQuery) -> Iterator[_Sent]:
        match message:
            case ReportChange(_, upto):
                self._reports[sender, upto] = message
            case AnswerQuery():
                self._answers.append((sender, message))
        yield from self._due_answers()
        while self._order and self._order[0] in self._reports:
            place = self._order.popleft()
            report = self._reports.pop(place)
            self._reported[place[0]] = report.change.number
            yield place[0], report
            yield from self._due_answers()

    def _due_answers(self) -> list[_Sent]:
        def is_ready(sent: tuple[str, AnswerQuery]) -> bool:
            return sent[1].answer.reflects.highest <= self._reported[sent[0]]

        ready: list[_Sent] = [sent for sent in self._answers if is_ready(sent)]
        self._answers = [sent for sent in self._answers if not is_ready(sent)]
        return ready


class OrderedMre(OrderedMedwrap):
    """MEDWRAP in the order of arrival, with wrappers that store their source's part of the view."""

    name = "mre"
    asks = "each source's part once at the start; then one join for each update"
    paper = "MEDWRAP, section 5"
    at_sources = "room for a copy of every source's part of the view"

    def __init__(
        self, definition: ViewDefinition, extent: Any, contents: Mapping[RelationName, Any]
    ) -> None:
        """``contents`` are the relations before the first transaction."""
        super().__init__(definition, extent)
        self.wrappers = {
            source: MreWrapper(wrapper.mediation, source, contents)
            for source, wrapper in self.wrappers.items()
        }
