"""What the sources went through, and the views evaluated at any cut through it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from viewkeeper.algebra import Bag
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import RelationName, ViewDefinition

# The contents of all views at one moment, in the order of their definitions.
State = tuple[Bag, ...]


class SourceHistories:
    """Initial contents and the committed transactions of every source, in the source's order."""

    def __init__(
        self,
        initial: Mapping[RelationName, Bag],
        transactions: Mapping[str, Sequence[Transaction]],
    ) -> None:
        self.initial = dict(initial)
        self.transactions = {source: tuple(ts) for source, ts in transactions.items()}
        self._contents: dict[tuple[RelationName, int], Bag] = {}

    @property
    def lengths(self) -> dict[str, int]:
        return {source: len(ts) for source, ts in self.transactions.items()}

    @property
    def start(self) -> CutVector:
        return CutVector.start(self.transactions)

    @property
    def end(self) -> CutVector:
        return CutVector.of(self.lengths)

    def successors(self, cut: CutVector) -> Iterator[CutVector]:
        """The cuts that include one transaction more."""
        return cut.successors(self.lengths)

    @property
    def number_of_cuts(self) -> int:
        product = 1
        for length in self.lengths.values():
            product *= length + 1
        return product

    def has(self, cut: CutVector) -> bool:
        """Whether it is a cut through these histories: of these sources, and not beyond their ends."""
        numbers, lengths = dict(cut), self.lengths
        return numbers.keys() == lengths.keys() and all(
            0 <= number <= lengths[source] for source, number in numbers.items()
        )

    def all_cuts(self) -> Iterator[CutVector]:
        """Every cut, those with fewer transactions not necessarily first."""
        sources = sorted(self.transactions)
        ranges = [range(self.lengths[source] + 1) for source in sources]
        for numbers in itertools.product(*ranges):
            yield CutVector(tuple(zip(sources, numbers, strict=True)))

    def contents(self, name: RelationName, number: int) -> Bag:
        """A relation after the first ``number`` transactions of its source."""
        if number == 0:
            return self.initial[name]
        known = self._contents.get((name, number))
        if known is None:
            known = self.contents(name, number - 1)
            change = self.transactions[name.source][number - 1].change(name)
            if change is not None:
                known = known + change
            self._contents[name, number] = known
        return known


class ViewStates:
    """The views at any cut, each evaluated from scratch, once."""

    def __init__(self, definitions: Sequence[ViewDefinition], histories: SourceHistories) -> None:
        self._views = tuple(WholeView(definition) for definition in definitions)
        self.histories = histories
        self._states: dict[CutVector, State] = {}

    def __len__(self) -> int:
        """How many cuts have been evaluated."""
        return len(self._states)

    def number_changing(self, claims: Sequence[CutVector]) -> int:
        """How many transactions change the views, one after the other by way of these cuts.

        A cut that goes back, or that is none, is passed over; the way ends after all transactions.
        """
        way = [self.histories.start]
        for claim in (*claims, self.histories.end):
            if self.histories.has(claim) and claim.includes(way[-1]):
                way += steps_between(way[-1], claim)
        return sum(self.at(one) != self.at(other) for one, other in itertools.pairwise(way))

    def at(self, cut: CutVector) -> State:
        state = self._states.get(cut)
        if state is None:
            numbers = dict(cut)

            def contents(name: RelationName) -> Bag:
                return self.histories.contents(name, numbers[name.source])

            state = tuple(view.evaluated(contents) for view in self._views)
            self._states[cut] = state
        return state


def steps_between(start: CutVector, end: CutVector) -> Iterator[CutVector]:
    """Cuts from one to another, each with one transaction more, source after source."""
    cut = start
    for source, number in end:
        for reached in range(start[source] + 1, number + 1):
            cut = cut.advanced(source, reached)
            yield cut
