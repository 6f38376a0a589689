"""Exact cuts for a group: one per source, with everything known that they can reflect."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from viewkeeper.engine.cuts import (
    broken_types,
    cut_behind,
    feed_behind,
    reflected_by,
    source_restarted,
)
from viewkeeper.protocols.messages import Reflected
from viewkeeper.runtime.bulk_reading import RowsRead
from viewkeeper.runtime.change_tables import ChangeTables
from viewkeeper.runtime.contents import Reading, whole_schemas
from viewkeeper.runtime.intake import Intake
from viewkeeper.runtime.jobs import StageFolder
from viewkeeper.sources.interface import Cut, SourceTransaction
from viewkeeper.sources.stretch import Stretch
from viewkeeper.spark.persisting import persisted
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import RelationName

# A feed that keeps up passes a cut in less.
SOON_SECONDS = 0.02


class Stopped(Exception):
    """A cut was being waited for that is no longer needed: the group is to end, or a schema change
    has come, and nothing behind it is taken in before the views have."""


class ExactCuts(Intake):
    """Opens cuts, and waits until the feeds have passed them; reads whole relations at them."""

    ending = False
    # The changes that have arrived, as tables, and how many of each source's are in batches.
    changes: ChangeTables
    applied: dict[str, int]

    def open_cuts(
        self,
        stack: contextlib.ExitStack,
        while_waiting: Callable[[dict[str, Cut]], None] | None = None,
    ) -> dict[str, Cut]:
        """One cut per source, with everything known that they can reflect.

        ``while_waiting`` is given the cuts if the feeds need a while to pass them.
        """
        cuts = {
            name: stack.enter_context(self.around.sources[name].cut(self._relations_of(name)))
            for name in self.sources
            if name in self.read_sources
        }
        for name, cut in cuts.items():
            if self.compared(name, cut.bound, self.reached[name]) < 0:
                raise cut_behind(name)
        self._await_bounds(cuts, while_waiting)
        self._check_types(cuts)
        return cuts

    def _check_types(self, cuts: Mapping[str, Cut]) -> None:
        """Raise a broken query where a column has another type at its cut than the views know."""
        known = whole_schemas(view.definition for view in self.views.values())
        for name, schema in known.items():
            found = cuts[name.source].schemas[name.relation].schema
            for field in schema:
                if field.name in found and found.type_of(field.name) != field.type:
                    now = found.type_of(field.name)
                    what = f"{name.relation}.{field.name}"
                    raise broken_types(name.source, f"{what} as {field.type}", f"{what} as {now}")

    def _relations_of(self, source: str) -> tuple[str, ...]:
        return tuple(name.relation for name in self.relations if name.source == source)

    def reflected(self, cuts: Mapping[str, Cut]) -> dict[str, Reflected]:
        waiting: dict[str, list[SourceTransaction | Stretch]] = {name: [] for name in self.sources}
        for _, origin, *_ in self.integrator.pending:
            waiting[origin.source].append(origin)
        return {
            name: reflected_by(cut, self.applied[name], waiting[name]) for name, cut in cuts.items()
        }

    def _await_bounds(
        self, cuts: dict[str, Cut], while_waiting: Callable[[dict[str, Cut]], None] | None
    ) -> None:
        patience = self.around.limits.bound_wait_seconds
        behind = list(cuts)
        begun = moved_at = time.monotonic()
        stood = dict(self.fed)
        self.needs_all = True
        try:
            while behind := [name for name in behind if not self._has_passed(name, cuts[name])]:
                if self.ending or self.due:
                    raise Stopped
                self.take_in(0.05)
                if stood != self.fed:
                    moved_at, stood = time.monotonic(), dict(self.fed)
                if time.monotonic() - moved_at > patience:
                    raise feed_behind(behind, patience)
                if while_waiting is not None and time.monotonic() - begun > SOON_SECONDS:
                    while_waiting(cuts)
                    while_waiting = None
        finally:
            self.needs_all = False
        if self.due:
            # The bound may be the very place of a schema change: then the cut is behind it.
            raise Stopped
        for name in cuts:
            if not self.are_of_this_life({name: cuts[name]}):
                raise source_restarted(name)

    def are_of_this_life(self, cuts: Mapping[str, Cut]) -> bool:
        """Whether no source was restarted between its cut and what its feed has delivered."""
        return all(cut.life == self.life[name] for name, cut in cuts.items())

    def _has_passed(self, name: str, cut: Cut) -> bool:
        known = self.life[name] is not None
        return known and self.compared(name, self.fed[name], cut.bound) >= 0

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading]:
        """Relations as they are at the cut that the group stands at."""
        stage = StageFolder(self.around.spark.bulk)
        staging = Staging(self.around.spark.bulk, stage.path)
        try:
            with contextlib.ExitStack() as stack:
                cuts = self.open_cuts(stack)
                waiting = tuple(self.integrator.pending)
                reflected = self.reflected(cuts)
                share = stack.enter_context(persisted())
                yield Reading(staging, cuts, reflected, waiting, self.changes, self._on_rows, share)
        finally:
            stage.remove()

    def _on_rows(self, name: RelationName, read: RowsRead) -> None:
        if self.ending:
            raise Stopped
        self.around.on_rows(name, read)
