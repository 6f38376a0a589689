"""MRE: the rival wrapper that stores its source's part of the view.

Paper: described in MEDWRAP (2002), section 5; the Multi Relation Encapsulation wrapper of 1999. Level:
complete, strong when it takes several transactions together. Assumes: what MEDWRAP's wrapper assumes.

Changes are computed as in MEDWRAP, with a query and compensating ones, and added to a stored copy of the
virtual relation (ISV). The mediator's queries are answered from the copy: no question to the source, no
compensation. It is faster when sources change much while they are asked, and pays in space: one stored
view for each source, beside the warehouse's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.medwrap_messages import Action, AnswerQuery, Detection, ReportChange
from viewkeeper.protocols.medwrap_wrapper import MedwrapWrapper
from viewkeeper.protocols.messages import AnswerArrived, AskSource, Reflected
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName


class MreWrapper(MedwrapWrapper):
    """A wrapper with a stored source view (ISV)."""

    def __init__(
        self,
        mediation: Mediation,
        source: str,
        contents: Mapping[RelationName, Any],
        *,
        detection: Detection = Detection.REFLECTED_SETS,
        snapshots: bool = False,
        batch_max: int = 1,
    ) -> None:
        """``contents`` are the source's relations before the first transaction."""
        super().__init__(
            mediation, source, detection=detection, snapshots=snapshots, batch_max=batch_max
        )
        self.stored = {}
        for virtual in mediation.virtual_relations(source=source):
            assembly = mediation.assemblies[virtual.term]
            rows, _ = assembly.product(virtual.aliases, contents.__getitem__)
            self.stored[virtual.name] = mediation.contents(virtual, rows)

    def _begin_query(self, query: AskSource) -> Iterator[Action]:
        """Nothing needs to be asked: `_answer` has all it needs."""
        return iter(())

    def _answer(self, query: AskSource, collected: dict[int, Any]) -> Action:
        answers = []
        for part in query.parts:
            name = self.mediation.virtual(part.term, self.source).name
            assembly = self.mediation.source_assemblies[part.term]
            answers.append(
                assembly.extended(part.given, part.covers, self.source, self.stored[name])
            )
        return AnswerQuery(AnswerArrived(query.question, tuple(answers), Reflected(self._reported)))

    def _report(self, work: tuple[Transaction, ...], collected: dict[int, Any]) -> ReportChange:
        report = super()._report(work, collected)
        for name, rows in report.change.changes:
            self.stored[name] = self.stored[name] + rows
        return report
