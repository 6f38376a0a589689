"""Which output of a view picks its rows exactly, and how little of its relations is enough then."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, Field, Schema
from viewkeeper.sql.parser import parse_with_references
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.sampling import Follow, Picked, picked, reading_order

CATALOG = Catalog(
    (
        CatalogRelation(
            RelationName("shop", "orders"),
            Schema((Field("id", INTEGER), Field("cust", INTEGER), Field("price", DOUBLE))),
            ("id",),
        ),
        CatalogRelation(
            RelationName("crm", "people"),
            Schema((Field("cust", INTEGER), Field("name", STRING), Field("code", STRING))),
            ("cust",),
        ),
    )
)


def definition(text: str):
    return parse_with_references("v", text, CATALOG, {"v": text})[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT o.price, o.id FROM shop.orders o", Picked("id", "o", "id")),
        ("SELECT p.name AS who FROM crm.people p", Picked("who", "p", "name")),
        (
            "SELECT p.name, count(*) AS n FROM crm.people p GROUP BY p.name",
            Picked("name", "p", "name"),
        ),
        ("SELECT DISTINCT p.name FROM crm.people p", Picked("name", "p", "name")),
        # Nothing is shown as it is, or not as a kind that is compared safely.
        ("SELECT o.id + 1 AS next FROM shop.orders o", None),
        ("SELECT o.price FROM shop.orders o", None),
        ("SELECT count(*) AS n FROM shop.orders o", None),
        ("SELECT upper(p.name) AS u, count(*) AS n FROM crm.people p GROUP BY upper(p.name)", None),
        # Rows may come from elsewhere too.
        ("SELECT o.id FROM shop.orders o UNION ALL SELECT p.cust FROM crm.people p", None),
        ("SELECT o.id, p.name FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.cust", None),
    ],
)
def test_what_picks_rows_exactly(text, expected):
    assert picked(definition(text)) == expected


def test_others_are_read_along_equalities_of_one_type_and_whole_otherwise():
    along = definition("SELECT o.id FROM shop.orders o JOIN crm.people p ON o.cust = p.cust")
    assert reading_order(along.terms[0], "o") == [Follow("p", "cust", "o", "cust")]
    assert reading_order(along.terms[0], "p") == [Follow("o", "cust", "p", "cust")]
    apart = definition("SELECT o.id FROM shop.orders o JOIN crm.people p ON o.cust > p.cust")
    (follow,) = reading_order(apart.terms[0], "o")
    assert (follow.alias, follow.is_whole) == ("p", True)
