"""Which changed rows can change a view."""

from __future__ import annotations

import pytest

from unit.sql import rich
from unit.sql.random_texts import Texts
from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.relevance import row_tests

SCHEMA = Schema.of(k=INTEGER, v=INTEGER, name=STRING)
R, S = RelationName("x", "r"), RelationName("y", "s")
CATALOG = Catalog(tuple(CatalogRelation(name, SCHEMA, ("k",)) for name in (R, S)))
JOIN = "SELECT r.k FROM x.r JOIN y.s ON r.k = s.k"


def found_tests(text):
    return row_tests(parse_view("V", text, CATALOG))


def rows_that_count(text, name, *rows):
    test = found_tests(text)[name]
    return [row for row in rows if test(row)]


def test_a_condition_on_one_relation_rules_out_rows_of_that_one_alone():
    text = f"{JOIN} WHERE r.v > 3"
    assert S not in found_tests(text)
    assert rows_that_count(text, R, (1, 4, "a"), (2, 3, "a")) == [(1, 4, "a")]


def test_what_is_not_known_is_not_selected():
    assert rows_that_count(f"{JOIN} WHERE r.v > 3", R, (1, None, "a")) == []


def test_all_conditions_on_a_relation_must_hold():
    text = f"{JOIN} WHERE r.v > 3 AND r.name LIKE 'a%' AND s.v = r.v"
    assert rows_that_count(text, R, (1, 4, "ab"), (1, 4, "b"), (1, 1, "a")) == [(1, 4, "ab")]


def test_a_condition_over_two_relations_rules_nothing_out():
    assert not found_tests(f"{JOIN} WHERE r.v > s.v")


def test_of_a_self_join_a_row_counts_that_one_occurrence_selects():
    text = "SELECT a.k FROM x.r a JOIN x.r b ON a.k = b.v WHERE a.v = 1 AND b.name = 'b'"
    rows = (1, 1, "c"), (2, 2, "b"), (3, 3, "c")
    assert rows_that_count(text, R, *rows) == [*rows[:2]]
    assert not found_tests("SELECT a.k FROM x.r a JOIN x.r b ON a.k = b.v WHERE a.v = 1")


def test_of_a_union_a_row_counts_that_one_term_selects():
    text = "SELECT k FROM x.r WHERE v = 1 UNION ALL SELECT k FROM x.r WHERE v = 2"
    rows = (1, 1, "a"), (2, 2, "a"), (3, 3, "a")
    assert rows_that_count(text, R, *rows) == [*rows[:2]]


@pytest.mark.parametrize(
    ("text", "ruled_out"),
    [
        # The kept side of an outer join shows all its rows; the other side's join only by the condition.
        ("SELECT r.k, s.v FROM x.r LEFT JOIN y.s ON r.k = s.k AND s.v > 3", {S}),
        ("SELECT r.k, s.v FROM x.r LEFT JOIN y.s ON r.k = s.k AND r.v > 3", set()),
        ("SELECT k FROM x.r WHERE EXISTS (SELECT 1 FROM y.s WHERE s.k = r.k AND s.v > 3)", {S}),
        ("SELECT v, count(*) AS n FROM x.r WHERE k > 3 GROUP BY v", {R}),
        ("SELECT v, count(*) AS n FROM x.r GROUP BY v HAVING count(*) > 3", set()),
    ],
)
def test_steps_are_terms_like_others(text, ruled_out):
    assert {*found_tests(text)} == ruled_out


def test_a_copy_has_the_rows_that_fail_too():
    assert not found_tests(f"-- keep: y.s\n{JOIN} WHERE r.v > 3 AND s.v > 3")


def test_a_condition_without_a_value_rules_nothing_out():
    text = f"{JOIN} WHERE 10 / r.v > 3"
    assert rows_that_count(text, R, (1, 2, "a"), (2, 9, "a")) == [(1, 2, "a")]
    assert rows_that_count(text, R, (1, "no number", "a"))


def _without_ruled_out(text: str, seed: int):
    """A random view and random contents; the contents less all rows that the tests rule out, and how many these are."""
    definition = parse_view("v", text, rich.CATALOG)
    contents = rich.random_contents(seed)
    tests = row_tests(definition)
    narrow = {
        name: Bag(rows.schema, ((r, n) for r, n in rows if name not in tests or tests[name](r)))
        for name, rows in contents.items()
    }
    return definition, contents, narrow, sum(len(contents[n]) - len(narrow[n]) for n in contents)


def test_no_row_that_is_ruled_out_changes_a_random_view():
    left_out = 0
    for seed in range(200):
        text = Texts(seed).view()
        definition, contents, narrow, ruled_out = _without_ruled_out(text, seed)
        full = evaluated(definition, contents.__getitem__)
        assert evaluated(definition, narrow.__getitem__) == full, text
        left_out += ruled_out
    assert left_out > 50
