"""Epochs: what all groups commit, one after the other, into the one ledger.

Every group numbers its own transactions. The warehouse numbers states: the transactions of an epoch
get the next numbers when it is committed, whichever group it comes from. Groups share no relation, so
their epochs may interleave in any way, and every number is a state of all views together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.protocols.messages import TXN
from viewkeeper.sources.interface import Position, Source
from viewkeeper.warehouse.commits import Changes, EpochCommit, Extent
from viewkeeper.warehouse.entries import Definition, Entry
from viewkeeper.warehouse.writer import Writer

Cut = Mapping[str, Position]


class Epochs:
    """The one hand that commits. Thread-safe."""

    def __init__(
        self,
        writer: Writer,
        sources: Mapping[str, Source],
        confirm: Callable[[Cut], None],
    ) -> None:
        """``confirm`` is told what every view has: the sources may forget it."""
        self.writer = writer
        self._sources = sources
        self._confirm = confirm
        self._lock = threading.Lock()

    def apply(
        self,
        numbers: Sequence[int],
        tables: Mapping[str, Sequence[pa.Table]],
        cuts: Mapping[str, Cut],
    ) -> Entry:
        """A group's transactions of these numbers, which bring each of its views to its cut."""
        with self._lock:
            first = self.writer.latest.last_txn + 1
            views = {
                view: Changes(_renumbered(pa.concat_tables(parts), numbers, first))
                for view, parts in tables.items()
            }
            last = first + len(numbers) - 1
            return self._committed(first_txn=first, last_txn=last, views=views, cuts=cuts)

    def fill(
        self,
        extents: Mapping[str, Any],
        definitions: Mapping[str, Definition],
        cuts: Mapping[str, Cut],
    ) -> Entry:
        """New views, whole, as they are at their cuts."""
        views = {view: Extent(rows) for view, rows in extents.items()}
        return self._standing(views=views, definitions=definitions, cuts=cuts)

    def advance(self, cuts: Mapping[str, Cut]) -> Entry:
        """Nothing happened for these views up to their cuts; they and the sources take note of it."""
        return self._standing(cuts=cuts)

    def drop(self, views: frozenset[str]) -> Entry:
        """These views are no longer wanted; their older states stay readable."""
        return self._standing(dropped=views)

    def _standing(self, **parts: Any) -> Entry:
        with self._lock:
            last = self.writer.latest.last_txn
            return self._committed(first_txn=last + 1, last_txn=last, **parts)

    def _committed(self, **parts: Any) -> Entry:
        cuts: Mapping[str, Cut] = parts.get("cuts", {})
        dropped: frozenset[str] = parts.get("dropped", frozenset())
        everybody = self._earliest(cuts, dropped)
        entry = self.writer.commit(EpochCommit(positions=everybody, **parts))
        self._confirm(everybody)
        return entry

    def _earliest(self, news: Mapping[str, Cut], dropped: frozenset[str]) -> dict[str, Position]:
        """For each source, the position that every view which reads it has reached."""
        cuts: dict[str, Cut] = {
            view: state.positions
            for view, state in self.writer.latest.views.items()
            if view not in dropped
        }
        for view, cut in news.items():
            cuts[view] = dict(cuts.get(view, {})) | dict(cut)
        return earliest(cuts.values(), self._sources)


def earliest(cuts: Iterable[Cut], sources: Mapping[str, Source]) -> dict[str, Position]:
    """For each source, the earliest of its positions in some cuts."""
    found: dict[str, Position] = {}
    for cut in cuts:
        for name, position in cut.items():
            source = sources.get(name)
            if source is None:
                continue
            known = found.get(name)
            if known is None or source.compare_positions(position, known) < 0:
                found[name] = position
    return found


def _renumbered(table: pa.Table, numbers: Sequence[int], first: int) -> pa.Table:
    """The n-th of the group's numbers becomes ``first`` + n."""
    place = table.schema.get_field_index(TXN)
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        column = pc.add(table.column(place), first - numbers[0])
    else:
        old = table.column(place).to_numpy()
        column = pa.array(np.searchsorted(np.asarray(numbers), old) + first, pa.int64())
    return table.set_column(place, table.schema.field(place), column)
