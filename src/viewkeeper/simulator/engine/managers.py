"""Simulated view managers of one group: what they were told, what they have to compute, and what comes of it.

A manager takes transactions in the order of arrival and leaves none out. It computes when it is done, with what is not
forgotten by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from viewkeeper.algebra import Bag
from viewkeeper.engine.integrator import Arrival, numbers_of
from viewkeeper.engine.messages import StartJob
from viewkeeper.engine.view import View
from viewkeeper.errors import invariant
from viewkeeper.simulator.engine.computing import Contents
from viewkeeper.simulator.engine.selection import selects
from viewkeeper.simulator.engine.sources import SimulatedCut
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.views.level import Level

Computation = tuple[StartJob, Mapping[str, SimulatedCut]]


@dataclass
class Managers:
    """Of one group: the views, what has arrived for them, and the jobs that each has to compute."""

    views: Mapping[str, View] = field(default_factory=dict)
    # What is not forgotten, by source and number.
    told: dict[tuple[str, int], Arrival] = field(default_factory=dict)
    # The number of the last transaction that each view took up.
    taken: dict[str, int] = field(default_factory=dict)
    todo: dict[str, deque[Computation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken = dict.fromkeys(self.views, 0)
        self.todo = {view: deque() for view in self.views}

    def tell(self, arrivals: Iterable[Arrival]) -> None:
        for arrival in arrivals:
            self.told[arrival.transaction.source, arrival.transaction.number] = arrival

    def forget(self, upto: int) -> None:
        self.told = {place: a for place, a in self.told.items() if a.number > upto}

    def begin(self, job: StartJob, cuts: Mapping[str, SimulatedCut]) -> None:
        numbers = [int(number) for number in numbers_of(job.batch)]
        for view in job.told:
            first = self.taken[view] + 1
            invariant(numbers == [*range(first, first + len(numbers))], f"{view} takes {numbers}")
            self.taken[view] = numbers[-1]
            self.todo[view].append((job, cuts))

    def computed(
        self, view: str, job: StartJob, cuts: Mapping[str, SimulatedCut]
    ) -> dict[int, Bag]:
        """What a job changes in a view, by transaction."""
        before = dict(job.settled)
        for arrival in job.batch:
            source, first = arrival.transaction.source, arrival.transaction.number
            before[source] = min(before[source], first - 1)
        later = [a for (s, n), a in self.told.items() if n > before.get(s, n)]
        contents = Contents(cuts, self.views)
        contents.take_back_reflected(later, job.reflected)
        definition = self.views[view].definition
        shown = contents.evaluated(self.views[view])
        total = Bag(shown.schema)
        found: dict[int, Bag] = {}
        for arrival in job.batch:
            place = arrival.transaction.source, arrival.transaction.number
            if isinstance(arrival.origin, SourceTransaction) and selects(
                definition, arrival.origin
            ):
                invariant(place in self.told, f"{view} needs {place}, which is forgotten")
            contents.apply(arrival)
            after = contents.evaluated(self.views[view])
            if after != shown:
                found[arrival.number] = after + -shown
                total = total + found[arrival.number]
            shown = after
        is_complete = self.views[view].choice.level is Level.COMPLETE
        return found if is_complete else {job.batch[-1].number: total}
