"""What must wait for views that can't begin, and what need not. Pure.

A view can't begin while its period runs, or while it has as many jobs as it may. A row that concerns such a view can't be
shown before it. Neither can a later row that concerns a view of a row which waits, nor one of the same source: a source
is a stream, whose transactions show in its order. Everything else is begun at once, and nothing is computed only to be
held back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from viewkeeper.engine.integrator import Arrival

NOTHING: frozenset[str] = frozenset()


class Held:
    """For each view and source, which views everything later of it waits for.

    ``blocked`` views can't begin. ``apart`` are views that should hold back nothing that need not wait for them, also
    when they can begin: what waits for them is told from the rest.
    """

    def __init__(self, blocked: frozenset[str], apart: Iterable[str] = ()) -> None:
        self.blocked = blocked
        self._of_view = {view: frozenset((view,)) for view in (*blocked, *apart)}
        self._of_source: dict[str, frozenset[str]] = {}

    def copy(self) -> Held:
        copied = Held(self.blocked)
        copied._of_view, copied._of_source = dict(self._of_view), dict(self._of_source)
        return copied

    @property
    def is_empty(self) -> bool:
        return not self._of_view

    def waits_for(self, views: Iterable[str], sources: Iterable[str]) -> frozenset[str]:
        """The views, blocked or apart, that must come no later than a row that concerns these."""
        of_views = (self._of_view.get(view, NOTHING) for view in views)
        return NOTHING.union(*of_views, *(self._of_source.get(s, NOTHING) for s in sources))

    def is_held(self, views: Iterable[str], sources: Iterable[str]) -> bool:
        """Whether a row that concerns these must wait for a view that can't begin."""
        return not self.blocked.isdisjoint(self.waits_for(views, sources))

    def take(self, views: Iterable[str], sources: Iterable[str]) -> frozenset[str]:
        """The views that the next row waits for; what follows it waits for them, too."""
        waits = self.waits_for(views, sources)
        if waits:
            self._of_view.update(dict.fromkeys(views, waits))
            self._of_source.update(dict.fromkeys(sources, waits))
        return waits


Concerned = Callable[[Sequence[Arrival]], tuple[str, ...]]


def parted(
    batch: tuple[Arrival, ...], concerned: Concerned, held: Held
) -> Iterator[tuple[tuple[Arrival, ...], tuple[str, ...], bool]]:
    """Neighbours of a batch that wait for the same views, the views they concern, and whether one can't begin.

    Arrivals of one unit stay together. ``held`` takes in what waits.
    """
    if held.is_empty:
        yield batch, concerned(batch), False
        return
    units = groupby(
        enumerate(batch), key=lambda e: -1 - e[0] if e[1].unit is None else id(e[1].unit)
    )
    told: list[tuple[frozenset[str], tuple[str, ...], tuple[Arrival, ...]]] = []
    for _, members in units:
        unit = tuple(arrival for _, arrival in members)
        sources = {arrival.origin.source for arrival in unit}
        views = concerned(unit)
        told.append((held.take(views, sources), views, unit))
    for waits, run in groupby(told, key=lambda each: each[0]):
        parts = list(run)
        together = tuple(arrival for _, _, unit in parts for arrival in unit)
        views = tuple(dict.fromkeys(view for _, views, _ in parts for view in views))
        yield together, views, not held.blocked.isdisjoint(waits)
