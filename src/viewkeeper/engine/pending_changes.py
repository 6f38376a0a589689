"""Schema changes that a group has taken and whose rows are not in the warehouse yet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from viewkeeper.engine.schema_changes import Foreseen
from viewkeeper.engine.view import View
from viewkeeper.evolution.effects import Effect
from viewkeeper.evolution.map_va import MapVA, NotApplicable, plan
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.views.definition import ViewDefinition


class PendingChanges:
    """Which views are to be filled, and what leads from their old extents to the new ones."""

    def __init__(self, new: Iterable[str]) -> None:
        self.new = tuple(new)
        # Of views whose extent is behind their definition: the one it belongs to, and what happened.
        self.outdated: dict[str, tuple[ViewDefinition, EvolutionMapping]] = {}
        # Sources of which the next state is one further on, with nothing shown of what led there; views
        # over them are computed from their sources.
        self.jumps: dict[str, Position] = {}
        self.taken: list[Foreseen] = []
        # What the ledger is to say of other views together with the filling: those with the same rows under
        # another definition, and those that came to their end.
        self.same: dict[str, View] = {}
        self.ended: list[tuple[View, Effect, SchemaChange]] = []

    def take(self, plan: Foreseen, before: Mapping[str, View]) -> None:
        """A change was taken; its views' extents are behind from now on."""
        self.taken.append(plan)
        for name, mapping in plan.mappings().items():
            if name in self.new and name not in self.outdated:
                continue  # not filled yet: an extent under its name is that of another text
            old, known = self.outdated.get(name, (before[name].definition, None))
            self.outdated[name] = (old, mapping if known is None else known.merged(mapping))

    def adaptations(self, views: Mapping[str, View]) -> dict[str, MapVA]:
        """How the extents of views that are to be filled are brought over, where that is possible.

        Not over a source that has jumped: the old extent and what would be read are of two cuts, and no feed tells
        what lies between.
        """
        found: dict[str, MapVA] = {}
        for name, (old, mapping) in self.outdated.items():
            new = views[name].definition if name in self.new else None
            if new is not None and self.jumps.keys().isdisjoint(new.sources):
                with contextlib.suppress(NotApplicable):
                    found[name] = plan(old, new, mapping)
        return found

    def done(self) -> list[Foreseen]:
        """All views are filled; the changes that led to it."""
        taken, self.taken = self.taken, []
        self.new, self.outdated, self.jumps = (), {}, {}
        self.same, self.ended = {}, []
        return taken
