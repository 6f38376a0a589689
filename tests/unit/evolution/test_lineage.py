"""What relations have become since a text named them, in changes that are possible one by one."""

from __future__ import annotations

import itertools
import random

import pytest

from unit.evolution.shop import CATALOG, CUSTOMERS, NAMES, ORDERS, PARTY
from viewkeeper.algebra.types import INTEGER, Field
from viewkeeper.evolution.changes import (
    AddAttribute,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    catalog_after,
    relation_in,
)
from viewkeeper.evolution.lineage import (
    OLDER_MAX,
    catalogs_then,
    followed,
    inherited,
    steps_since,
)
from viewkeeper.views.definition import RelationName


def lived(*changes):
    catalog, lineage = CATALOG, ()
    for change in changes:
        named = [relation.name for relation in catalog.relations]
        lineage = followed(lineage, change, named, catalog)
        catalog = catalog_after(catalog, change)
    return catalog, lineage


def again(catalog, lineage):
    """The catalog of then, with the steps that should lead to now."""
    ((then, chosen),) = catalogs_then(lineage, catalog)
    for step in steps_since(chosen, catalog):
        then = catalog_after(then, step)
    return then


def relations(catalog):
    return {r.name: (r.schema, r.key) for r in catalog.relations}


ANOTHER = RelationName("crm", "another")


@pytest.mark.parametrize(
    "changes",
    [
        (RenameRelation(CUSTOMERS, "clients"),),
        (RenameAttribute(ORDERS, "qty", "n"), RenameAttribute(ORDERS, "n", "pieces")),
        (DropAttribute(ORDERS, "qty"), AddAttribute(ORDERS, Field("qty", INTEGER))),
        (DropAttribute(CUSTOMERS, "cust_id"),),
        (DropRelation(PARTY), RenameRelation(NAMES, "labels")),
        (
            RenameRelation(CUSTOMERS, "another"),
            RenameAttribute(ANOTHER, "name", "city2"),
            RenameRelation(ANOTHER, "customers"),
        ),
    ],
)
def test_the_steps_lead_from_what_was_to_what_is(changes):
    catalog, lineage = lived(*changes)
    assert relations(again(catalog, lineage)) == relations(catalog)


def test_relations_that_exchanged_their_names_are_told_apart():
    changes = (
        RenameRelation(CUSTOMERS, "other"),
        RenameRelation(RelationName("crm", "other"), "o"),
    )
    swap = (
        RenameRelation(PARTY, "between"),
        RenameRelation(RelationName("erp", "between"), "party"),
    )
    catalog, lineage = lived(*changes, *swap)
    assert relations(again(catalog, lineage)) == relations(catalog)
    assert relation_in(catalog, RelationName("crm", "o")) is not None


def test_random_lives_are_retold():
    """Names are few and used again, so that columns and relations take over each other's."""
    for seed in range(200):
        rng = random.Random(seed)
        catalog, lineage = CATALOG, ()
        named = [relation.name for relation in CATALOG.relations]
        for _ in range(rng.randrange(1, 9)):
            relation = rng.choice(catalog.relations)
            free = [n for n in "abcd" if n not in relation.schema.names]
            taken = {r.name.relation for r in catalog.relations}
            names = [n for n in ("party", "names", "x", "y", "z", "w") if n not in taken]
            column = rng.choice(relation.schema.names)
            change = rng.choice(
                (
                    RenameAttribute(relation.name, column, rng.choice(free)),
                    RenameRelation(relation.name, rng.choice(names)),
                    DropAttribute(relation.name, column)
                    if len(relation.schema) > 1
                    else RenameAttribute(relation.name, column, rng.choice(free)),
                )
            )
            lineage = followed(lineage, change, named, catalog)
            catalog = catalog_after(catalog, change)
            named.append(getattr(change, "renamed", relation.name))
        if lineage:
            assert relations(again(catalog, lineage)) == relations(catalog), seed


def test_a_lineage_grows_with_relations_and_not_with_changes():
    changes = [RenameAttribute(ORDERS, f"q{n}" if n else "qty", f"q{n + 1}") for n in range(100)]
    _, lineage = lived(*changes)
    assert [each.columns for each in lineage] == [
        (("o_id", "o_id"), ("cust_id", "cust_id"), ("qty", "q100"))
    ]
    for _ in range(3 * OLDER_MAX):
        lineage = inherited((*lineage, *lived(RenameRelation(PARTY, "p"))[1]))
    assert len(lineage) <= OLDER_MAX


def test_own_names_come_before_older_ones():
    catalog, lineage = lived(RenameAttribute(ORDERS, "qty", "pieces"))
    older = inherited(lineage)
    change = RenameAttribute(ORDERS, "pieces", "number")
    both = followed(older, change, [ORDERS], catalog)
    catalog = catalog_after(catalog, change)
    columns = [
        relation_in(then, ORDERS).schema.names[-1] for then, _ in catalogs_then(both, catalog)
    ]
    assert columns[0] == "pieces"
    assert "qty" in columns
    for then, chosen in itertools.islice(catalogs_then(both, catalog), 1):
        for step in steps_since(chosen, catalog):
            then = catalog_after(then, step)
        assert relations(then) == relations(catalog)
