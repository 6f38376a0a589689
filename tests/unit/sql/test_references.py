"""Views over views: read in their place, by name, whatever they are; never in a circle."""

from __future__ import annotations

import pytest

from unit.sql import rich
from unit.sql.oracle import answer, database
from viewkeeper.errors import UsageError
from viewkeeper.sql.parser import parse_view, parse_with_references
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName

VIEWS = {
    "plain": "-- consistency: strong\nSELECT k, x, y, s FROM a.r WHERE x > 0",
    "totals": "SELECT x, sum(y) AS total, count(*) AS n FROM plain GROUP BY x",
    "most": "SELECT max(total) AS total FROM totals",
    "best": "SELECT t.x FROM totals t JOIN most m ON t.total = m.total",
    "lonely": "SELECT p.k, p.s FROM plain p LEFT JOIN b.t t ON p.x = t.x WHERE t.k IS NULL",
    "merged": "SELECT k, s FROM lonely UNION ALL SELECT k, s FROM plain",
    "counted": "SELECT s, count(*) AS n FROM merged GROUP BY s",
    "chosen": "SELECT k FROM a.u WHERE x IN (SELECT x FROM best) AND NOT EXISTS (SELECT 1 FROM lonely WHERE lonely.k = u.k)",
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_over_views_means_what_duckdb_means_by_the_same_views(name: str) -> None:
    definition = parse_view(name, VIEWS[name], rich.CATALOG, VIEWS)
    for seed in range(8):
        contents = rich.random_contents(seed)
        with database(contents) as connection:
            for other in VIEWS:
                connection.execute(f"CREATE VIEW {other} AS {VIEWS[other]}")
            theirs = answer(connection, f"SELECT * FROM {name}", definition.schema)
        assert evaluated(definition, contents.__getitem__) == theirs


def test_what_is_read_of_other_views_is_known() -> None:
    definition, read = parse_with_references("best", VIEWS["best"], rich.CATALOG, VIEWS)
    assert read == ("plain", "totals", "most")
    assert definition.relations == (RelationName("a", "r"),)
    assert [step.name.relation for step in definition.steps] == ["totals", "most"]


def test_headers_are_those_of_the_view_itself() -> None:
    definition = parse_view("lonely", VIEWS["lonely"], rich.CATALOG, VIEWS)
    assert str(definition.level) == "complete"


def test_a_with_name_goes_before_a_view() -> None:
    text = "WITH plain AS (SELECT x AS k FROM c.w) SELECT k FROM plain"
    definition, read = parse_with_references("v", text, rich.CATALOG, VIEWS)
    assert read == ()
    assert definition.relations == (RelationName("c", "w"),)


@pytest.mark.parametrize(
    ("views", "circle"),
    [
        ({"v": "SELECT k FROM v"}, "v → v"),
        (
            {"v": "SELECT k FROM u", "u": "SELECT k FROM w", "w": "SELECT k FROM u"},
            "u → w → u",
        ),
        (
            {"v": "SELECT k FROM a.r WHERE k IN (SELECT k FROM u)", "u": "SELECT k FROM v"},
            "v → u → v",
        ),
    ],
)
def test_a_circle_is_named(views: dict[str, str], circle: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_view("v", views["v"], rich.CATALOG, views)
    assert error.value.code == "view-cycle"
    assert error.value.message.endswith(f"in a circle: {circle}")


def test_an_error_in_another_view_is_shown_where_it_is() -> None:
    views = {
        "v": "SELECT k\nFROM a.r WHERE k IN (SELECT k FROM u)",
        "u": "SELECT k,\n  zz FROM a.r",
    }
    with pytest.raises(UsageError) as error:
        parse_view("v", views["v"], rich.CATALOG, views)
    assert error.value.message.startswith("view u, line 2, column 3: there is no column zz")


def test_a_slip_in_a_views_name_is_pointed_out() -> None:
    with pytest.raises(UsageError) as error:
        parse_view("v", "SELECT k FROM plane", rich.CATALOG, VIEWS)
    assert "plain" in error.value.hint
