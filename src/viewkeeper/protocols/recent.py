"""The changes a protocol still needs to know, and the correction of an answer by them.

Every compensation of the SWEEP family is one formula. Let an answer be P ⊗ X, with X the contents of
an occurrence as the source saw it, and let the protocol want X at number w of that source instead:

    wanted = answer  ⊕  P ⊗ (changes of X up to w that the answer does not reflect)
                     ⊖  P ⊗ (changes of X after w that it reflects)

The paper has only the second line, because a FIFO channel never leaves anything out. Real sources do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viewkeeper.protocols.messages import Reflected
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import Occurrence


class RecentTransactions:
    """Transactions by source and number, kept as long as some answer may need correction by them."""

    def __init__(self, sources: tuple[str, ...]) -> None:
        self._by_source: dict[str, dict[int, Transaction]] = {source: {} for source in sources}
        self._settled = dict.fromkeys(sources, 0)
        # For each open question: its source, and what was settled there when it was asked.
        self._open: dict[int, tuple[str, int]] = {}

    def __len__(self) -> int:
        return sum(len(known) for known in self._by_source.values())

    def add(self, transactions: Iterable[Transaction]) -> None:
        by_source = self._by_source
        for transaction in transactions:
            by_source[transaction[0]][transaction[1]] = transaction

    def of_source(self, source: str) -> Iterable[Transaction]:
        """The source's transactions that are still known, in its order."""
        return self._by_source[source].values()

    def numbers_of(self, source: str) -> Iterable[int]:
        """The numbers of those, in the same order."""
        return self._by_source[source].keys()

    def settle(self, source: str, upto: int) -> None:
        self._settled[source] = max(self._settled[source], upto)

    def asked(self, question: int, source: str) -> None:
        self._open[question] = (source, self._settled[source])

    def answered(self, question: int) -> None:
        del self._open[question]

    def correction(self, occurrence: Occurrence, wanted: int, reflects: Reflected) -> Any | None:
        """What must be added to the occurrence's contents as reflected, to get them as wanted.

        None when nothing must.
        """
        total = None
        for number, transaction in self._by_source[occurrence.source].items():
            if reflects.includes(number) == (number <= wanted):
                continue
            change = transaction.change(occurrence.name)
            if change is not None:
                signed = change if number <= wanted else -change
                total = signed if total is None else total + signed
        return total

    def forget(self, applied: CutVector) -> None:
        """Drop what no answer can need any more.

        A transaction can go when it is applied (so that everything from now on wants it) and every
        answer still to come reflects it: those asked from now on reflect what is settled now, an open
        one what was settled when it was asked.
        """
        for source, known in self._by_source.items():
            floors = [floor for asked, floor in self._open.values() if asked == source]
            bound = min([self._settled[source], applied[source], *floors])
            if known and next(iter(known)) <= bound:
                # They came in the order of their numbers. A block stays until all of it can go.
                kept = {n: each for n, each in known.items() if each.last_number > bound}
                self._by_source[source] = kept
