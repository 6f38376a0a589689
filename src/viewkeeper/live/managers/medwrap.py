"""MEDWRAP and MRE live: wrappers beside the mediator, joins of one source's relations at the source."""

from __future__ import annotations

from typing import Any

from viewkeeper.live.managers.buffering import ManagerInputs, Piece
from viewkeeper.live.managers.protocol import ProtocolManager
from viewkeeper.protocols.medwrap import Medwrap
from viewkeeper.protocols.messages import AskSource
from viewkeeper.protocols.ordered_medwrap import OrderedMedwrap, OrderedMre
from viewkeeper.spark.staged import StagedRelation
from viewkeeper.views.definition import RelationName


class MedwrapManager(ProtocolManager[Medwrap]):
    """LMQ, GMQ and compensating queries of a job are all at one cut."""

    def __init__(self, inputs: ManagerInputs) -> None:
        super().__init__(inputs, OrderedMedwrap)

    def note_question(self, protocol: Medwrap, question: AskSource) -> None:
        self.counts.purposes[protocol.purpose(question.question).value] += 1

    def holders(self, protocol: Medwrap) -> tuple[Any, ...]:
        return (protocol.mediator.inside, *protocol.wrappers.values())


class MreManager(MedwrapManager):
    """Each source's part of the view is held here, and read once when the manager begins."""

    def make(self, piece: Piece) -> Medwrap:
        contents = {name: self._before(piece, name) for name in self.schemas}
        return OrderedMre(self.definition, self.extent(piece.staging), contents)

    def _before(self, piece: Piece, name: RelationName) -> StagedRelation:
        """A relation without what the piece changes in it."""
        rows: Any = piece.end.whole(name, self.schemas[name])
        for transaction in piece.transactions:
            change = transaction.change(name)
            if change is not None:
                rows = rows - change
        return piece.staging.taken(rows.consolidated())
