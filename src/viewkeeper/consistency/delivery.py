"""Did the view change in the order in which the transactions were delivered?

A level of consistency allows any order that keeps each source's own: transactions of different sources may
change places. SWEEP promises more: changes are installed in the order in which updates were delivered to
the warehouse (section 5 of its paper). That is the same question with fewer cuts. The only moments are the
prefixes of the order of delivery, and the levels are those of `checker` over them: *complete* means that
each delivered transaction was one step, *strong* that each state is the view after some prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from viewkeeper.consistency.checker import Verdict, check
from viewkeeper.consistency.histories import SourceHistories, State
from viewkeeper.errors import invariant
from viewkeeper.timeline import CutVector
from viewkeeper.views.definition import ViewDefinition


def check_order(
    definitions: Sequence[ViewDefinition],
    histories: SourceHistories,
    delivered: Sequence[str],
    states: Sequence[State],
    claims: Sequence[CutVector] | None = None,
) -> Verdict:
    """The level of a history when nothing but the order of delivery counts.

    ``delivered`` names the source of each transaction in the order in which they came, all of them;
    those of one source came in its order. A claim of anything but a prefix is wrong.
    """
    return check(definitions, DeliveredHistories(histories, delivered), states, claims)


class DeliveredHistories(SourceHistories):
    """Histories of which only the prefixes of one order are cuts."""

    def __init__(self, histories: SourceHistories, delivered: Sequence[str]) -> None:
        super().__init__(histories.initial, histories.transactions)
        cut = self.start
        self._prefixes = {cut: 0}
        for place, source in enumerate(delivered, 1):
            cut = cut.advanced(source, cut[source] + 1)
            self._prefixes[cut] = place
        invariant(
            cut == self.end,
            "not every transaction was delivered",
            detail=f"delivered up to {cut}, committed up to {self.end}",
        )
        self._in_order = tuple(self._prefixes)

    def successors(self, cut: CutVector) -> Iterator[CutVector]:
        place = self._prefixes[cut] + 1
        return iter(self._in_order[place : place + 1])

    @property
    def number_of_cuts(self) -> int:
        return len(self._in_order)

    def has(self, cut: CutVector) -> bool:
        return cut in self._prefixes

    def all_cuts(self) -> Iterator[CutVector]:
        return iter(self._in_order)
