"""A small shop for these tests: orders and customers, and who can stand for the customers."""

from __future__ import annotations

from typing import Any

from viewkeeper.algebra.expressions import Column
from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.evolution.knowledge import Containment, JoinConstraint, Knowledge, Replacement
from viewkeeper.evolution.preferences import Parts, Preferences
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

ORDERS = RelationName("shop", "orders")
CUSTOMERS = RelationName("crm", "customers")
PARTY = RelationName("erp", "party")
NAMES = RelationName("dir", "names")

CATALOG = Catalog(
    (
        CatalogRelation(ORDERS, Schema.of(o_id=INTEGER, cust_id=INTEGER, qty=INTEGER), ("o_id",)),
        CatalogRelation(
            CUSTOMERS, Schema.of(cust_id=INTEGER, name=STRING, city=STRING), ("cust_id",)
        ),
        CatalogRelation(
            PARTY, Schema.of(party_id=INTEGER, full_name=STRING, town=STRING), ("party_id",)
        ),
        CatalogRelation(NAMES, Schema.of(id=INTEGER, label=STRING), ("id",)),
    )
)

BY_PARTY = Replacement(
    CUSTOMERS,
    PARTY,
    (("cust_id", Column("party_id")), ("name", Column("full_name")), ("city", Column("town"))),
    Containment.EQUAL,
)
BY_NAMES = Replacement(
    CUSTOMERS, NAMES, (("cust_id", Column("id")), ("name", Column("label"))), Containment.SUBSET
)
JOIN = JoinConstraint(CUSTOMERS, NAMES, (("cust_id", "id"),))
KNOWLEDGE = Knowledge((BY_PARTY, BY_NAMES), (JOIN,))

SALES = """
SELECT o.o_id, o.qty, c.cust_id, c.name, c.city
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
WHERE o.qty > 2
"""


def sales(text: str = SALES, **preferences: Any) -> EvolvingView:
    return EvolvingView(parse_view("sales", text, CATALOG), Preferences(**preferences))


def parts(outputs: str = "", relations: str = "", conditions: str = "") -> Parts:
    return Parts(*(frozenset(text.split()) for text in (outputs, relations, conditions)))
