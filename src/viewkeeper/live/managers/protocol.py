"""View managers that are a protocol of the papers, as the simulator plays it, over live sources.

The protocol gets some transactions, and only then are its questions answered, with all of them
reflected: so it has to compensate for the later ones, as it would with a source that is ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from viewkeeper.errors import invariant
from viewkeeper.live.jobs import Job
from viewkeeper.live.managers.buffering import BufferedManager, ManagerInputs, Piece
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.protocols.messages import (
    Action,
    AskSource,
    InstallChange,
    Protocol,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.staged import StagedRelation, Staging
from viewkeeper.views.level import Level

P = TypeVar("P", bound=Protocol)


class ProtocolManager(BufferedManager, Generic[P]):
    """One view, kept by a protocol that asks sources."""

    def __init__(self, inputs: ManagerInputs, kind: type[P]) -> None:
        super().__init__(inputs)
        self.level = kind.level
        self.kind = kind
        self._protocol: P | None = None

    def changes(self, job: Job, questions: Questions) -> Iterator[tuple[Any, int]]:
        last = job.batch[-1].number
        for piece in self.pieces(job, questions):
            for install in self._installs(piece):
                number = last
                if self.level is Level.COMPLETE:
                    (transaction,) = install.transactions
                    number = piece.numbers[transaction.source, transaction.number]
                yield install.change, number
        self._move(questions.staging)

    def _installs(self, piece: Piece) -> Iterator[InstallChange]:
        if self._protocol is None:
            self._protocol = self.make(piece)
        protocol = self._protocol
        self._move(piece.staging)
        todo: deque[Action] = deque()
        for transaction in piece.transactions:
            todo += protocol.step(TransactionArrived(transaction))
        while todo:
            match todo.popleft():
                case AskSource() as question:
                    self.note_question(protocol, question)
                    todo += protocol.step(piece.end.answer(question))
                case InstallChange() as install:
                    yield install
                case action:
                    invariant(False, f"{protocol.name} wants what can't be done live: {action}")
        invariant(protocol.is_idle, f"{protocol.name} has all answers and is not done")
        for source, number in piece.end.reached.items():
            protocol.step(SourceSettled(source, number))

    def make(self, piece: Piece) -> P:
        """The protocol as it begins, before the piece."""
        return self.kind(self.definition, self.extent(piece.staging))

    def note_question(self, protocol: P, question: AskSource) -> None:
        """Take note of a question that is about to be answered."""

    def holders(self, protocol: P) -> tuple[Any, ...]:
        """Where the protocol keeps relations between transactions."""
        return (protocol,)

    def _move(self, staging: Staging) -> None:
        """What is kept outlives the files and the session of a job."""
        if self._protocol is not None:
            for holder in self.holders(self._protocol):
                move_relations(holder, staging)


def move_relations(holder: Any, staging: Staging) -> None:
    """Bring the relations that an object has, and those in its dicts, into this process."""
    moved: dict[int, StagedRelation] = {}

    def taken(value: Any) -> Any:
        if not isinstance(value, SparkRelation):
            return value
        if id(value) not in moved:
            moved[id(value)] = staging.taken(value)
        return moved[id(value)]

    for name, value in list(vars(holder).items()):
        if isinstance(value, dict):
            value.update({key: taken(each) for key, each in value.items()})
        elif isinstance(value, SparkRelation):
            setattr(holder, name, taken(value))
