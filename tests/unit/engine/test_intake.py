"""A group's way in: what it takes, and what it must not take any more."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from types import SimpleNamespace

import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.intake import Intake
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.transaction_ties import Unit, Units
from viewkeeper.engine.unions import Union
from viewkeeper.merging.global_transactions import GlobalTransactions
from viewkeeper.project.views_folder import parsed_views
from viewkeeper.sources.interface import (
    RelationChange,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

SCHEMA = Schema.of(k=INTEGER, name=STRING)
CATALOG = Catalog((CatalogRelation(RelationName("crm", "customers"), SCHEMA, ("k",)),))


def compare(source: str, left, right) -> int:
    return (left["at"] > right["at"]) - (left["at"] < right["at"])


class Following(Intake):
    """Remembers what it took in, and how feeds were sent back."""

    def __init__(self, text: str, catalog: Catalog, sources: str) -> None:
        self.told: list[tuple[str, int]] = []
        self.sent_back: list[tuple[str, int]] = []
        self.is_done = False
        scope = Scope(parsed_views({"v": text}, catalog), Evolution(catalog))
        super().__init__(scope, {s: {"at": 0} for s in sources.split()}, compare, self._sent_back)

    def _sent_back(self, source, position) -> int:
        self.sent_back.append((source, position["at"]))
        return self.generation.get(source, 0) + 1

    def bring(self, *messages: Delivery | Unit) -> None:
        """As a group does: take it in, and look whether all up to the end is here."""
        for message in messages:
            self.take(message, 0.0)
            self.look_at_end(0.0)
            self.note()

    def after_change(self, source: str) -> None:
        """The views have taken the change that was due."""
        self.due.popleft()
        self.let_go(source, 0.0)
        self.look_at_end(0.0)
        self.note()

    def note(self) -> None:
        self.told += [(arrival.origin.source, arrival.origin.identity) for arrival in self.arrived]
        self.arrived = []
        self.is_done = self.is_parting and not self.has_work and not self.due


@pytest.fixture
def group() -> Following:
    return Following("SELECT k, name FROM crm.customers", CATALOG, "crm")


def renamed(relation: str, at: int = 1) -> Delivery:
    before = RelationSchema(relation, SCHEMA, ("k",), "")
    after = RelationSchema(relation, SCHEMA.renamed(["k", "title"]), ("k",), "")
    change = SchemaChange("crm", {"at": at}, relation, before, after, "", False, {"name": "title"})
    return Delivery("crm", (change,), {"at": at + 1}, "life")


def test_a_schema_change_is_next_and_what_follows_is_held(group):
    group.bring(renamed("customers"))
    assert [change.relation for change in group.due] == ["customers"]
    assert group.fed == {"crm": {"at": 1}}
    assert [delivery.position for delivery in group.held["crm"]] == [{"at": 2}]


@pytest.mark.parametrize("noticed_at", [1, 3])
def test_a_schema_told_anew_does_not_bring_transactions_again_that_follow_it(group, noticed_at):
    """SQLite tells it with the place where it was noticed, before what lies up to there."""
    group.fed = {"crm": {"at": 1, "shapes": "as the views know them"}}
    (change,) = renamed("customers").items
    change = replace(change, position={"at": noticed_at})
    transaction = SimpleNamespace(source="crm", position={"at": 1})
    later = SimpleNamespace(source="crm", position={"at": 2})
    assert not group._is_repeated(change)
    assert group._is_repeated(transaction)
    assert not group._is_repeated(later)


# -- parts of global transactions ----------------------------------------------------------------------

TWO = Catalog(
    tuple(CatalogRelation(RelationName(source, "customers"), SCHEMA, ("k",)) for source in "ab")
)


def following() -> Following:
    text = "SELECT x.k, y.name FROM a.customers x JOIN b.customers y ON x.k = y.k"
    return Following(text, TWO, "a b")


def transaction(source: str, at: int, tie: str | None = None) -> SourceTransaction:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    change = RelationChange("customers", (), ((at, "name"),))
    return SourceTransaction(
        source, {"at": at}, at, now, (change,), None if tie is None else (tie, 2)
    )


def delivered(*items, generation: int = 0) -> Delivery:
    return Delivery(items[0].source, items, items[-1].position, "life", generation)


def unit(*parts: Delivery, **since: int) -> Unit:
    return Unit(parts, {source: {"at": at} for source, at in since.items()})


def with_schema_change(group: Following) -> None:
    before = RelationSchema("customers", SCHEMA, ("k",), "")
    change = SchemaChange("a", {"at": 1}, "customers", before, before, "", False)
    group.bring(Delivery("a", (change,), {"at": 1}, "life"))
    assert "a" in group.held


def test_a_transaction_behind_a_held_part_reaches_the_views_after_a_rename():
    """Its source's feed was opened again for the new name: what waited carries that generation."""
    group = following()
    group.generation["a"] = 1  # the views have taken the rename
    held = Units(GlobalTransactions(60.0), {})
    held.go_back("a", 1)
    parts = [transaction("a", 1, "t"), transaction("a", 2)]
    for one in (delivered(*parts, generation=1), delivered(transaction("b", 7, "t"))):
        for released in held.released(one, 0.0):
            group.bring(released)
    assert group.told == [("a", 1), ("b", 7), ("a", 2)]
    assert group.fed == {"a": {"at": 2}, "b": {"at": 7}}


def test_a_unit_waits_behind_a_schema_change_and_what_follows_its_parts_waits_too():
    group = following()
    with_schema_change(group)
    parts = delivered(transaction("a", 3)), delivered(transaction("b", 8))
    group.bring(delivered(transaction("a", 2)))
    group.bring(delivered(transaction("b", 7)))
    group.bring(unit(*parts, a=2, b=7))
    group.bring(delivered(transaction("b", 9)))
    assert group.told == [("b", 7)]
    group.after_change("a")
    assert group.told == [("b", 7), ("a", 2), ("a", 3), ("b", 8), ("b", 9)]
    assert not group.held


def test_a_unit_waits_until_no_source_of_it_has_a_schema_change_before_it():
    group = following()
    with_schema_change(group)
    change = replace(group.due[0], source="b")
    group.bring(Delivery("b", (change,), {"at": 1}, "life"))
    group.bring(unit(delivered(transaction("a", 3)), delivered(transaction("b", 8)), a=1, b=1))
    group.after_change("a")
    assert group.told == []
    group.after_change("b")
    assert group.told == [("a", 3), ("b", 8)]
    assert not group.held


def test_a_unit_with_a_schema_change_between_its_parts_is_shown_part_by_part():
    """Else every run would end there, the next one as well."""
    group = following()
    (change,) = renamed("customers", 2).items
    change = replace(change, source="a")
    parts = [transaction("a", 1, "x"), change, transaction("a", 3, "y"), transaction("b", 1, "x")]
    group.bring(unit(*(delivered(part) for part in parts), a=0, b=0))
    assert group.told == [("a", 1), ("b", 1)]
    assert list(group.due) == [change]
    group.after_change("a")
    assert group.told == [("a", 1), ("b", 1), ("a", 3)]


def test_a_source_that_is_read_again_takes_the_other_parts_of_its_units_with_it():
    """One part will come again; alone it would wait for others that do not."""
    group = following()
    with_schema_change(group)
    group.bring(delivered(transaction("b", 7)))
    elsewhere = delivered(transaction("c", 5))
    parts = (delivered(transaction("a", 3)), delivered(transaction("b", 8)), elsewhere)
    group.bring(unit(*parts, a=1, b=7, c=4))
    group.bring(delivered(transaction("b", 9)))
    group.due.popleft()
    group.go_back("a")
    assert group.sent_back == [("a", 1), ("b", 7), ("c", 4)]
    assert not group.held
    # What was on its way is left; what comes again is taken, once and together.
    group.bring(delivered(transaction("b", 9)))
    assert group.told == [("b", 7)]
    again = [delivered(transaction(s, at), generation=1) for s, at in (("a", 3), ("b", 8))]
    group.bring(delivered(transaction("b", 7), generation=1))
    group.bring(unit(*again, a=1, b=7))
    group.bring(delivered(transaction("b", 9), generation=1))
    assert group.told == [("b", 7), ("a", 3), ("b", 8), ("b", 9)]


def test_a_source_that_the_group_does_not_read_goes_back_with_the_other_parts_of_a_unit():
    group = following()
    group.generation["a"] = 1
    parts = delivered(transaction("a", 3)), delivered(transaction("c", 5))
    group.bring(unit(*parts, a=1, c=4))
    assert group.sent_back == [("c", 4)]


def test_a_unit_that_was_on_its_way_when_a_source_went_back_is_read_again_whole():
    group = following()
    group.generation["a"] = 1
    group.bring(unit(delivered(transaction("a", 3)), delivered(transaction("b", 8)), a=1, b=7))
    assert group.told == []
    assert group.sent_back == [("b", 0)]


# -- a group that another succeeds ---------------------------------------------------------------------


def taken(group: Following, *messages: Delivery | Unit) -> list[tuple[str, int]]:
    """What of all that it has taken in is its own to apply."""
    group.bring(*messages)
    return [
        (a.origin.source, a.origin.identity) for a in group.integrator.pending if group.is_own(a)
    ]


def ending(**end: int) -> Following:
    group = following()
    group.end_at({source: {"at": at} for source, at in end.items()}, Union([group]))
    return group


def test_what_lies_before_its_end_comes_first_and_the_other_is_not_its_own():
    """One feed is beyond the end when the other has not come to it: batches are beginnings."""
    group = ending(a=2, b=3)
    first = delivered(transaction("a", 1), transaction("a", 5))
    assert taken(group, first) == [("a", 1)]
    assert group.told == [("a", 1)]
    assert (group.fed["a"], group.has_work, group.is_parting) == ({"at": 2}, False, False)
    assert group.passed == {"a": {"at": 2}, "b": {"at": 0}}
    second = delivered(transaction("b", 3), transaction("b", 4))
    assert taken(group, second) == [("a", 1), ("b", 3)]
    assert (group.has_work, group.is_parting) == (True, True)
    # What lies beyond is known, so that cuts can be corrected by it.
    assert group.told == [("a", 1), ("b", 3), ("a", 5), ("b", 4)]
    assert group.fed == {"a": {"at": 5}, "b": {"at": 4}}
    assert group.passed == {"a": {"at": 2}, "b": {"at": 3}}


def test_a_group_that_stands_at_its_end_has_nothing_to_do():
    group = ending(a=0, b=0)
    assert taken(group, delivered(transaction("a", 1))) == []
    assert group.is_parting
    assert not group.has_work


def schema_change(at: int, source: str = "a") -> Delivery:
    before = RelationSchema("customers", SCHEMA, ("k",), "")
    change = SchemaChange(source, {"at": at}, "customers", before, before, "", False)
    return Delivery(source, (change,), {"at": at}, "life")


def test_a_schema_change_before_its_end_is_its_own_and_its_end_is_behind_it():
    group = ending(a=3, b=0)
    assert taken(group, schema_change(2), delivered(transaction("a", 3), transaction("a", 4))) == []
    assert [change.position for change in group.due] == [{"at": 2}]
    assert not group.is_parting
    group.after_change("a")
    assert taken(group) == [("a", 3)]
    assert group.told == [("a", 3), ("a", 4)]
    assert group.is_parting


def test_a_schema_change_beyond_its_end_is_its_successor_s():
    group = ending(a=1, b=0)
    assert taken(group, delivered_place("a", 1), schema_change(2)) == []
    assert not group.due
    assert group.union.is_over
    assert not group.union.taken
    # What follows has a shape that the group will never know.
    assert taken(group, delivered(transaction("a", 3))) == []
    assert group.told == []


def test_a_schema_change_beyond_its_end_is_taken_where_something_is_to_be_applied_before():
    """The source shows other columns now: without the change it can't be computed."""
    group = ending(a=1, b=0)
    later = delivered(transaction("a", 3))
    assert taken(group, delivered(transaction("a", 1)), schema_change(2), later) == [("a", 1)]
    assert len(group.due) == len(group.union.taken) == 1
    assert not group.union.is_over
    group.after_change("a")
    group.integrator.pending.popleft()  # it is applied
    group.note()
    assert group.told == [("a", 1), ("a", 3)]
    assert group.union.is_over


def test_groups_that_end_together_take_a_schema_change_all_or_none():
    done, behind = following(), following()
    union = Union([done, behind])
    for group in (done, behind):
        group.end_at({"a": {"at": 1}, "b": {"at": 0}}, union)
    taken(done, delivered_place("a", 1))
    assert done.is_done
    assert not union.is_over
    taken(behind, delivered(transaction("a", 1)), schema_change(2))
    behind.after_change("a")
    behind.integrator.pending.popleft()
    behind.note()
    # Both have applied all; but one would know of the change, and the other not.
    assert behind.is_done
    assert not union.is_over
    taken(done, schema_change(2))
    assert len(done.due) == 1
    done.after_change("a")
    done.note()
    assert union.is_over


def delivered_place(source: str, at: int) -> Delivery:
    """Its feed has come to that place, and nothing was there for us."""
    return Delivery(source, (), {"at": at}, "life")


def test_what_a_change_holds_back_does_not_pile_up(group):
    """For days, perhaps: somebody must decide first, and the feed says five times a second where it is."""
    group.bring(renamed("customers"))
    assert group.due_since.keys() == {"crm"}
    row = SourceTransaction("crm", {"at": 7}, 7, dt.datetime.now(dt.UTC), ())
    for at in (5, 6, 6):
        group.bring(Delivery("crm", (), {"at": at}, "life"))
    group.bring(Delivery("crm", (row,), {"at": 7}, "life"))
    for at in (8, 9, 10):
        group.bring(Delivery("crm", (), {"at": at}, "life"))
    held = [(delivery.items, delivery.position) for delivery in group.held["crm"]]
    assert held == [((row,), {"at": 7}), ((), {"at": 10})]
