"""What simulated view managers compute: relations at a cut, less or more some transactions.

A row is taken out by its primary key, as the view believes it: who believes an old key takes out too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import Row, Schema
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.view import View
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.engine.sources import SimulatedCut
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import LOCAL, RelationName
from viewkeeper.views.pruning import pruned

Keys = Mapping[RelationName, tuple[str, ...]]


class Contents:
    """Relations of several sources, as managers of some views know them."""

    def __init__(self, cuts: Mapping[str, SimulatedCut], views: Mapping[str, View]) -> None:
        self._rows = {
            RelationName(source, relation): cut.contents[relation]
            for source, cut in cuts.items()
            for relation in cut.schemas
        }
        self._keys = keys_of(views.values())

    def apply(self, arrival: Arrival) -> None:
        for name, deleted, inserted in self._changes(arrival):
            self._change(name, deleted, inserted)

    def take_back(self, arrivals: Iterable[Arrival]) -> None:
        """Undo transactions, the last one first."""
        for arrival in reversed(list(arrivals)):
            for name, deleted, inserted in self._changes(arrival):
                self._change(name, inserted, deleted)

    def take_back_reflected(
        self, arrivals: Iterable[Arrival], reflected: Mapping[str, Reflected]
    ) -> None:
        """Undo those that the cuts show."""
        self.take_back(a for a in arrivals if _is_reflected(a, reflected))

    def _changes(self, arrival: Arrival) -> list[tuple[RelationName, Sequence[Row], Sequence[Row]]]:
        origin = arrival.origin
        if not isinstance(origin, SourceTransaction):
            return []
        named = ((RelationName(origin.source, c.relation), c) for c in origin.changes)
        return [(name, c.deleted, c.inserted) for name, c in named if name in self._rows]

    def _change(self, name: RelationName, out: Iterable[Row], into: Iterable[Row]) -> None:
        rows = self._rows[name]
        key = self._keys.get(name, ())
        if key and all(column in rows.schema for column in key):
            rows = _without(rows, key, out)
        else:
            rows = rows + Bag(rows.schema, ((row, -1) for row in out))
        self._rows[name] = rows + Bag(rows.schema, ((row, 1) for row in into))

    def whole(self, name: RelationName, needed: Schema) -> Bag:
        """All rows of a relation, with these columns."""
        return self._rows[name].only(needed.names)

    def matching(
        self, name: RelationName, needed: Schema, key_columns: tuple[str, ...], keys: Bag
    ) -> Bag:
        """The rows whose key columns are among the keys."""
        return self.whole(name, needed).matching(key_columns, keys)

    def evaluated(self, view: View) -> Bag:
        narrow = pruned(view.definition)
        schemas = {o.name: o.schema for t in narrow.all_terms for o in t.occurrences}
        evaluated: Bag = WholeView(narrow).evaluated(lambda name: self.whole(name, schemas[name]))
        return evaluated


def keys_of(views: Iterable[View]) -> dict[RelationName, tuple[str, ...]]:
    """What the views believe to tell the rows of their relations apart."""
    return {
        o.name: o.key
        for view in views
        for term in view.definition.all_terms
        for o in term.occurrences
        if o.source != LOCAL
    }


def _without(rows: Bag, key: tuple[str, ...], out: Iterable[Row]) -> Bag:
    places = [rows.schema.names.index(column) for column in key]
    gone = {tuple(row[place] for place in places) for row in out}
    kept = ((row, n) for row, n in rows if tuple(row[place] for place in places) not in gone)
    return Bag(rows.schema, kept) if gone else rows


def _is_reflected(arrival: Arrival, reflected: Mapping[str, Reflected]) -> bool:
    known = reflected.get(arrival.transaction.source)
    return known is not None and known.includes(arrival.transaction.number)
