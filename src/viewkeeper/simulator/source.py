"""Simulated sources: they commit a script, and answer questions from what can be seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.protocols.inbox import AnswerMessage, Message, SettledMessage, TransactionMessage
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    KeyedPart,
    Part,
    Reflected,
)
from viewkeeper.simulator.kernel.world import Act, Commit, Node, Reveal
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName


class ScriptedSource(Node, ABC):
    """Commits what its script says, one after the other.

    Committed and visible are two things: with ``inversions`` a query sees what has been revealed so
    far, in any order; else all that is committed.
    """

    def __init__(self, name: str, script: tuple[Transaction, ...], *, inversions: bool) -> None:
        self.name = name
        self.script = script
        self.inversions = inversions
        self.committed = 0
        self.invisible: list[int] = []

    @property
    def choices(self) -> list[Commit | Reveal]:
        more: list[Commit | Reveal] = (
            [Commit(self.name)] if self.committed < len(self.script) else []
        )
        return [*more, *(Reveal(self.name, number) for number in self.invisible)]

    @property
    def settled(self) -> int:
        """All up to this number are visible."""
        return min(self.invisible) - 1 if self.invisible else self.committed

    def commit(self) -> Transaction:
        """Make the next thing of the script happen."""
        made = self.script[self.committed]
        self.committed += 1
        self.invisible.append(made.number)
        if not self.inversions:
            for number in list(self.invisible):
                self.reveal(number)
        return made

    def reveal(self, number: int) -> bool:
        """Let queries see it from now on; whether more is settled than before."""
        before = self.settled
        self.invisible.remove(number)
        self.take_effect(self.script[number - 1])
        return self.settled > before

    @abstractmethod
    def take_effect(self, made: Transaction) -> None:
        """Change what queries see."""


class SimulatedSource(ScriptedSource):
    """A source of transactions that answers the questions of view managers."""

    answers_at_once = True

    def __init__(
        self,
        name: str,
        initial: Mapping[RelationName, Bag],
        script: tuple[Transaction, ...],
        embody: Callable[[Bag], Any] = lambda bag: bag,
        *,
        inversions: bool = False,
        assemblies: tuple[Assembly, ...] = (),
    ) -> None:
        embodied = tuple(
            t._replace(changes=tuple((r, embody(rows)) for r, rows in t.changes)) for t in script
        )
        super().__init__(name, embodied, inversions=inversions)
        self._contents = {r: embody(rows) for r, rows in initial.items() if r.source == name}
        self.assemblies = assemblies

    def act(self, act: Act) -> Iterable[Message]:
        """Commit, or reveal; what is announced of it."""
        match act:
            case Commit():
                transaction = self.commit()
                yield TransactionMessage(transaction, self.settled)
            case Reveal(_, number):
                if self.reveal(number):
                    yield SettledMessage(self.settled)

    def step(self, sender: str, event: AskSource) -> Iterable[Message]:
        """Answer at this moment."""
        yield AnswerMessage(self.answer(event, self.assemblies))

    def take_effect(self, made: Transaction) -> None:
        for name, change in made.changes:
            self._contents[name] = self._contents[name] + change

    @property
    def reflected(self) -> Reflected:
        """What a query sees now; written the shorter way round, so that both ways are in use."""
        highest = max(
            (n for n in range(self.settled, self.committed + 1) if self._sees(n)), default=0
        )
        missing = frozenset(n for n in self.invisible if n < highest)
        extra = frozenset(n for n in range(self.settled + 1, highest + 1) if self._sees(n))
        if len(missing) < len(extra):
            return Reflected(highest, without=missing)
        return Reflected(self.settled, also=extra)

    def _sees(self, number: int) -> bool:
        return 0 < number <= self.committed and number not in self.invisible

    def answer(self, question: AskSource, assemblies: tuple[Assembly, ...]) -> AnswerArrived:
        """All parts of a question, evaluated at this moment."""
        answers = tuple(self._evaluated(part, assemblies[part.term]) for part in question.parts)
        return AnswerArrived(question.question, answers, self.reflected)

    def _evaluated(self, part: Part | KeyedPart, assembly: Assembly) -> Any:
        if isinstance(part, KeyedPart):
            rows = self._contents[assembly.term.occurrence(part.alias).name]
            prepared = assembly.prepared(part.alias, rows)
            return prepared if part.keys is None else prepared.matching(part.key_columns, part.keys)
        rows, _ = assembly.product(part.asks, self._contents.__getitem__, part.given, part.covers)
        return rows
