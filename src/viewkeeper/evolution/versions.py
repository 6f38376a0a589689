"""The versions of a view: every definition it had, what led to it, and what is still to be adapted.

Paper: DyDa, section 5.2.1. A view is always synchronized from its most recent version; the extent may be
some versions behind, until an adaptation succeeds. Then the paper cleans the list up; we keep it, for
people ask later why a view looks as it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.evolution.changes import SchemaChanged
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.preferences import Preferences
from viewkeeper.evolution.quality import Quality
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.printing import view_sql


@dataclass(frozen=True)
class ViewVersion:
    """One definition of a view; the first has no change and an empty mapping."""

    number: int
    definition: ViewDefinition
    preferences: Preferences
    change: SchemaChanged | None = None
    mapping: EvolutionMapping = EvolutionMapping()  # noqa: RUF009  (immutable)
    reason: str = ""
    quality: Quality | None = None
    # What was not chosen, each with the reason.
    others: tuple[str, ...] = ()

    @property
    def view(self) -> EvolvingView:
        return EvolvingView(self.definition, self.preferences)

    def as_dict(self) -> dict[str, Any]:
        """For `history --schema --json`."""
        return {
            "version": self.number,
            "change": None if self.change is None else str(self.change.change),
            "source": None if self.change is None else self.change.source,
            "reason": self.reason,
            "quality": None if self.quality is None else self.quality.as_dict(),
            "mapping": list(self.mapping.lines()),
            "others": list(self.others),
            "sql": view_sql(self.definition),
        }


class VersionHistory:
    """All versions, the oldest first, and which of them the extent belongs to."""

    def __init__(self, definition: ViewDefinition, preferences: Preferences) -> None:
        self.versions = [ViewVersion(0, definition, preferences)]
        self._of_extent = 0

    @property
    def latest(self) -> ViewVersion:
        return self.versions[-1]

    @property
    def of_extent(self) -> ViewVersion:
        """The version whose extent is installed."""
        return self.versions[self._of_extent]

    @property
    def is_adapted(self) -> bool:
        return self.of_extent is self.latest

    def add(self, version: ViewVersion) -> None:
        self.versions.append(version)

    def refresh(self, definition: ViewDefinition) -> None:
        """The latest version goes on, over relations that have changed where it does not read them."""
        self.versions[-1] = replace(self.latest, definition=definition)

    def adapted(self) -> None:
        """The extent of the latest version is installed."""
        self._of_extent = len(self.versions) - 1

    @property
    def mapping(self) -> EvolutionMapping:
        """From the version of the extent to the latest: all mappings between, merged (Table 6)."""
        merged = EvolutionMapping()
        for version in self.versions[self._of_extent + 1 :]:
            merged = merged.merged(version.mapping)
        return merged
