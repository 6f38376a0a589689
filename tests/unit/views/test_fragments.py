"""What each source answers by itself."""

from __future__ import annotations

from unit.sql.corpus import catalog
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.definition import Term
from viewkeeper.views.fragments import fragment_sql, fragments


def term(text: str) -> Term:
    (only,) = parse_view("v", text, catalog()).terms
    return only


def test_relations_of_one_source_stay_together_when_it_can_join_them() -> None:
    found = fragments(
        term(
            "SELECT o.o_id, c.name FROM shop.orders o JOIN shop.lines l ON o.o_id = l.o_id "
            "JOIN crm.customers c ON c.cust_id = o.cust_id WHERE l.line > 1 AND c.active"
        )
    )
    assert [(f.source, f.aliases) for f in found] == [("shop", ("o", "l")), ("crm", ("c",))]
    assert found[0].columns == ("o.o_id", "o.cust_id")
    assert len(found[0].predicates) == 2


def test_relations_joined_only_through_another_source_are_asked_for_separately() -> None:
    found = fragments(
        term(
            "SELECT o.o_id FROM shop.orders o JOIN crm.customers c ON c.cust_id = o.cust_id "
            "JOIN shop.lines l ON l.line = c.region_id"
        )
    )
    assert [f.aliases for f in found] == [("o",), ("c",), ("l",)]


def test_a_predicate_over_two_sources_does_not_connect_relations_of_one() -> None:
    found = fragments(
        term(
            "SELECT o.o_id FROM shop.orders o, shop.lines l, crm.customers c "
            "WHERE o.qty + l.line = c.region_id"
        )
    )
    assert [f.aliases for f in found] == [("o",), ("l",), ("c",)]
    assert all(f.predicates == () for f in found)


def test_aggregates_say_which_columns_are_needed() -> None:
    found = fragments(
        term("SELECT year(placed) AS y, sum(qty) AS q FROM shop.orders GROUP BY year(placed)")
    )
    assert found[0].columns == ("orders.qty", "orders.placed")


def test_every_alias_and_every_inner_predicate_is_in_exactly_one_fragment() -> None:
    whole = term(
        "SELECT a.o_id FROM shop.orders a, shop.orders b, geo.cities c, geo.regions d "
        "WHERE a.o_id = b.o_id AND c.region_id = d.region_id AND a.qty = c.people AND 1 = 2"
    )
    found = fragments(whole)
    assert sorted(alias for f in found for alias in f.aliases) == ["a", "b", "c", "d"]
    inside = [predicate for f in found for predicate in f.predicates]
    assert len(inside) == len(set(inside)) == 3  # the constant one goes with the first occurrence


def test_the_text_asks_for_the_source_s_own_names() -> None:
    whole = term("SELECT count(*) AS n FROM shop.archive.orders o WHERE qty > 1 OR price > 2")
    (found,) = fragments(whole)
    assert (
        fragment_sql(found, whole)
        == "SELECT 1 FROM archive.orders AS o WHERE (o.qty > 1L OR o.price > 2L)"
    )
