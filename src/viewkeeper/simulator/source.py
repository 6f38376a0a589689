"""A simulated source: it commits its script, and answers questions from what it can see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    KeyedPart,
    Part,
    Reflected,
)
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName


class SimulatedSource:
    """Committed and visible are two things: a query sees what is visible, in any order."""

    def __init__(
        self,
        name: str,
        initial: Mapping[RelationName, Bag],
        script: tuple[Transaction, ...],
        embody: Callable[[Bag], Any],
    ) -> None:
        self.name = name
        self.script = tuple(
            t._replace(changes=tuple((r, embody(rows)) for r, rows in t.changes)) for t in script
        )
        self.committed = 0
        self.invisible: list[int] = []
        self._contents = {r: embody(rows) for r, rows in initial.items() if r.source == name}

    @property
    def has_more(self) -> bool:
        return self.committed < len(self.script)

    @property
    def settled(self) -> int:
        """All transactions up to this number are visible."""
        return min(self.invisible) - 1 if self.invisible else self.committed

    def commit(self) -> Transaction:
        """Commit the next transaction; it is not yet visible."""
        transaction = self.script[self.committed]
        self.committed += 1
        self.invisible.append(transaction.number)
        return transaction

    def reveal(self, number: int) -> None:
        """Let queries see a committed transaction from now on."""
        self.invisible.remove(number)
        for name, change in self.script[number - 1].changes:
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
            return prepared if part.keys is None else _matching(prepared, part)
        partial, covers = part.given, part.covers
        for alias in part.asks:
            rows = self._contents[assembly.term.occurrence(alias).name]
            if partial is None:
                partial = assembly.prepared(alias, rows)
            else:
                partial = assembly.extended(partial, covers, alias, rows)
            covers |= {alias}
        return partial


def _matching(rows: Any, part: KeyedPart) -> Any:
    """The rows whose key columns are among the keys."""
    names = tuple(f"key {name}" for name in part.key_columns)
    pairs = tuple(zip(part.key_columns, names, strict=True))
    joined = rows.join(part.keys.renamed(names), pairs)
    return joined.select(tuple(Output(name, Column(name)) for name in rows.schema.names))
