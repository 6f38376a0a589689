"""The integrator's part: it numbers updates in the order of their arrival and says whom they concern.

Paper: MVC (1997), section 3.2. A view is relevant if it reads a relation that the transaction changed.
What is sent to the view managers is not its business; they get the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from viewkeeper.merging.messages import RelevanceArrived


class Integrator:
    """Numbers updates 1, 2, 3, …; views may come and go.

    ``keep_source_order``: a source is a stream, whose transactions show in its order. Without it only
    views that have something in common order them, as in the paper.
    """

    def __init__(
        self,
        views: Mapping[str, Iterable[Hashable]] | None = None,
        *,
        keep_source_order: bool = True,
    ) -> None:
        self.keep_source_order = keep_source_order
        self.views = {view: frozenset(relations) for view, relations in (views or {}).items()}
        self.last_row = 0

    def number(
        self, source: str, relations: Iterable[Hashable], *, more: bool = False
    ) -> RelevanceArrived:
        """The next update: a transaction of that source over these relations."""
        changed = set(relations)
        concerned = tuple(view for view, reads in self.views.items() if reads & changed)
        self.last_row += 1
        streams = (source,) if self.keep_source_order else ()
        return RelevanceArrived(self.last_row, concerned, streams, more)

    def number_view(self, view: str, sources: Iterable[str]) -> RelevanceArrived:
        """The initial extent of a new view as an update of its own.

        Its action list holds the view as of all rows before this one. It stands in the stream of every
        source that the view reads, so it shows after what it includes and before what it does not.
        """
        self.last_row += 1
        return RelevanceArrived(self.last_row, (view,), tuple(sources))
