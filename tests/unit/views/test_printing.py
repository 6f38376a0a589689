"""What is printed is read back as the same definition."""

from __future__ import annotations

from hypothesis import given, settings
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from slices import seeds
from unit.sql.corpus import catalog
from unit.views.definitions import definitions
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.printing import identifier, view_sql


@settings(max_examples=seeds(150, least=20))
@given(definitions())
def test_any_definition_survives_printing_and_parsing(
    pair: tuple[ViewDefinition, Catalog],
) -> None:
    definition, known = pair
    assert parse_view("v", view_sql(definition), known) == definition


def test_the_text_has_one_clause_per_line() -> None:
    text = "SELECT qty, count(*) AS n FROM shop.orders WHERE paid AND qty > 1 GROUP BY qty HAVING n > 1"
    assert view_sql(parse_view("v", text, catalog())).splitlines() == [
        "-- consistency: complete",
        "SELECT",
        "  orders.qty AS qty,",
        "  count(*) AS n",
        "FROM shop.orders AS orders",
        "WHERE orders.paid",
        "  AND orders.qty > 1L",
        "GROUP BY orders.qty",
        "HAVING count(*) > 1L",
    ]


def test_every_word_of_the_grammar_can_be_a_name() -> None:
    words = {part for word in Spark.Tokenizer.KEYWORDS for part in word.lower().split()}
    words |= {word.lower() for word in SparkParser.FUNCTIONS}
    for word in sorted(word for word in words if word.isidentifier()):
        name, schema = RelationName(word, word), Schema.of(**{word: INTEGER})
        occurrences = (Occurrence(word, name, schema), Occurrence("other", name, schema))
        output = Output(word, Column(f"{word}.{word}"))
        definition = ViewDefinition("v", (Term(occurrences, (), (output,)),))
        known = Catalog((CatalogRelation(name, schema),))
        assert parse_view("v", view_sql(definition), known) == definition


def test_only_names_that_need_it_are_quoted() -> None:
    assert identifier("qty") == "qty"
    assert identifier("Order") == "`Order`"
    assert identifier("a`b") == "`a``b`"
    assert identifier("größe") == "`größe`"
