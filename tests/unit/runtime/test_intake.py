"""A group's way in: what it takes, and what it must not take any more."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.errors import SourceError
from viewkeeper.runtime.evolving import Evolution
from viewkeeper.runtime.feeds import Delivery
from viewkeeper.runtime.intake import Intake
from viewkeeper.runtime.views_folder import parsed_views
from viewkeeper.sources.interface import RelationSchema, SchemaChange
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

SCHEMA = Schema.of(k=INTEGER, name=STRING)
CATALOG = Catalog((CatalogRelation(RelationName("crm", "customers"), SCHEMA, ("k",)),))


class Numbered:
    """A source whose positions are numbers."""

    def compare_positions(self, left, right) -> int:
        return (left["at"] > right["at"]) - (left["at"] < right["at"])


class Group(Intake):
    def handle(self, message) -> None: ...

    def tell(self, arrivals) -> None: ...


@pytest.fixture
def group() -> Group:
    views = parsed_views({"all": "SELECT k, name FROM crm.customers"}, CATALOG)
    around = SimpleNamespace(sources={"crm": Numbered()})
    return Group(views, around, {"crm": {"at": 0}}, Evolution(CATALOG))


def renamed(relation: str, at: int = 1) -> Delivery:
    before = RelationSchema(relation, SCHEMA, ("k",), "")
    after = RelationSchema(relation, SCHEMA.renamed(["k", "title"]), ("k",), "")
    change = SchemaChange("crm", {"at": at}, relation, before, after, "", False, {"name": "title"})
    return Delivery("crm", (change,), {"at": at + 1}, "life")


def test_a_schema_change_is_next_and_what_follows_is_held(group):
    group.deliver(renamed("customers"))
    assert [change.relation for change in group.due] == ["customers"]
    assert group.fed == {"crm": {"at": 1}}
    assert [delivery.position for delivery in group.held["crm"]] == [{"at": 2}]


def test_a_group_that_ends_for_another_can_not_take_a_schema_change_any_more(group):
    group.end = dict(group.fed)
    group.deliver(renamed("elsewhere"))
    with pytest.raises(SourceError) as caught:
        group.deliver(renamed("customers", at=3))
    assert caught.value.code == "schema-changed-while-uniting"
    assert not caught.value.retryable


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
