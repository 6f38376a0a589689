"""What happened in a run of MEDWRAP, for people: a transcript in the paper's words.

LMQ, GMQ and CQ are a wrapper's questions to its source, QR the answers, numbered at that wrapper. GMQ and
GMQR between mediator and wrapper are numbered at the mediator. ΔIS is a report.
"""

from __future__ import annotations

from viewkeeper.protocols.medwrap_messages import AnswerQuery, AskAtCut, Purpose, ReportChange
from viewkeeper.protocols.messages import AnswerArrived, AskSource
from viewkeeper.simulator.journal import Entry, Journal, rows_text

MEDIATOR = "mediator"


class MedwrapJournal(Journal):
    """Collects what sources, wrappers and the mediator send each other."""

    def wrapper_asked(self, source: str, question: AskSource | AskAtCut, purpose: Purpose) -> None:
        parts = ", ".join(
            ("" if part.given is None else rows_text(part.given) + " ⊗ ") + " ⊗ ".join(part.asks)
            for part in question.parts
        )
        self._sent("ask", _wrapper(source), f"{purpose.value}{question.question} {parts}", source)

    def source_answered(self, source: str, answer: AnswerArrived) -> None:
        rows = ", ".join(rows_text(rows) for rows in answer.answers)
        text = f"QR{answer.question} {rows} (reflects {answer.reflects})"
        self._sent("answer", source, text, _wrapper(source))

    def reported(self, source: str, report: ReportChange) -> None:
        rows = "; ".join(rows_text(rows) for _, rows in report.change.changes) or "⊥"
        text = f"ΔIS#{report.change.number} {rows} ({source} at {report.upto})"
        self._sent("report", _wrapper(source), text, MEDIATOR)

    def mediator_asked(self, query: AskSource) -> None:
        given = ", ".join(rows_text(part.given) for part in query.parts)
        text = f"GMQ{query.question} {given} ⊗ {query.source}"
        self._sent("query", MEDIATOR, text, _wrapper(query.source))

    def query_answered(self, source: str, action: AnswerQuery) -> None:
        answer = action.answer
        rows = ", ".join(rows_text(rows) for rows in answer.answers)
        text = f"GMQR{answer.question} {rows} (reflects ΔIS {answer.reflects})"
        self._sent("result", _wrapper(source), text, MEDIATOR)

    def _sent(self, kind: str, place: str, text: str, to: str) -> None:
        self.entries.append(Entry(kind, place, text, to))


def _wrapper(source: str) -> str:
    return f"{source} wrapper"
