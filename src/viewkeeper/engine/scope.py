"""What a group of views reads, worked out from its views once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.engine.relevance import Relevance
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.view import View
from viewkeeper.protocols.choice import block_size
from viewkeeper.sources.interface import Position
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Scope:
    """Some views, and what is known of their sources."""

    views: Mapping[str, View]
    evolution: Evolution

    @cached_property
    def relations(self) -> tuple[RelationName, ...]:
        """What the views read."""
        used = (name for view in self.views.values() for name in view.definition.relations)
        return tuple(dict.fromkeys(used))

    @cached_property
    def watched(self) -> tuple[RelationName, ...]:
        """What may come to stand for something that they read."""
        return self.evolution.watched(self.views)

    @cached_property
    def read_sources(self) -> frozenset[str]:
        return frozenset(name.source for name in self.relations)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """All that is followed: what is read, and what is only watched."""
        return tuple(sorted(self.read_sources | {name.source for name in self.watched}))

    def names_of(self, source: str) -> tuple[str, ...]:
        """The source's relations that are followed, watched ones included."""
        names = (*self.relations, *self.watched)
        return tuple(dict.fromkeys(n.relation for n in names if n.source == source))

    def read_of(self, source: str) -> tuple[str, ...]:
        """The source's relations that are read."""
        return tuple(name.relation for name in self.relations if name.source == source)

    @cached_property
    def relevance(self) -> Relevance:
        """Which views transactions concern."""
        return Relevance(self.views)

    @cached_property
    def block(self) -> int:
        """How many transactions a state has more than the one before (MVC, section 6.3).

        Views that move together step over the least common multiple of their blocks. Where a view shows less than
        every transaction, the group's states are what its lists have intertwined, and nothing is counted.
        """
        if any(view.choice.level < Level.COMPLETE for view in self.views.values()):
            return 1
        return math.lcm(*(block_size(view.definition) for view in self.views.values()))

    def cuts_of(self, reached: Mapping[str, Position]) -> dict[str, dict[str, Position]]:
        """Each view's own cut: the positions of the sources that it reads."""
        return {
            name: {source: reached[source] for source in view.definition.sources}
            for name, view in self.views.items()
        }
