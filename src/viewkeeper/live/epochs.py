"""Epochs: what all groups commit, one after the other, into the one ledger.

Every group numbers its own transactions. The warehouse numbers states: the transactions of an epoch
get the next numbers when it is committed, whichever group it comes from. Groups share no relation, so
their epochs may interleave in any way, and every number is a state of each view. It is one moment of a
source for the views of one group; those of several are brought to one when they are read
(`warehouse.one_cut`). For that, an epoch says where its transactions stand in their sources' logs, if
another group reads one of these, and how far groups have come that have nothing to commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.types import Schema
from viewkeeper.coding import together
from viewkeeper.engine.messages import CommitDefinitions, Positions
from viewkeeper.engine.stored_changes import changes_to_json
from viewkeeper.engine.view import View
from viewkeeper.failpoints import failpoint
from viewkeeper.protocols.messages import TXN
from viewkeeper.sources.interface import Position, Source
from viewkeeper.sources.transaction_block import Numbers
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.views.level import Level
from viewkeeper.views.upkeep import InitialContents, Store
from viewkeeper.warehouse.columns import owner_of, store_name
from viewkeeper.warehouse.commits import Changes, EpochCommit, Extent
from viewkeeper.warehouse.entries import Definition, Entry, ViewState
from viewkeeper.warehouse.places import DifferentHistory, Places, SourcePlaces, place_of
from viewkeeper.warehouse.warehouse import Warehouse
from viewkeeper.warehouse.writer import Writer


@dataclass(frozen=True)
class FilledView:
    """A view computed as a whole, and its stores."""

    view: View
    stores: tuple[Store, ...]
    contents: InitialContents

    def with_cost(self, seconds: float, rows: int) -> FilledView:
        """What it took to bring the view over belongs to its story."""
        if self.view.evolved is None:
            return self
        cost = {"seconds": round(seconds, 3), "rows_read": rows}
        return replace(self, view=replace(self.view, evolved=self.view.evolved | cost))


class Epochs:
    """The one hand that commits. Thread-safe."""

    def __init__(
        self,
        writer: Writer,
        sources: Mapping[str, Source],
        confirm: Callable[[Positions], None],
        rebuilt: Mapping[str, str] | None = None,
        resting: Mapping[str, str | None] | None = None,
    ) -> None:
        """``confirm`` gets what every view has: the sources may forget it.

        ``rebuilt`` and ``resting`` as the pipeline has them.
        """
        self.writer = writer
        self._rebuilt = dict(rebuilt or {})
        self._resting = dict(resting or {})
        self._sources = sources
        self._confirm = confirm
        self._lock = threading.Lock()
        # How far views have come that wait for their next transaction, where no entry says it yet.
        self._at_rest: dict[str, Positions] = {}
        self._rest_lock = threading.Lock()
        # Ties between views that the ledger does not know yet.
        self._ties: list[frozenset[str]] = []

    @property
    def ties(self) -> Iterator[tuple[str, ...]]:
        """Views that the ledger says transactions were seen to change together."""
        states = self.writer.latest.views.items()
        return ((name, *state.tied) for name, state in states if state.tied)

    def tie(self, views: frozenset[str]) -> None:
        """Views that one transaction changes together; returns at once.

        The next epoch says so. That is soon enough: nothing of that transaction is committed yet, so a
        run that ends before meets it again.
        """
        self._ties.append(views)

    def apply(
        self,
        numbers: Numbers,
        states: Sequence[int],
        tables: Mapping[str, Sequence[pa.Table]],
        cuts: Mapping[str, Positions],
        places: Callable[[], Mapping[str, SourcePlaces] | None] = lambda: None,
    ) -> Entry:
        """A group's transactions of these numbers, which bring each of its views to its cut.

        The n-th of them shows in the epoch's state ``states[n]``, counted from 0. ``places`` says where
        they stand in their sources' logs; it is asked only where that can matter.
        """
        with self._lock:
            first = self.writer.latest.last_txn + 1
            views = {
                view: Changes(_renumbered(together(parts), numbers, states, first))
                for view, parts in tables.items()
            }
            last = first + states[-1]
            found = places() if self._is_shared(cuts) else None
            told = "" if found is None else Places(frozenset(cuts), found).encoded()
            return self._commit(first_txn=first, last_txn=last, views=views, cuts=cuts, places=told)

    def fill(
        self,
        filled: Iterable[FilledView],
        cuts: Mapping[str, Positions],
        others: CommitDefinitions | None = None,
    ) -> Entry:
        """New views, whole, with their stores, as they are at their cuts; and what became of other views."""
        views: dict[str, Extent] = {}
        definitions: dict[str, Definition] = {}
        for each in filled:
            name, text = each.view.name, each.view.text
            views[name] = _extent(each.contents.view)
            definitions[name] = each.view.stored()
            for store in each.stores:
                table = store_name(name, store.name)
                columns = [f"c{i}" for i in range(len(store.schema))]
                rows = each.contents.stores[store.name].renamed(columns)
                views[table] = _extent(rows)
                definitions[table] = Definition(store.schema.renamed(columns), text)
        replaced = frozenset(_stores_of(definitions, self.writer.latest)) - definitions.keys()
        parts: dict[str, Any] = {
            "views": views, "definitions": definitions, "cuts": cuts, "dropped": replaced,
        }  # fmt: skip
        if others is not None:
            definitions |= _other_definitions(others)
            parts["taken"] = _taken(others)
        refilled = {name: reason for name, reason in self._rebuilt.items() if name in definitions}
        if not refilled:
            return self._standing(**parts)
        with self._lock:
            latest = self.writer.latest
            for name, reason in refilled.items():
                story = _rebuilding(reason, latest, name, cuts.get(name, {}))
                definitions[name] = replace(definitions[name], rebuilt=story)
            # A separate state: a reader who asks for an older number gets what was shown then.
            next_txn = latest.last_txn + 1
            parts["places"] = Places(frozenset(definitions), {}).encoded()
            entry = self._commit(first_txn=next_txn, last_txn=next_txn, **parts)
            self._rebuilt = {n: r for n, r in self._rebuilt.items() if n not in refilled}
            return entry

    def stored(self, view: str, stores: Iterable[Store]) -> dict[str, pa.Table]:
        """The contents of a view's stores as they are committed."""
        snapshot = Warehouse(self.writer.storage).snapshot()
        return {
            store.name: snapshot.read_arrow(store_name(view, store.name), with_count=True)
            for store in stores
        }

    def advance(self, cuts: Mapping[str, Positions]) -> Entry:
        """Nothing happened for these views up to their cuts; they and the sources take note of it."""
        return self._standing(cuts=cuts)

    def rest(self, cuts: Mapping[str, Positions]) -> None:
        """Views of one group that have nothing to commit have come so far.

        The next entry says it, whichever group commits it; at once, if a view of another group is further:
        readers of both wait for that (`warehouse.one_cut`).
        """
        with self._rest_lock:
            self._at_rest.update(cuts)
        if self._late():
            with self._lock:
                self._tell_late()

    def evolve(self, changed: CommitDefinitions) -> Entry:
        """Views with the same rows under another definition, and views that came to their end.

        These stay readable, as they are, and no group keeps them any more.
        """
        return self._standing(definitions=_other_definitions(changed), taken=_taken(changed))

    def extent(self, view: str, session: Any, schema: Schema) -> SparkRelation:
        """A view's rows as they are committed."""
        frame = Warehouse(self.writer.storage, session).read(view, with_count=True)
        return SparkRelation.from_frame(frame, schema)

    def declare_published(self, views: Iterable[View]) -> None:
        """Have the ledger say which views ask for a plain table; there was a time when it did not."""
        known = self.writer.latest.views
        definitions = {
            view.name: replace(known[view.name].definition, publish=view.stored().publish)
            for view in views
            if view.name in known and known[view.name].definition.publish != view.stored().publish
        }
        if definitions:
            self._standing(definitions=definitions)

    def drop(self, views: frozenset[str]) -> Entry:
        """These views are no longer wanted; their older states stay readable."""
        return self._standing(dropped=views | frozenset(_stores_of(views, self.writer.latest)))

    def _standing(self, **parts: Any) -> Entry:
        with self._lock:
            last = self.writer.latest.last_txn
            return self._commit(first_txn=last + 1, last_txn=last, **parts)

    def _commit(self, **parts: Any) -> Entry:
        entry = self._write(**parts)
        self._tell_late()
        return entry

    def _write(self, **parts: Any) -> Entry:
        cuts: Mapping[str, Positions] = parts.pop("cuts", {})
        dropped: frozenset[str] = parts.get("dropped", frozenset())
        known = {v: s for v, s in self.writer.latest.views.items() if v not in dropped}
        with self._rest_lock:
            resting = {
                view: cut
                for view, cut in self._at_rest.items()
                if view in known and view not in cuts and _is_further(cut, known[view])
            }
        told = {**resting, **cuts}
        everybody = self._earliest(told, dropped)
        views = self.writer.latest.views.keys() | parts.get("views", {}).keys()
        ties = tuple(tie for tie in self._ties if not tie.isdisjoint(views))
        commit = EpochCommit(positions=everybody, cuts=told, ties=ties, **parts)
        entry = self.writer.commit(commit)
        for tie in ties:
            self._ties.remove(tie)
        with self._rest_lock:
            # A group's own word is newer than what it said at rest.
            told_now = [v for v, cut in self._at_rest.items() if v in cuts or resting.get(v) is cut]
            for view in told_now:
                del self._at_rest[view]
        failpoint("before-confirm")
        self._confirm(everybody)
        return entry

    def _tell_late(self) -> None:
        """Views at rest that came too late for an entry that they hold back get one of their own."""
        while self._late():
            last = self.writer.latest.last_txn
            self._write(first_txn=last + 1, last_txn=last)

    def _late(self) -> bool:
        """Whether a view at rest is further than the ledger says, and another waits for it there."""
        latest = self.writer.latest
        with self._rest_lock:
            resting = {
                view: cut
                for view, cut in self._at_rest.items()
                if view in latest.views and _is_further(cut, latest.views[view])
            }
        if not resting:
            return False
        others = {name: s for name, s in latest.shown_views.items() if not s.definition.has_ended}
        return any(
            _is_ahead(other, latest.views[view], cut)
            for view, cut in resting.items()
            for name, other in others.items()
            if name != view
        )

    def _is_shared(self, cuts: Mapping[str, Positions]) -> bool:
        """Whether a view that is not among these reads a source of theirs."""
        sources = {source for cut in cuts.values() for source in cut}
        return any(
            name not in cuts and not state.definition.has_ended and sources & state.positions.keys()
            for name, state in self.writer.latest.shown_views.items()
        )

    def _earliest(
        self, news: Mapping[str, Positions], dropped: frozenset[str]
    ) -> dict[str, Position]:
        """For each source, the position that every view which reads it has reached."""
        cuts: dict[str, Positions] = {
            view: state.positions
            for view, state in self.writer.latest.views.items()
            if view not in dropped
            and not state.definition.has_ended
            # One that is about to be refilled needs nothing from where it stood, and that may be
            # in a log which the source no longer has: it can't even be compared.
            and view not in self._rebuilt
        }
        # A source that can't go on holds no one up: its views will be refilled.
        for view, broken in self._resting.items():
            cuts[view] = {name: at for name, at in cuts.get(view, {}).items() if name != broken}
        for view, cut in news.items():
            cuts[view] = dict(cuts.get(view, {})) | dict(cut)
        return earliest(cuts.values(), self._sources)


def _is_ahead(other: ViewState, state: ViewState, cut: Positions) -> bool:
    """Whether the other view stands beyond what the ledger says of this one, which is further."""
    try:
        return any(
            not place_of(other.positions[source]).is_upto(place_of(state.positions[source]))
            and not place_of(position).is_upto(place_of(state.positions[source]))
            for source, position in cut.items()
            if source in other.positions and source in state.positions
        )
    except DifferentHistory:
        return False


def _is_further(cut: Positions, state: ViewState) -> bool:
    """Whether a cut is beyond where the ledger says that the view stands, and behind it nowhere."""
    known = {source: state.positions.get(source) for source in cut}
    try:
        return known != dict(cut) and all(
            at is not None and place_of(at).is_upto(place_of(cut[source]))
            for source, at in known.items()
        )
    except DifferentHistory:
        return False


def _rebuilding(reason: str, latest: Entry, view: str, cut: Positions) -> dict[str, Any]:
    """What the ledger says of a view that was refilled: what lies between is shown by no state."""
    before = latest.views.get(view)
    return {
        "reason": reason,
        "level": str(Level.STRONG),
        "gap": {
            "after_txn": latest.last_txn,
            "from": dict(before.positions) if before is not None else {},
            "to": dict(cut),
        },
    }


def _other_definitions(changed: CommitDefinitions) -> dict[str, Definition]:
    definitions = {view.name: view.stored() for view in changed.views}
    for view, effect, change in changed.ended:
        story = {
            "source": change.source,
            "relation": change.relation,
            "statement": change.statement,
            "effect": effect.kind.value,
            "reason": effect.reason,
        }
        definitions[view.name] = replace(view.stored(), evolved=story)
    return definitions


def _taken(changed: CommitDefinitions) -> dict[str, tuple[Any, ...]]:
    return dict.fromkeys(changed.told, tuple(changes_to_json(changed.taken)))


def _extent(rows: Any) -> Extent:
    return Extent(rows.consolidated().frame)


def _stores_of(views: Iterable[str], entry: Entry) -> Iterator[str]:
    """The tables that the warehouse has as stores of these views."""
    owners = set(views)
    return (name for name in entry.views if owner_of(name) in owners)


def earliest(cuts: Iterable[Positions], sources: Mapping[str, Source]) -> dict[str, Position]:
    """For each source, the earliest of its positions in some cuts."""
    found: dict[str, Position] = {}
    for cut in cuts:
        for name, position in cut.items():
            source = sources.get(name)
            if source is None:
                continue
            known = found.get(name)
            if known is None or source.compare_positions(position, known) < 0:
                found[name] = position
    return found


def _renumbered(table: pa.Table, numbers: Numbers, states: Sequence[int], first: int) -> pa.Table:
    """The n-th of the group's numbers becomes ``first + states[n]``."""
    place = table.schema.get_field_index(TXN)
    if numbers[-1] - numbers[0] == states[-1] == len(numbers) - 1:
        column = pc.add(table.column(place), first - int(numbers[0]))
    else:
        which = np.searchsorted(numbers, table.column(place).to_numpy())
        column = pa.array(np.asarray(states, np.int64)[which] + first, pa.int64())
    return table.set_column(place, table.schema.field(place), column)
