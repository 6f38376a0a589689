"""What a simulated run begins with: the scenario at first, and what the ledger has after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.engine.limits import Limits
from viewkeeper.engine.router import Beginning
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.succession import read_by
from viewkeeper.engine.view import View
from viewkeeper.evolution.knowledge_file import entries_of, read_knowledge
from viewkeeper.simulator.engine.sources import SimulatedSource, position
from viewkeeper.simulator.engine.updates import Table, Update, Write
from viewkeeper.simulator.engine.warehouse import SimulatedLedger
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import LOCAL, RelationName


@dataclass(frozen=True)
class EngineScenario:
    """What the sources hold and do, the views, and how the world behaves."""

    initial: Mapping[str, Mapping[str, Table]]
    scripts: Mapping[str, tuple[Update, ...]]
    views: Mapping[str, View]
    # What the knowledge file says (`evolution.knowledge_file`).
    knowledge: Mapping[str, Any] = field(default_factory=dict)
    kills: int = 0
    failures: int = 0
    audits: int = 0
    # How often a source's server is restarted.
    restarts: int = 0
    # Views that are written only before a later run, and views that are deleted before one, by its number.
    written: Mapping[str, int] = field(default_factory=dict)
    deleted: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = Limits()  # noqa: RUF009  (immutable)
    # Views whose managers need long.
    slow: frozenset[str] = frozenset()
    # Whether the sources rarely do something before everything else that can happen has happened.
    is_calm: bool = False
    # Whether kills come when a schema change was applied.
    is_restless: bool = False

    @property
    def runs_min(self) -> int:
        """How many runs it takes until no view is to come or to go."""
        return max([1, *self.written.values(), *self.deleted.values()])

    @property
    def updates(self) -> tuple[Update, ...]:
        return tuple(update for script in self.scripts.values() for update in script)

    @property
    def has_ties(self) -> bool:
        """Whether some transactions are parts of global ones."""
        return any(isinstance(update, Write) and update.tie for update in self.updates)

    @property
    def changes_schemas(self) -> bool:
        return not all(isinstance(update, Write) for update in self.updates)

    def views_in(self, run: int) -> dict[str, View]:
        """The views that are written down when a run begins."""
        return {
            name: view
            for name, view in self.views.items()
            if self.written.get(name, 1) <= run < self.deleted.get(name, run + 1)
        }


@dataclass(frozen=True)
class Starts:
    """Where a run begins: at which positions its feeds do, and with which views."""

    beginning: Beginning
    routed: Mapping[str, int]


def starts_of(
    scenario: EngineScenario,
    run: int,
    ledger: SimulatedLedger,
    sources: Mapping[str, SimulatedSource],
) -> Starts:
    """From the ledger. Views that can't be begun with are ended in it."""
    written = scenario.views_in(run)
    for name in scenario.views:
        if name not in written and name in ledger.extents:
            ledger.ended.setdefault(name, "it was deleted")
    for name, view in written.items():
        if name not in ledger.extents and not _fits(view, sources):
            ledger.ended.setdefault(name, "its text does not fit its sources")
    views = {n: ledger.views.get(n, v) for n, v in written.items() if n not in ledger.ended}
    new = frozenset(name for name in views if name not in ledger.extents)
    standing = {name: dict(ledger.positions[name]) for name in views if name not in new}
    routed = {}
    for name, source in sources.items():
        known = [cut[name]["n"] for cut in standing.values() if name in cut]
        routed[name] = min(known) if known else source.start
    evolution = _evolution(scenario, views, new, sources)
    used = {n for view in new for n in views[view].definition.sources}
    resumed = {n for cut in standing.values() for n in cut}
    present = {n: position(sources[n].start) for n in sorted(used & resumed)}
    at = {name: position(number) for name, number in routed.items()}
    ties = tuple(ledger.ties)
    return Starts(
        Beginning(views, new, standing, at, present, ties, evolution, ledger.taken), routed
    )


def _fits(view: View, sources: Mapping[str, SimulatedSource]) -> bool:
    """Whether a view that was never shown can be begun with: its text is of when its user wrote it."""
    for term in view.definition.all_terms:
        for o in term.occurrences:
            if o.source == LOCAL:
                continue
            table = sources[o.source].now.get(o.name.relation)
            if table is None or not all(
                f.name in table.rows.schema and table.rows.schema.type_of(f.name) == f.type
                for f in o.schema
            ):
                return False
    return True


def _evolution(
    scenario: EngineScenario,
    views: Mapping[str, View],
    new: frozenset[str],
    sources: Mapping[str, SimulatedSource],
) -> Evolution:
    """What relations are known as: as the views know them, others as a run finds them when it begins."""
    relations: dict[RelationName, CatalogRelation] = {}
    for name, source in sources.items():
        for relation, table in source.now.items():
            known = RelationName(name, relation)
            relations[known] = CatalogRelation(known, table.rows.schema, table.key)
    # New views are written over the present; of what others read they are brought to where those stand.
    for name in sorted(views, key=lambda name: name not in new):
        relations |= {r.name: r for r in read_by(views[name].definition)}
    catalog = Catalog(tuple(relations.values()))
    if not scenario.knowledge:
        return Evolution(catalog)
    lineages = tuple(dict.fromkeys(each for view in views.values() for each in view.lineage))
    found = read_knowledge(scenario.knowledge, catalog, lineages)
    return Evolution(catalog, found.knowledge, entries_of(scenario.knowledge))
