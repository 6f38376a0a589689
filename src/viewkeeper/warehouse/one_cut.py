"""Several views at one cut: which number each is read at. Pure.

Views that share a relation move together, and every number is a state of all of them. Other views move on
their own. Read at the same number, one may show a transaction of a source while another has not come to
an earlier one yet. So views that are read together are read at the newest *common cut*:

- A cut is a place in each source's log. A view is **at** a cut when its rows are those of all transactions
  up to it: the last that its group applied is not behind the place (`last`), and no other one of its
  group's lies between them (`until`: the next that it will apply, or how far it is known to have passed).
- Some views are at one cut when, for every source that several of them read, no one's last transaction is
  behind another's `until`. What lies between is nothing that the other reads: the same place for it.

Where this does not hold, the view that is ahead goes back to before that transaction. That takes back what
it had of its other sources, so others may have to follow: until nothing moves. No view goes back further
than every common cut demands (cuts that hold are closed under taking the newer of two), so what is found
is the newest one. No run waits for it, and nothing is read but the ledger's end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeeper.warehouse.entries import Entry, understood
from viewkeeper.warehouse.places import DifferentHistory, Place, Places, SourcePlaces, place_of


class Apart(Exception):
    """``ahead`` has no state as old as what ``behind`` has seen of ``source``."""

    def __init__(self, ahead: str, behind: str, source: str) -> None:
        super().__init__(ahead, behind, source)
        self.ahead, self.behind, self.source = ahead, behind, source


@dataclass(frozen=True)
class Until:
    """How far a view's state stays what it is: up to a place, with it or without."""

    place: Place
    inclusive: bool

    def covers(self, place: Place) -> bool:
        if self.place == place:
            return self.inclusive
        return place.is_upto(self.place)


class _Step:
    """One entry of the ledger, as far as this concerns it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        # The first number that is read from this entry or a later one.
        self.first = entry.serves_from
        self.has_numbers = entry.first_txn <= entry.last_txn

    @cached_property
    def _views(self) -> Mapping[str, Any]:
        with understood():
            views: dict[str, Any] = json.loads(self.entry.views_json)
            return views

    def incarnation(self, view: str) -> int | None:
        state = self._views.get(view)
        return None if state is None else state["incarnation"]

    def positions(self, view: str) -> Mapping[str, Any]:
        state = self._views.get(view)
        return {} if state is None else state.get("positions", {})

    def place(self, view: str, source: str) -> Place:
        return place_of(self.positions(view)[source])

    @cached_property
    def places(self) -> Places | None:
        with understood():
            return Places.decoded(self.entry.places) if self.entry.places else None


@dataclass(frozen=True)
class _Block:
    """Transactions of unknown places: numbers from ``first`` on may show them, from ``last`` on all."""

    first: int
    last: int


def shared_sources(entry: Entry, views: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Of each view, the sources that others among them read, too; nothing where positions are not told."""
    return _shared(_Step(entry), tuple(dict.fromkeys(views)))


def _shared(step: _Step, views: Sequence[str]) -> dict[str, tuple[str, ...]]:
    read = {view: tuple(sorted(step.positions(view))) for view in views}
    readers = Counter(source for sources in read.values() for source in sources)
    return {v: tuple(s for s in sources if readers[s] > 1) for v, sources in read.items()}


def is_one_cut(entry: Entry, views: Iterable[str]) -> bool:
    """Whether the views stand at the same positions after this entry: then nothing need be looked up."""
    return _are_equal(_Step(entry), tuple(dict.fromkeys(views)))


def _are_equal(step: _Step, views: Sequence[str]) -> bool:
    known: dict[str, Any] = {}
    for view in views:
        for source, position in step.positions(view).items():
            if known.setdefault(source, position) != position:
                return False
    return True


def numbers_at_one_cut(
    entries: Iterator[Entry], views: Iterable[str], txn: int, entries_max: int | None = None
) -> dict[str, int]:
    """The number to read each view at, so that all are at the newest common cut of state ``txn``.

    ``entries``: newest first, with their places, from the one that shows ``txn`` on; as many are taken
    as are needed, and ``entries_max`` at most. Raises `Apart`.
    """
    return _Search(entries, tuple(dict.fromkeys(views)), txn, entries_max).numbers()


class _Search:
    """Goes back through the ledger, view by view."""

    def __init__(
        self,
        entries: Iterator[Entry],
        views: tuple[str, ...],
        txn: int,
        entries_max: int | None,
    ) -> None:
        self._entries = entries
        self._entries_max = entries_max
        self._steps: list[_Step] = []
        self._txn = txn
        self._at = dict.fromkeys(views, txn)
        # The step that shows each view at its number.
        self._index = dict.fromkeys(views, 0)
        self._sources = _shared(self._known_step(0), views)
        self._until: dict[str, dict[str, Until]] = {}

    def numbers(self) -> dict[str, int]:
        if self._is_plain():
            return self._at
        for view, sources in self._sources.items():
            newest = {s: Until(self._known_step(0).place(view, s), True) for s in sources}
            self._until[view] = newest
            if self._txn < self._known_step(0).entry.last_txn:
                self._hold_back(view, 0)
        while any(self._went_back(view) for view in self._at):
            pass
        return self._at

    def _is_plain(self) -> bool:
        """Whether the views stand together before and after the entry: then in every state between.

        Either they move together, or those that do not move were passed by nothing of their own.
        """
        views = tuple(self._at)
        top = self._known_step(0)
        if not _are_equal(top, views):
            return False
        if self._txn == top.entry.last_txn:
            return True
        before = self._step(1)
        return before is not None and _are_equal(before, views)

    # -- one view ---------------------------------------------------------------------------------

    def _went_back(self, view: str) -> bool:
        """Take the view back to what all others have passed; False where it is there."""
        moved = False
        for source in self._sources[view]:
            for other, until in self._until.items():
                if other != view and source in until:
                    moved |= self._goes_back(view, source, other)
        return moved

    def _goes_back(self, view: str, source: str, other: str) -> bool:
        until = self._until[other][source]
        try:
            first = self._first_beyond(view, source, until)
        except (DifferentHistory, _EndOfLedger):
            raise Apart(view, other, source) from None
        if first is None:
            return False
        start = self._index[view]
        self._at[view] = first - 1
        oldest = self._known_step(0).entry.oldest_txn
        while self._known_step(self._index[view]).first > first - 1:
            self._index[view] += 1
            if self._step(self._index[view]) is None:
                raise Apart(view, other, source)
        known = self._known_step(self._index[view]).positions(view)
        if first - 1 < oldest or not known.keys() >= set(self._sources[view]):
            raise Apart(view, other, source)
        for index in range(start, self._index[view] + 1):
            self._hold_back(view, index)
        return True

    def _first_beyond(self, view: str, source: str, until: Until) -> int | None:
        """The first number up to the view's own that shows a transaction ``until`` does not cover."""
        number, index = self._at[view], self._index[view]
        first: int | None = None
        while True:
            step = self._known_step(index)
            if until.covers(step.place(view, source)):
                return first
            older = self._step(index + 1)
            match self._change(view, source, step, older):
                case _Block() as block:
                    first = block.first
                case SourcePlaces() as changed:
                    beyond = changed.first_behind(until.place, inclusive=until.inclusive)
                    upto = _count_upto(changed, number - step.entry.first_txn)
                    if beyond < upto:
                        first = step.entry.first_txn + int(changed.states[beyond])
                    if beyond and upto:
                        return first  # what came before it is covered
            if older is None or source not in older.positions(view):
                raise _EndOfLedger
            index += 1

    def _hold_back(self, view: str, index: int) -> None:
        """What the entry shows beyond the view's number ends what its state stands for."""
        step, older = self._known_step(index), self._step(index + 1)
        number = self._at[view]
        for source in self._sources[view]:
            match self._change(view, source, step, older):
                case _Block(last=last) if last > number and older is not None:
                    self._until[view][source] = Until(older.place(view, source), True)
                case SourcePlaces() as changed:
                    upto = _count_upto(changed, number - step.entry.first_txn)
                    if upto < len(changed.states):
                        self._until[view][source] = Until(changed.place(upto), False)

    def _change(
        self, view: str, source: str, step: _Step, older: _Step | None
    ) -> _Block | SourcePlaces | None:
        """What an entry brought of a source to a view."""
        entry = step.entry
        if older is None or older.incarnation(view) != step.incarnation(view):
            # Filled as a whole, at this very place; of the oldest entry nothing is known.
            return _Block(step.first, step.first)
        if not step.has_numbers:
            return None
        if step.places is None:
            if older.positions(view).get(source) == step.positions(view)[source]:
                return None
            return _Block(entry.first_txn, entry.last_txn)
        if view not in step.places.views:
            return None  # what its position passed meanwhile was nothing for it
        return step.places.sources.get(source)

    # -- the ledger -------------------------------------------------------------------------------

    def _known_step(self, index: int) -> _Step:
        step = self._step(index)
        if step is None:
            raise _EndOfLedger
        return step

    def _step(self, index: int) -> _Step | None:
        while len(self._steps) <= index:
            if self._entries_max is not None and len(self._steps) >= self._entries_max:
                return None
            entry = next(self._entries, None)
            if entry is None:
                return None
            self._steps.append(_Step(entry))
        return self._steps[index]


class _EndOfLedger(Exception):
    """The ledger has nothing older, or nothing that may be looked at."""


def _count_upto(changed: SourcePlaces, state: int) -> int:
    """How many of the transactions show in the states up to this one."""
    return int(changed.states.searchsorted(state, "right"))
