"""A pipeline whose every transaction is recorded, so that the checker can judge the whole run."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories, Verdict, check
from viewkeeper.runtime.integrator import Arrival, singly, states_of
from viewkeeper.runtime.pipeline import Pipeline
from viewkeeper.runtime.surroundings import Cycle
from viewkeeper.sources.stretch import Stretch
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.definition import LOCAL, RelationName
from viewkeeper.warehouse.warehouse import Warehouse


class Recording:
    """What a group of views went through. ``initial``: the relations before any transaction."""

    def __init__(self, pipeline: Pipeline, shop, views=None) -> None:
        self.pipeline = pipeline
        self.arrivals: list[Arrival] = []
        # Of those, what came as columns.
        self.stretches: list[Stretch] = []
        # The warehouse's number of each state, and how many transactions it shows.
        self.numbers: list[int] = []
        self.shown: list[int] = []
        self.views = [v for name, v in pipeline.views.items() if views is None or name in views]
        self.schemas = {
            o.name: o.schema
            for view in self.views
            for term in view.definition.all_terms
            for o in term.occurrences
            if o.source != LOCAL
        }
        self.sources = sorted({name.source for name in self.schemas})
        self.initial = {name: self.contents(shop, name) for name in self.schemas}

    def add(self, cycle: Cycle | None) -> None:
        """Take note of an epoch; those of other groups are passed over."""
        if cycle is not None and self.views[0].name in cycle.views:
            states = range(cycle.entry.first_txn, cycle.entry.last_txn + 1)
            # A group that promises less than complete shows an epoch in one state.
            batch = tuple(singly(cycle.batch))
            places = states_of(batch) if len(states) > 1 else [0] * len(batch)
            before = len(self.arrivals)
            self.shown += [before + bisect_right(places, n) for n in range(len(states))]
            self.numbers += states
            self.arrivals += batch
            self.stretches += [a.origin for a in cycle.batch if isinstance(a.origin, Stretch)]

    def catch_up(self, targets=None) -> None:
        """Go on until the warehouse has all that is committed now."""
        targets = targets or self.pipeline.committed_now()
        while not self.pipeline.has_applied(targets):
            self.add(self.pipeline.cycle(0.2))
        while (cycle := self.pipeline.cycle(0)) is not None:
            self.add(cycle)

    def contents(self, shop, name: RelationName) -> Bag:
        schema = self.schemas[name]
        columns = ", ".join(schema.names)
        return Bag.of(schema, shop.fetch(name.source, f"SELECT {columns} FROM {name.relation}"))

    @property
    def histories(self) -> SourceHistories:
        scripts: dict[str, list[Transaction]] = {source: [] for source in self.sources}
        for arrival in self.arrivals:
            changes = tuple(
                (name, self._bag(name, change))
                for name, change in arrival.transaction.changes
                if name in self.schemas
            )
            source = arrival.transaction.source
            scripts[source].append(Transaction(source, arrival.transaction.number, changes))
        return SourceHistories(self.initial, scripts)

    def _bag(self, name: RelationName, change) -> Bag:
        signed = [(row, -1) for row in change.deleted] + [(row, 1) for row in change.inserted]
        return Bag.signed(self.schemas[name], signed)

    def cuts(self) -> list[Cut]:
        cut = Cut.start(self.sources)
        cuts = [cut]
        for arrival in self.arrivals:
            cut = cut.advanced(arrival.transaction.source, arrival.transaction.number)
            cuts.append(cut)
        return [cuts[0], *(cuts[number] for number in self.shown)]

    def verdict(self, warehouse: Warehouse, first_txn: int = 0) -> Verdict:
        """The checker's verdict on every addressable state of the group's views together.

        States that other groups made are the same for these views, and are looked at once.
        """
        views = [view.definition for view in self.views]
        per_view = [view_states(warehouse, v.name, v.schema, first_txn) for v in views]
        every_state = list(zip(*per_view, strict=True))
        own = {first_txn, *self.numbers}
        for number, (before, after) in enumerate(pairwise(every_state), first_txn + 1):
            assert number in own or before == after, "another group's epoch changed these views"
        states = [state for n, state in enumerate(every_state, first_txn) if n in own]
        return check(views, self.histories, states, self.cuts()[: len(states)])


def view_states(warehouse: Warehouse, view: str, schema, first_txn: int) -> list[Bag]:
    """Every state of a view from a transaction number on, by its change feed."""
    last = warehouse.latest().last_txn
    state = _bag(warehouse.read_arrow(view, first_txn, with_count=True), schema)
    states = [state]
    by_txn: dict[int, list] = {}
    for row in warehouse.changes_arrow(view, first_txn).to_pylist():
        values = tuple(row[name] for name in schema.names)
        by_txn.setdefault(row["_txn"], []).append((values, row["_count"]))
    for txn in range(first_txn + 1, last + 1):
        state = state + Bag.signed(schema, by_txn.get(txn, []))
        states.append(state)
    return states


def _bag(table, schema) -> Bag:
    rows = table.to_pylist()
    return Bag.signed(
        schema, [(tuple(r[name] for name in schema.names), r["_count"]) for r in rows]
    )
