"""A simulated source with snapshots, as PostgreSQL has them: two questions can be answered at one cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viewkeeper.protocols.inbox import AnswerMessage
from viewkeeper.protocols.medwrap_messages import AskAtCut
from viewkeeper.protocols.messages import AnswerArrived, AskSource, Reflected
from viewkeeper.simulator.source import SimulatedSource


class SnapshotSource(SimulatedSource):
    """A source that can answer again at the cut of an earlier answer, until that is closed.

    ``keeps``: the cut of every answer is kept open.
    """

    def __init__(self, *given: Any, keeps: bool = False, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.keeps = keeps
        self.cuts: dict[int, tuple[dict[Any, Any], Reflected]] = {}

    def step(self, sender: str, event: AskSource | AskAtCut) -> Iterable[AnswerMessage]:
        if isinstance(event, AskAtCut):
            yield AnswerMessage(self.answer_at(event, self.assemblies))
            return
        if self.keeps:
            self.keep(event.question)
        yield AnswerMessage(self.answer(event, self.assemblies))

    def keep(self, question: int) -> None:
        self.cuts[question] = (dict(self._contents), self.reflected)

    def answer_at(self, question: AskAtCut, assemblies: Any) -> AnswerArrived:
        contents, reflects = self.cuts[question.cut_of]
        now, self._contents = self._contents, contents
        answers = tuple(self._evaluated(p, assemblies[p.term]) for p in question.parts)
        self._contents = now
        return AnswerArrived(question.question, answers, reflects)

    @property
    def waits_for(self) -> str | None:
        return f"its wrapper to close the cuts of {sorted(self.cuts)}" if self.cuts else None
