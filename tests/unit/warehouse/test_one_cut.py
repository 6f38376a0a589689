"""Several views at one cut: against all combinations of states, tried one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slices import seeds
from unit.warehouse.entries_for_tests import LedgerMaker, source_places, state
from viewkeeper.warehouse.entries import Entry, views_to_json
from viewkeeper.warehouse.one_cut import Apart, is_one_cut, numbers_at_one_cut
from viewkeeper.warehouse.places import Place, Places, place_of


def position(seq: int) -> dict[str, object]:
    return {"seq": seq, "history": "h"}


@dataclass
class Group:
    """Some views, the sources of each, and the order in which its transactions arrive."""

    views: dict[str, tuple[str, ...]]
    arrivals: list[tuple[str, int]]
    is_complete: bool
    done: int = 0
    passed: dict[str, int] = field(default_factory=dict)

    @property
    def sources(self) -> set[str]:
        return {source for sources in self.views.values() for source in sources}

    def next_place(self, source: str, end: int) -> int:
        """The first place of the source that it has not applied."""
        left = [place for s, place in self.arrivals[self.done :] if s == source]
        return min(left, default=end + 1)


class World:
    """Groups that commit into one ledger, as they like."""

    def __init__(self, groups: list[Group], end: int) -> None:
        self.groups = groups
        self.end = end
        self.maker = LedgerMaker()
        # By group: the number of each transaction that was applied.
        self.numbers: list[list[int]] = [[] for _ in groups]
        for group in groups:
            group.passed = dict.fromkeys(group.sources, 0)
        self._append(0, "")

    @property
    def entries(self) -> list[Entry]:
        return self.maker.entries

    def _append(self, transactions: int, places: str) -> None:
        views = {
            view: replace(state(1), positions={s: position(group.passed[s]) for s in sources})
            for group in self.groups
            for view, sources in group.views.items()
        }
        self.maker.epoch(transactions, **views)
        self.entries[-1] = replace(self.entries[-1], places=places)

    def commit(self, which: int, size: int, ahead: int, *, told: bool = True) -> None:
        """The group applies so many more, and is known to have passed a little beyond."""
        group = self.groups[which]
        batch = group.arrivals[group.done : group.done + size]
        if not batch:
            self.note(which, ahead)
            return
        first = self.entries[-1].last_txn + 1
        shown = list(range(len(batch))) if group.is_complete else [0] * len(batch)
        self.numbers[which] += [first + n for n in shown]
        group.done += len(batch)
        for source, place in batch:
            group.passed[source] = max(group.passed[source], place)
        self._pass(group, ahead)
        found = {}
        for source in group.sources:
            each = [
                (n, Place("h", (place, 0)))
                for n, (s, place) in zip(shown, batch, strict=True)
                if s == source
            ]
            if each:
                found[source] = source_places(each)
        places = Places(frozenset(group.views), found).encoded() if told else ""
        self._append(shown[-1] + 1, places)

    def note(self, which: int, ahead: int) -> None:
        self._pass(self.groups[which], ahead)
        self._append(0, "")

    def _pass(self, group: Group, ahead: int) -> None:
        for source in sorted(group.sources):
            most = group.next_place(source, self.end) - 1
            group.passed[source] = max(
                group.passed[source], min(most, group.passed[source] + ahead)
            )

    # -- what is true -----------------------------------------------------------------------------

    def contents(self, view: str, number: int) -> frozenset[tuple[str, int]]:
        """The transactions of its sources that a view has at a number, as far as its group reads them."""
        which, group = self._group_of(view)
        return frozenset(
            (source, place)
            for (source, place), n in zip(group.arrivals, self.numbers[which], strict=False)
            if n <= number and source in group.views[view]
        )

    def _group_of(self, view: str) -> tuple[int, Group]:
        return next((n, g) for n, g in enumerate(self.groups) if view in g.views)

    def span(self, view: str, source: str, number: int, top: Entry) -> tuple[int, int]:
        """The places of a source at which the view has exactly what it has at the number."""
        _, group = self._group_of(view)
        own = {place for s, place in self.contents(view, number) if s == source}
        later = {place for s, place in group.arrivals if s == source} - own
        known = place_of(top.views[view].positions[source]).order[0]
        return max(own, default=0), min([known, *(place - 1 for place in later)])

    def is_one_cut(self, numbers: dict[str, int], top: Entry) -> bool:
        for source in {s for g in self.groups for s in g.sources}:
            readers = [v for v in numbers if source in self._group_of(v)[1].views[v]]
            spans = [self.span(view, source, numbers[view], top) for view in readers]
            if len(spans) > 1 and max(low for low, _ in spans) > min(high for _, high in spans):
                return False
        return True

    def __repr__(self) -> str:
        told = [
            (e.first_txn, e.last_txn, {v: dict(s.positions) for v, s in e.views.items()})
            for e in self.entries
        ]
        return f"{self.groups}\n{self.numbers}\n" + "\n".join(map(str, told))

    def shown_at(self, txn: int) -> int:
        """Where the entry stands that shows a number."""
        return max(n for n, e in enumerate(self.entries) if e.serves_from <= txn)

    def back_from(self, index: int) -> Iterator[Entry]:
        return iter(self.entries[index::-1])


@st.composite
def worlds(draw: st.DrawFn, *, always_told: bool = True) -> World:
    end = 6
    sources = ["a", "b"][: draw(st.integers(1, 2))]
    number = draw(st.integers(2, 3))
    groups = []
    owners = {(s, p): draw(st.integers(0, number)) for s in sources for p in range(1, end + 1)}
    for which in range(number):
        views = {
            f"v{which}_{n}": tuple(sorted(draw(st.sets(st.sampled_from(sources), min_size=1))))
            for n in range(draw(st.integers(1, 2)))
        }
        read = {s for of_view in views.values() for s in of_view}
        queues = {s: [p for p in range(1, end + 1) if owners[s, p] == which] for s in read}
        arrivals = []
        while left := sorted(s for s, places in queues.items() if places):
            source = draw(st.sampled_from(left))
            arrivals.append((source, queues[source].pop(0)))
        groups.append(Group(views, arrivals, draw(st.booleans())))
    world = World(groups, end)
    steps = st.tuples(
        st.integers(0, number - 1), st.integers(0, 3), st.integers(0, 3), st.booleans()
    )
    for which, size, ahead, told in draw(st.lists(steps, max_size=12)):
        world.commit(which, size, ahead, told=told or always_told)
    return world


def read_together(world: World, views: list[str], txn: int) -> dict[str, int]:
    return numbers_at_one_cut(world.back_from(world.shown_at(txn)), views, txn)


@settings(max_examples=seeds(400, least=20), deadline=None)
@given(worlds(), st.data())
def test_the_newest_common_cut_is_that_of_trying_all(world: World, data: st.DataObject) -> None:
    names = [view for group in world.groups for view in group.views]
    views = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True))
    txn = data.draw(st.integers(0, world.entries[-1].last_txn))
    top = world.entries[world.shown_at(txn)]
    found = read_together(world, views, txn)
    assert max(found.values()) <= txn
    assert world.is_one_cut(found, top), found
    mine = {view: world.contents(view, number) for view, number in found.items()}
    for combination in itertools.product(range(txn + 1), repeat=len(views)):
        numbers = dict(zip(views, combination, strict=True))
        if world.is_one_cut(numbers, top):
            for view, number in numbers.items():
                assert world.contents(view, number) <= mine[view], (numbers, found)


@settings(max_examples=seeds(300, least=20), deadline=None)
@given(worlds(always_told=False), st.data())
def test_entries_without_places_are_never_taken_for_more_than_they_say(
    world: World, data: st.DataObject
) -> None:
    names = [view for group in world.groups for view in group.views]
    views = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True))
    txn = data.draw(st.integers(0, world.entries[-1].last_txn))
    found = read_together(world, views, txn)
    assert world.is_one_cut(found, world.entries[world.shown_at(txn)]), found


@settings(max_examples=seeds(200, least=20), deadline=None)
@given(worlds(always_told=False), st.data())
def test_views_of_one_group_are_read_at_the_number_itself(
    world: World, data: st.DataObject
) -> None:
    txn = data.draw(st.integers(0, world.entries[-1].last_txn))
    for group in world.groups:
        found = read_together(world, list(group.views), txn)
        assert set(found.values()) == {txn}


def two_groups(orders: list[int], invoices: list[int]) -> World:
    groups = [
        Group({"orders": ("shop",)}, [("shop", n) for n in orders], True),
        Group({"invoices": ("shop",)}, [("shop", n) for n in invoices], True),
    ]
    return World(groups, end=max(orders + invoices))


def test_an_invoice_is_not_shown_before_its_order() -> None:
    world = two_groups([1, 3, 5], [2, 4, 6])
    world.commit(1, 3, 0)
    assert read_together(world, ["orders", "invoices"], 3) == {"orders": 3, "invoices": 0}
    world.commit(0, 2, 0)
    # The second order is at 3; that 4 is no order is not known yet.
    assert read_together(world, ["orders", "invoices"], 5) == {"orders": 5, "invoices": 1}
    world.note(0, 1)
    assert read_together(world, ["orders", "invoices"], 5) == {"orders": 5, "invoices": 2}
    # A number that is not the newest any more always shows the same.
    world.commit(0, 1, 9)
    assert read_together(world, ["orders", "invoices"], 5) == {"orders": 5, "invoices": 2}
    assert read_together(world, ["orders", "invoices"], 6) == {"orders": 6, "invoices": 6}


def test_a_transaction_that_both_read_is_shown_by_both_or_by_none() -> None:
    """Convergent views are not united with others, though one transaction changes both."""
    world = two_groups([1, 2], [1, 2])
    world.commit(1, 2, 0)
    world.commit(0, 2, 0)
    # The orders show the first alone: the second, where the other view stands, is not covered.
    assert read_together(world, ["orders", "invoices"], 3) == {"orders": 3, "invoices": 1}
    assert read_together(world, ["orders", "invoices"], 4) == {"orders": 4, "invoices": 4}


def test_what_a_view_does_not_read_is_the_same_place_for_it() -> None:
    world = two_groups([1], [2])
    world.commit(0, 1, 0)
    world.commit(1, 1, 4)
    latest = world.entries[-1]
    assert not is_one_cut(latest, ["orders", "invoices"])
    assert read_together(world, ["orders", "invoices"], 2) == {"orders": 2, "invoices": 1}
    world.note(0, 1)
    assert is_one_cut(world.entries[-1], ["orders", "invoices"])
    assert read_together(world, ["orders", "invoices"], 2) == {"orders": 2, "invoices": 2}


def test_a_view_that_is_filled_ahead_of_another_has_no_older_state() -> None:
    world = two_groups([1, 2], [3])
    world.commit(0, 1, 0)
    views = dict(world.entries[-1].views)
    views["new"] = replace(state(1, incarnation=9, since=1), positions={"shop": position(3)})
    world.maker.epoch(0, **views)
    with pytest.raises(Apart) as raised:
        read_together(world, ["orders", "new"], 1)
    assert (raised.value.ahead, raised.value.behind) == ("new", "orders")
    views["orders"] = replace(views["orders"], positions={"shop": position(3)})
    world.maker.epoch(0, **views)
    assert read_together(world, ["orders", "new"], 1) == {"orders": 1, "new": 1}


def test_only_as_much_of_the_ledger_is_read_as_is_needed() -> None:
    world = two_groups([2 * n + 1 for n in range(200)], [2 * n + 2 for n in range(200)])
    for _ in range(200):
        world.commit(0, 1, 0)
        world.commit(1, 1, 0)
    newest = world.entries[-1].last_txn
    taken = []
    entries = (taken.append(e) or e for e in reversed(world.entries))
    found = numbers_at_one_cut(entries, ["orders", "invoices"], newest)
    assert found == {"orders": newest, "invoices": newest - 1}
    assert len(taken) < 6


def test_places_are_stored_in_few_bytes() -> None:
    each = source_places([(n, Place("h", (10**12 + 137 * n, 0))) for n in range(10_000)])
    text = Places(frozenset({"v"}), {"shop": each}).encoded()
    assert len(text) < 50_000
    found = Places.decoded(text).sources["shop"]
    assert found.place(9_999) == Place("h", (10**12 + 137 * 9_999, 0))
    assert found.states[-1] == 9_999


def test_a_ledger_says_the_same_when_it_is_read_from_views_json() -> None:
    """Entries as the ledger's table has them: positions come back from JSON."""
    world = two_groups([1, 3], [2, 4])
    world.commit(1, 2, 0)
    world.commit(0, 1, 1)
    again = [replace(e, views_json=views_to_json(e.views)) for e in world.entries]
    assert numbers_at_one_cut(iter(again[::-1]), ["orders", "invoices"], 3) == {
        "orders": 3,
        "invoices": 1,
    }


def test_a_view_that_was_filled_anew_is_read_as_it_was_before() -> None:
    world = two_groups([1, 2], [3])
    world.commit(0, 1, 0)
    world.commit(1, 1, 0)
    views = dict(world.entries[-1].views)
    views["orders"] = replace(
        views["orders"], incarnation=9, since_txn=2, positions={"shop": position(5)}
    )
    world.maker.epoch(0, **views)
    # The fill took no number: at 2 there is only the new extent, at 1 the old one.
    assert read_together(world, ["orders", "invoices"], 2) == {"orders": 1, "invoices": 1}
    views["invoices"] = replace(views["invoices"], positions={"shop": position(6)})
    world.maker.epoch(0, **views)
    assert read_together(world, ["orders", "invoices"], 2) == {"orders": 2, "invoices": 2}
