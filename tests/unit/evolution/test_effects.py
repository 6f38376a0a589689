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
from viewkeeper.evolution.effects import Decision, Kind, contingencies, effects, planned
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
    ("policy", "dropped", "renamed"),
    [
        (Policy.AUTO, Decision.PROCEED, Decision.PROCEED),
        (Policy.APPROVE, Decision.ASK, Decision.PROCEED),
        (Policy.FREEZE, Decision.FREEZE, Decision.PROCEED),
    ],
)
def test_the_policy_decides_about_what_readers_would_notice(policy, dropped, renamed):
    views = {"sales": sales(policy=policy)}
    (found,) = effects(DropRelation(CUSTOMERS), views, KNOWLEDGE, CATALOG)
    assert found.decision is dropped
    (found,) = effects(DropRelation(ORDERS), views, KNOWLEDGE, CATALOG)
    assert (found.kind, found.decision) == (Kind.RETIRED, dropped)
    (found,) = effects(RenameRelation(CUSTOMERS, "clients"), views, KNOWLEDGE, CATALOG)
    assert found.decision is renamed


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


def test_what_would_happen_if_is_known_beforehand():
    found = {
        str(change): effect.kind for change, effect in contingencies(sales(), KNOWLEDGE, CATALOG)
    }
    assert found["drop crm.customers"] is Kind.SYNCHRONIZED
    assert found["drop crm.customers.name"] is Kind.SYNCHRONIZED
    assert found["drop shop.orders"] is Kind.RETIRED
    assert len(found) == 2 + 3 + 3


def test_an_effect_is_ready_for_json():
    for change in (DropRelation(CUSTOMERS), RenameRelation(CUSTOMERS, "clients")):
        for effect in effects(change, VIEWS, Knowledge(), CATALOG):
            assert json.loads(json.dumps(effect.as_dict()))["view"] == effect.view
