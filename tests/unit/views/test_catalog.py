"""Names of relations: with and without a schema, in any case, and what is said when there is none."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.errors import InvariantViolated, UsageError, nearest
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.names import Name, listed

SCHEMA = Schema.of(id=INTEGER)


def catalog(*names: str) -> Catalog:
    relations = (RelationName(*name.split(".", 1)) for name in names)
    return Catalog(tuple(CatalogRelation(name, SCHEMA, ("id",)) for name in relations))


def found(known: Catalog, *parts: str, quoted: bool = False) -> str:
    return str(known.find(tuple(Name(part, quoted) for part in parts)).name)


def test_a_relation_is_found_with_and_without_a_schema() -> None:
    known = catalog("shop.orders", "shop.old.orders")
    assert found(known, "shop", "orders") == "shop.orders"
    assert found(known, "shop", "old", "orders") == "shop.old.orders"


def test_case_does_not_matter_and_the_catalog_keeps_its_spelling() -> None:
    assert found(catalog("Shop.Orders"), "SHOP", "orders") == "Shop.Orders"


def test_a_quoted_name_is_exact() -> None:
    assert found(catalog("Shop.Orders"), "Shop", "Orders", quoted=True) == "Shop.Orders"
    with pytest.raises(UsageError, match="no source shop"):
        found(catalog("Shop.Orders"), "shop", "Orders", quoted=True)


def test_a_spelling_written_just_so_beats_the_others() -> None:
    known = catalog("shop.orders", "shop.Orders")
    assert found(known, "shop", "Orders") == "shop.Orders"
    with pytest.raises(UsageError) as error:
        found(known, "shop", "ORDERS")
    assert error.value.code == "ambiguous-relation"


def test_a_schema_is_not_guessed() -> None:
    with pytest.raises(UsageError) as error:
        found(catalog("shop.old.orders"), "shop", "orders")
    assert error.value.hint == "did you mean shop.old.orders?"


def test_an_empty_catalog_says_so() -> None:
    with pytest.raises(UsageError) as error:
        found(catalog(), "shop", "orders")
    assert error.value.detail == "there are none"


def test_a_key_must_be_made_of_columns() -> None:
    with pytest.raises(InvariantViolated):
        CatalogRelation(RelationName("shop", "orders"), SCHEMA, ("nr",))


def test_sources_are_named_once_in_order() -> None:
    assert catalog("b.x", "a.y", "b.z").sources == ("b", "a")


def test_long_lists_of_names_are_cut() -> None:
    assert listed(map(str, range(14)), most=3) == "0, 1, 2 and 11 more"


def test_the_nearest_name_ignores_case() -> None:
    assert nearest("ORDRES", ["lines", "Orders"]) == "Orders"
    assert nearest("xyz", ["lines", "Orders"]) is None
