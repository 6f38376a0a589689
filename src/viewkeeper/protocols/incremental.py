"""Rich views kept from changes: steps, groups, DISTINCT, each transaction a state of its own.

Ours, on batched SWEEP. Level: complete. Assumes: nothing beyond reliable delivery, and that the view's
own stores are read as its last installed batch left them.

A batch goes through the view's relations, its steps and at last the view itself, each as soon as the
steps it reads are known. The linear part of a term is batched SWEEP as it is. A step in it is a relation
like any other: its changes in this batch are known by then, with their numbers, and its rows are looked
up in a store that reflects nothing of this batch, so that all its changes are corrections that the
answer misses. The same holds for a base relation of which the view keeps a copy: its source is not
asked. What a grouped or DISTINCT term joins goes through an accumulation, group by group and transaction
by transaction, on top of what is stored of the touched groups.

Questions of all terms that are under way go out together, to sources and to stores. A view of linear
terms asks what batched SWEEP asks, and stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.expressions import Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import UsageError
from viewkeeper.protocols.accumulating import Accumulating, TermWork
from viewkeeper.protocols.batched_sweep import BatchedSweep, Numbered, Route
from viewkeeper.protocols.messages import (
    TXN,
    Action,
    InstallBatch,
    Reflected,
    StoredPart,
)
from viewkeeper.protocols.view_manager import Place
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.upkeep import RelationUpkeep, TermUpkeep, Upkeep

# What a store reflects of the transactions that are still being worked on.
NOTHING_OF_THE_BATCH = Reflected(0)


class IncrementalView(BatchedSweep):
    """Keeps a view with steps, groups and DISTINCT. Its stores are with whoever carries messages."""

    name = "incremental"
    paper = "ours, on batched SWEEP"

    def __init__(
        self,
        definition: ViewDefinition,
        extent: Any,
        sources: tuple[str, ...] = (),
        first_number: int = 1,
    ) -> None:
        self.upkeep = Upkeep(definition)
        super().__init__(definition, extent, sources, first_number)
        self._work: dict[int, TermWork] = {}
        # The numbered changes of the relations that are through; None where there are none.
        self._results: dict[RelationName | None, Any | None] = {}
        self._stored: dict[str, Any] = {}

    def require_suitable(self, definition: ViewDefinition) -> None:
        if self.upkeep.obstacles:
            raise UsageError(
                "not-incremental",
                f"{definition.name} can't be maintained from changes",
                detail="; ".join(self.upkeep.obstacles),
                hint="let it be computed anew: `-- refresh: full`",
            )

    def embodied(self, bag: Bag) -> Any:
        """Rows that were computed here, as a relation of the body that the others have."""
        return self.nothing.like(bag)

    # -- the machine -------------------------------------------------------------------------------

    def _start(self) -> None:
        self._routes = []
        for name, kept in self.upkeep.kept.items():
            if name in self._changed:
                self._stored[kept.store] = kept.of(self.collected(name, self.batch), TXN)

    def _round(self) -> Iterator[Action]:
        # In order, so that a step which is through lets those begin that read it.
        for relation in self.upkeep.relations:
            if relation.name not in self._results and relation.reads <= self._results.keys():
                self._advance(relation)
        yield from super()._round()

    def _due(self) -> Iterator[Action]:
        yield from super()._due()
        for work in self._work.values():
            if work.accumulating is not None and work.accumulating.lookups:
                parts = tuple(self._stored_parts(work.accumulating))
                yield self.ask_stores(parts, work.accumulating)

    def _holder(self, place: Place) -> str:
        return LOCAL if self.occurrence(place).name in self.upkeep.kept else super()._holder(place)

    def _question(self, source: str, routes: list[Route]) -> Action:
        if source != LOCAL:
            return super()._question(source, routes)
        return self.ask_stores(tuple(self._stored_part(route) for route in routes), routes)

    def stores_read(
        self, asked: list[Route] | Accumulating, answers: tuple[Any, ...]
    ) -> Iterable[Action]:
        if isinstance(asked, Accumulating):
            asked.take(tuple(rows.to_bag() for rows in answers))
        else:
            for route, rows in zip(asked, answers, strict=True):
                term, alias = route.start[0], route.next_alias
                prepared = self.assemblies[term].prepared(alias, rows)
                self._take_in(route, prepared, NOTHING_OF_THE_BATCH)
        if not self._open:
            yield from self._round()

    def _install(self) -> InstallBatch:
        change, stores = self._results[None], self._stored
        if change is None:
            fields = (*self.nothing.schema.fields, Field(TXN, INTEGER))
            change = self.embodied(Bag(Schema(fields)))
        self._work, self._results, self._stored = {}, {}, {}
        return self._installed(change, stores)

    # -- from the terms to the relations -----------------------------------------------------------

    def _advance(self, relation: RelationUpkeep) -> None:
        """Go on with a relation as far as the answers allow."""
        works = [self._advanced(upkeep) for upkeep in relation.terms]
        if not all(work.is_done for work in works):
            return
        names = (*relation.schema.names, TXN)
        total: Any = None
        for work in works:
            if work.change is not None:
                rows = work.change.renamed(names)
                total = rows if total is None else total + rows
        if relation.name is not None and total is not None:
            # Later terms take keys from it, so it is computed now; and what cancels is dropped.
            rows = total.to_bag()
            total = None if rows.is_empty() else self.embodied(rows)
        self._results[relation.name] = total
        if relation.name is not None and total is not None:
            self._changed.add(relation.name)
            if self.upkeep.keeps(relation.name):
                self._stored[relation.name.relation] = total

    def _advanced(self, upkeep: TermUpkeep) -> TermWork:
        work = self._work.get(upkeep.index)
        if work is None:
            work = self._work[upkeep.index] = TermWork(upkeep, self._ways(upkeep.index))
            self._routes += work.routes
        if not all(route.is_complete for route in work.routes):
            return work
        if not work.is_joined:
            work.joined(self._sum_of(work.routes))
        for name, change in work.accumulated(self.assemblies[upkeep.index]):
            self._stored[name] = self.embodied(change)
        if work.is_done and isinstance(work.change, Bag):
            work.change = self.embodied(work.change)
        return work

    def _sum_of(self, routes: list[Route]) -> Any | None:
        total: Any = None
        for route in routes:
            rows = self._joined(route)
            total = rows if total is None else total + rows
        return total

    # -- steps as relations ------------------------------------------------------------------------

    def _stored_part(self, route: Route) -> StoredPart:
        """The next question of a route, where it leads to a step or to a relation that is kept."""
        part = self._part(route)
        occurrence = self.occurrence((part.term, part.alias))
        columns = tuple(name[len(part.alias) + 1 :] for name in part.key_columns)
        keys = None if part.keys is None else part.keys.renamed(columns)
        return StoredPart(self.upkeep.store_of(occurrence.name), columns, keys)

    def _stored_parts(self, accumulating: Accumulating) -> Iterator[StoredPart]:
        for lookup in accumulating.lookups:
            keys = None if lookup.keys is None else self.embodied(lookup.keys)
            yield StoredPart(accumulating.stage.store(lookup.store), lookup.key_columns, keys)

    def _outputs(self, term: int) -> tuple[Output, ...]:
        return self.upkeep.terms[term].outputs

    def _changes(self, place: Place, transactions: Iterable[Numbered]) -> Any:
        name = self.occurrence(place).name
        if name.source == LOCAL:
            return self._results[name]
        return super()._changes(place, transactions)

    def _corrections(self, place: Place, reflects: Reflected) -> tuple[Any | None, Any | None]:
        name = self.occurrence(place).name
        if name in self.upkeep.kept:
            # The copy has all that came before the batch, whatever the source shows by now.
            return None, self._numbered(place, list(self.batch))
        if name.source != LOCAL:
            return super()._corrections(place, reflects)
        changes = self._results[name]
        return None, None if changes is None else self._prepared(place, changes, TXN)
