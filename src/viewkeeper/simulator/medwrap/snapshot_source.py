"""A simulated source with snapshots, as PostgreSQL has them: two questions can be answered at one cut."""

from __future__ import annotations

from typing import Any

from viewkeeper.protocols.medwrap_messages import AskAtCut
from viewkeeper.protocols.messages import AnswerArrived, Reflected
from viewkeeper.simulator.source import SimulatedSource


class SnapshotSource(SimulatedSource):
    """A source that can answer again at the cut of an earlier answer, until that is closed."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.cuts: dict[int, tuple[dict[Any, Any], Reflected]] = {}

    def keep(self, question: int) -> None:
        self.cuts[question] = (dict(self._contents), self.reflected)

    def answer_at(self, question: AskAtCut, assemblies: Any) -> AnswerArrived:
        contents, reflects = self.cuts[question.cut_of]
        now, self._contents = self._contents, contents
        answers = tuple(self._evaluated(p, assemblies[p.term]) for p in question.parts)
        self._contents = now
        return AnswerArrived(question.question, answers, reflects)
