"""A dbt model becomes a view, or every line of it that can't is named."""

from __future__ import annotations

from viewkeeper.importing.dbt_models import SourceTable, translated

TABLES = {
    ("shop", "orders"): SourceTable("shop", "orders"),
    ("crm", "people"): SourceTable("crm", "customers", "sales"),
}
MODELS = frozenset({"orders", "totals"})


def model(text):
    return translated("totals", text, MODELS, TABLES)


def test_names_stand_in_place_of_ref_and_source():
    found = model(
        "{{ config(materialized='table') }}\n"
        "SELECT o.id, p.name FROM {{ source('shop', 'orders') }} o\n"
        'JOIN {{- source("crm", "people") -}} p ON o.person = p.id\n'
        "JOIN {{ref('orders')}} x ON x.id = o.id {# a remark #}"
    )
    assert found.refusals == ()
    assert "FROM shop.orders o" in found.text
    assert "crm.sales.customers" in found.text
    assert "JOIN orders x" in found.text
    assert "config" not in found.text
    assert "remark" not in found.text
    assert (found.models, found.sources) == (("orders",), ("shop", "crm"))


def test_what_is_not_plain_sql_is_refused_by_line_with_a_way_out():
    found = model(
        "SELECT *\nFROM {{ ref('orders') }}\n{% if is_incremental() %}\nWHERE day > {{ var('day') }}\n"
        "{% endif %}\nAND {{ dbt_utils.star(ref('orders')) }}"
    )
    told = [(refusal.line, refusal.reason) for refusal in found.refusals]
    assert told == [
        (3, "the template block {% if … %} is not supported"),
        (4, "the macro var is not supported"),
        (5, "the template block {% endif … %} is not supported"),
        (6, "the macro dbt_utils.star is not supported"),
    ]
    assert "kept from changes" in found.refusals[0].hint
    assert "write the value itself" in found.refusals[1].hint


def test_a_comment_over_several_lines_does_not_shift_the_lines_below():
    found = model("{# one\ntwo\n#}\nSELECT {{ env_var('X') }}")
    assert [refusal.line for refusal in found.refusals] == [4]


def test_names_that_nobody_declares_are_refused():
    found = model("SELECT * FROM {{ ref('seed') }}, {{ source('shop', 'x') }}, {{ ref('a', 'b') }}")
    assert [refusal.reason for refusal in found.refusals] == [
        "there is no model seed",
        "no schema file declares the source shop.x",
        "ref('a', 'b') is not supported",
    ]
