"""How a group takes over from its predecessors: where they stand, what they have taken, and their views as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from viewkeeper.engine.batches import Batches
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.intake import Intake
from viewkeeper.engine.scope import Scope
from viewkeeper.sources.interface import Position
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import LOCAL, ViewDefinition


class Predecessor(Protocol):
    """A group that has ended, as far as its successor looks at it."""

    began_with: tuple[str, ...]

    @property
    def reached(self) -> dict[str, Position]: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def has_evolved(self) -> bool: ...


def take_over(state: GroupState, batches: Batches, predecessors: Sequence[Predecessor]) -> None:
    """Begin where the predecessors stand."""
    intake = state.intake
    for each in predecessors:
        for name, position in each.reached.items():
            # The same position; but only its predecessors know what they have heard of there.
            # A predecessor's view may have been the only one that read a source, and be retired by now.
            if name not in state.starts:
                continue
            if intake.compare(name, position, state.starts[name]) == 0:
                state.reached[name] = state.reaching[name] = intake.fed[name] = position
        for name, generation in each.intake.generation.items():
            intake.generation[name] = max(generation, intake.generation.get(name, 0))
        for change in each.intake.not_passed(state.starts):
            intake.take_change(change)
    # Where they ended may be in no entry of the ledger.
    state.notes.noted = {}
    if any(each.has_evolved for each in predecessors):
        _inherit(state, batches, predecessors)


def _inherit(state: GroupState, batches: Batches, predecessors: Sequence[Predecessor]) -> None:
    """The predecessors' views have changed with their sources since this group was made."""
    evolution = state.scope.evolution
    relations = {r.name: r for r in evolution.catalog.relations}
    # New views are over what there is now; what predecessors read is so, too, by now.
    for view in state.pending.new:
        relations |= {r.name: r for r in read_by(state.scope.views[view].definition)}
    for each in predecessors:
        if each.has_evolved:
            own = {*each.scope.relations, *each.scope.watched}
            known = each.scope.evolution.catalog.relations
            relations |= {r.name: r for r in known if r.name in own}
            evolution = each.scope.evolution
    evolution = replace(evolution, catalog=Catalog(tuple(relations.values())))
    evolved = {name: v for p in predecessors for name, v in p.scope.views.items()}
    gone = {name for p in predecessors for name in p.began_with} - evolved.keys()
    views = state.scope.views
    kept = {name: evolved.get(name, v) for name, v in views.items() if name not in gone}
    uncommitted = batches.give_up()
    state.scope = Scope(kept, evolution)
    batches.begin_again(uncommitted)


def read_by(definition: ViewDefinition) -> Iterator[CatalogRelation]:
    """The relations of sources that a view reads, as it knows them."""
    for term in definition.all_terms:
        for each in term.occurrences:
            if each.source != LOCAL:
                yield CatalogRelation(each.name, each.schema, each.key)
