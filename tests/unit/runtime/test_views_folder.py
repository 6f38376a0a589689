"""The views of a project may read each other; a change of one is a change of all that read it."""

from __future__ import annotations

from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.runtime.views_folder import parsed_views
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.parser import parse_view

CATALOG = Catalog((CatalogRelation(RelationName("shop", "orders"), Schema.of(k=INTEGER)),))
TEXTS = {
    "big": "SELECT k FROM shop.orders WHERE k > 5;\n",
    "number": "SELECT count(*) AS n FROM big",
    "other": "SELECT k FROM shop.orders",
}


def test_the_text_of_a_view_tells_of_those_that_it_reads() -> None:
    before = parsed_views(TEXTS, CATALOG)
    after = parsed_views(TEXTS | {"big": "SELECT k FROM shop.orders WHERE k > 6"}, CATALOG)
    changed = {name for name in TEXTS if before[name].text != after[name].text}
    assert changed == {"big", "number"}


def test_what_is_remembered_of_others_is_a_comment() -> None:
    number = parsed_views(TEXTS, CATALOG)["number"]
    assert parse_view("number", number.text, CATALOG, TEXTS) == number.definition
