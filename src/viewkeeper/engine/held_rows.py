"""What must wait for views that can't begin, and what need not. Pure.

A view can't begin while its period runs, or while it has as many jobs as it may. A row that concerns such a view can't be
shown before it. Neither can a later row that concerns a view of a row which waits, nor one of the same source: a source
is a stream, whose transactions show in its order. Everything else is begun at once, and nothing is computed only to be
held back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from viewkeeper.engine.integrator import Arrival


class Held:
    """The views and sources of which everything later must wait."""

    def __init__(self, views: Iterable[str], sources: Iterable[str] = ()) -> None:
        self.views = set(views)
        self.sources = set(sources)

    def copy(self) -> Held:
        return Held(self.views, self.sources)

    def is_held(self, views: Iterable[str], sources: Iterable[str]) -> bool:
        return not (self.views.isdisjoint(views) and self.sources.isdisjoint(sources))

    def holds(self, views: Iterable[str], sources: Iterable[str]) -> bool:
        """Whether the next row must wait; if so, what must not be shown before it waits, too."""
        if not self.is_held(views, sources):
            return False
        self.views.update(views)
        self.sources.update(sources)
        return True


Concerned = Callable[[Iterable[Arrival]], tuple[str, ...]]


def parted(
    batch: tuple[Arrival, ...], concerned: Concerned, held: Held
) -> Iterator[tuple[tuple[Arrival, ...], bool]]:
    """Neighbours of a batch that all wait, or need not, and which of the two; ``held`` takes in what waits.

    Arrivals of one unit stay together.
    """
    if not held.views and not held.sources:
        yield batch, False
        return
    units = groupby(
        enumerate(batch), key=lambda e: -1 - e[0] if e[1].unit is None else id(e[1].unit)
    )
    told: list[tuple[bool, tuple[Arrival, ...]]] = []
    for _, members in units:
        unit = tuple(arrival for _, arrival in members)
        waits = held.holds(concerned(unit), {arrival.origin.source for arrival in unit})
        told.append((waits, unit))
    for waits, run in groupby(told, key=lambda each: each[0]):
        yield tuple(arrival for _, unit in run for arrival in unit), waits
