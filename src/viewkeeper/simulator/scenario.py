"""A scenario: what there is before anything happens, and what each source will commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName, ViewDefinition


@dataclass(frozen=True)
class Scenario:
    """One view, its relations' initial contents, and a script of transactions for each source."""

    definition: ViewDefinition
    initial: Mapping[RelationName, Bag]
    scripts: Mapping[str, tuple[Transaction, ...]]

    @property
    def extent(self) -> Bag:
        """The view before the first transaction."""
        extent: Bag = evaluated(self.definition, lambda name: self.initial[name])
        return extent

    @property
    def histories(self) -> SourceHistories:
        """What the sources will have gone through when everything is committed."""
        return SourceHistories(self.initial, self.scripts)

    @property
    def number_of_transactions(self) -> int:
        return sum(len(script) for script in self.scripts.values())
