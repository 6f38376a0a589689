"""The blast radius of a schema change, and who decides."""

from __future__ import annotations

import json

import pytest

from unit.evolution.shop import CATALOG, CUSTOMERS, KNOWLEDGE, NAMES, ORDERS, PARTY, parts, sales
from viewkeeper.algebra.types import STRING, Field
from viewkeeper.evolution.adaptation import Method
from viewkeeper.evolution.changes import (
    AddAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    Rewrite,
)
from viewkeeper.evolution.effects import Decision, Kind, effects, planned
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.preferences import Policy

VIEWS = {
    "sales": sales(),
    "orders": sales("SELECT o_id FROM shop.orders"),
    "names": sales("SELECT name FROM crm.customers"),
    "lost": sales("SELECT cust_id, name, city FROM crm.customers", irreplaceable=parts("city")),
}


def kinds(change, views=VIEWS):
    return {e.view: e.kind for e in effects(change, views, KNOWLEDGE, CATALOG)}


def test_every_view_gets_its_effect():
    assert kinds(DropRelation(CUSTOMERS)) == {
        "sales": Kind.SYNCHRONIZED,
        "orders": Kind.UNTOUCHED,
        "names": Kind.SYNCHRONIZED,
        "lost": Kind.RETIRED,
    }
    assert kinds(RenameAttribute(CUSTOMERS, "city", "town"))["names"] is Kind.UNTOUCHED
    assert kinds(RenameRelation(CUSTOMERS, "clients"))["names"] is Kind.RENAMED
    assert kinds(AddAttribute(CUSTOMERS, Field("phone", STRING)))["names"] is Kind.OFFERED
    assert kinds(Rewrite(CUSTOMERS))["names"] is Kind.REREAD


def test_it_says_how_the_extent_is_brought_over_and_why():
    found = {e.view: e for e in effects(DropRelation(CUSTOMERS), VIEWS, KNOWLEDGE, CATALOG)}
    assert found["sales"].method is Method.MAP_VA
    assert found["names"].method is Method.RECOMPUTE
    assert found["names"].method_reason == "the view does not show the key of crm.customers"
    assert found["orders"].method is Method.KEPT


@pytest.mark.parametrize(
    ("policy", "decision"),
    [
        (Policy.AUTO, Decision.PROCEED),
        (Policy.APPROVE, Decision.ASK),
        (Policy.FREEZE, Decision.FREEZE),
    ],
)
def test_the_policy_decides_about_all_that_gives_the_view_another_definition(policy, decision):
    views = {"sales": sales(policy=policy)}
    for change, kind in (
        (DropRelation(CUSTOMERS), Kind.SYNCHRONIZED),
        (DropRelation(ORDERS), Kind.RETIRED),
        (RenameRelation(CUSTOMERS, "clients"), Kind.RENAMED),
        (RenameAttribute(CUSTOMERS, "name", "title"), Kind.RENAMED),
    ):
        (found,) = effects(change, views, KNOWLEDGE, CATALOG)
        assert (found.kind, found.decision) == (kind, decision)
    for change in (
        AddAttribute(CUSTOMERS, Field("phone", STRING)),
        RenameRelation(PARTY, "partners"),  # the view does not read it
        Rewrite(CUSTOMERS),
    ):
        (found,) = effects(change, views, KNOWLEDGE, CATALOG)
        assert found.decision is Decision.PROCEED


def test_several_changes_build_on_each_other():
    changes = (
        RenameRelation(PARTY, "partners"),
        DropRelation(CUSTOMERS),
        DropRelation(NAMES),
        DropRelation(type(PARTY)("erp", "partners")),
    )
    steps = list(planned(changes, {"sales": sales()}, KNOWLEDGE, CATALOG))
    assert [[e.kind for e in found] for _, found in steps] == [
        [Kind.UNTOUCHED], [Kind.SYNCHRONIZED], [Kind.UNTOUCHED], [Kind.RETIRED],
    ]  # fmt: skip
    assert "erp.partners" in steps[1][1][0].reason


def test_an_effect_is_ready_for_json():
    for change in (DropRelation(CUSTOMERS), RenameRelation(CUSTOMERS, "clients")):
        for effect in effects(change, VIEWS, Knowledge(), CATALOG):
            assert json.loads(json.dumps(effect.as_dict()))["view"] == effect.view
