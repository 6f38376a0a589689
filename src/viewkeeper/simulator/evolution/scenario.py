"""A scenario with schema changes: a view, what is known of its sources, and what each of them will do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.algebra import Bag
from viewkeeper.evolution.changes import Update
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.simulator.evolution.source import Contents, contents_after
from viewkeeper.timeline import Cut
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import RelationName


@dataclass(frozen=True)
class EvolutionScenario:
    """What there is before anything happens, and a script of updates for each source."""

    view: EvolvingView
    catalog: Catalog
    knowledge: Knowledge
    initial: Mapping[RelationName, Bag]
    scripts: Mapping[str, tuple[Update, ...]]

    @property
    def start(self) -> Cut:
        return Cut.start(self.scripts)

    @property
    def end(self) -> Cut:
        return Cut.of({source: len(script) for source, script in self.scripts.items()})

    @property
    def extent(self) -> Bag:
        """The view before the first update."""
        extent: Bag = evaluated(self.view.definition, lambda name: self.initial[name])
        return extent

    @cached_property
    def histories(self) -> dict[str, list[Contents]]:
        """Every source's relations before its first update and after each."""
        found: dict[str, list[Contents]] = {}
        for source, script in self.scripts.items():
            contents = [{r: rows for r, rows in self.initial.items() if r.source == source}]
            for update in script:
                contents.append(contents_after(contents[-1], update))
            found[source] = contents
        return found
