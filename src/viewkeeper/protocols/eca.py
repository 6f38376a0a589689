"""ECA: one source with several relations, compensated by further queries to it.

Paper: described in SWEEP (1997), section 3; the algorithm is the Eager Compensating Algorithm of 1995.
Level: strong. Assumes: all relations at one source, one FIFO channel for changes and answers, and
answers that reflect every change delivered before the question.

For each update U the query V⟨U⟩ is sent, and with it, in the same message, the compensation of every
query still open: an open query Q will be evaluated after U (had it been evaluated before, FIFO would
have delivered its answer before U), so its answer will contain Q⟨U⟩, which nobody asked for; that is
subtracted. Q⟨U⟩ is the difference that U makes to Q. Answers are collected, and installed when no query
is open: between such moments the view stands still.

| here | there |
|---|---|
| ``_open`` | UQS, the unanswered query set |
| ``collected`` | COLLECT |
| ``_difference`` | Q⟨U⟩ |

A transaction may change several relations of a query at once. Then, with X the contents after it and
X ⊖ Δ those before it, the difference is the sum over all non-empty sets K of changed relations of
(−1)^(|K|+1) times the product with the changes in the places of K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.protocols.compensation import changes_of, with_changes
from viewkeeper.protocols.messages import Action, AnswerArrived, Assumptions, Part
from viewkeeper.protocols.view_manager import ViewManager
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


class ECA(ViewManager):
    """Eager compensation: every update is asked about at once."""

    name = "eca"
    asks = "one question for each update, with compensation for all that are open"
    level = Level.STRONG
    assumes = Assumptions(fifo=True, no_inversions=True, one_source=True)
    paper = "SWEEP, section 3"

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        if len(definition.sources) != 1:
            raise UsageError(
                "protocol-not-applicable",
                f"eca can't maintain {definition.name}: it reads {len(definition.sources)} sources",
                detail=f"they are {', '.join(definition.sources)}; eca needs all at one",
                hint="use sweep, which takes any number of sources",
            )
        super().__init__(definition, extent)
        self.collected = self.nothing
        self._pending: list[Transaction] = []

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self._pending.append(transaction)
        whole = tuple(Part(i, assembly.aliases) for i, assembly in enumerate(self.assemblies))
        parts = [*self._difference(whole, transaction, sign=1)]
        for open_parts in self._open.values():
            parts += self._difference(open_parts, transaction, sign=-1)
        # Parts with nothing left to ask need no source: they are products of changes alone.
        for part in parts:
            if not part.asks:
                self.collected += self.assemblies[part.term].finished(part.given)
        asked = tuple(part for part in parts if part.asks)
        if asked:
            yield self.ask(transaction.source, asked, asked)
        yield from self._settled()

    def answer_arrived(self, asked: tuple[Part, ...], answer: AnswerArrived) -> Iterable[Action]:
        for part, rows in zip(asked, answer.answers, strict=True):
            self.collected += self.assemblies[part.term].finished(rows)
        yield from self._settled()

    def _settled(self) -> Iterator[Action]:
        """Install what was collected once nothing is open (the quiescence that ECA waits for)."""
        if not self._open and self._pending:
            change, self.collected = self.collected, self.nothing
            installed, self._pending = tuple(self._pending), []
            yield self.install(change, installed)

    def _difference(
        self, parts: Iterable[Part], transaction: Transaction, sign: int
    ) -> Iterator[Part]:
        """Q⟨U⟩ times ``sign``, as parts: Q now minus Q with the transaction taken back."""
        taken_back = changes_of((transaction,), sign=-1)
        for part in parts:
            for difference in with_changes(self.assemblies[part.term], part, taken_back):
                given = difference.given
                yield replace(difference, given=-given if sign > 0 else given)
