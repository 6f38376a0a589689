"""``viewkeeper explain``, on the example project and on views that can't be kept yet."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from viewkeeper.cli import execute
from viewkeeper.cli.flow import flow_lines
from viewkeeper.demo.example_project import write_example


@pytest.fixture
def example(tmp_path):
    write_example(tmp_path / "example")
    return tmp_path / "example"


def explained(capsys, folder, *words):
    assert execute(["explain", *words, "--json", "--project", str(folder)]) == 0
    return {view["name"]: view for view in json.loads(capsys.readouterr().out)["views"]}


def test_all_views_are_explained_when_none_is_named(example, capsys):
    assert list(explained(capsys, example)) == ["names", "referrals", "sales"]
    assert list(explained(capsys, example, "sales")) == ["sales"]


def test_a_join_of_three_asks_two_questions_in_the_order_of_the_join(example, capsys):
    sales = explained(capsys, example, "sales")["sales"]
    asked = {
        change["alias"]: [(hop["source"], hop["by"], hop["keys_from"]) for hop in change["asks"]]
        for change in sales["changes"]
    }
    assert asked["c"] == [
        ("shop", ["o.customer_id"], ["c.customer_id"]),
        ("shop", ["p.product_id"], ["o.product_id"]),
    ]
    assert [change["questions"] for change in sales["changes"]] == [2, 2, 2]
    assert sales["reaches"]["level"] == "complete"
    assert sales["reaches"]["meets_declared"]
    read = {each["relation"]: each for each in sales["reads"]}
    assert read["crm.customers"]["left_out"] == ["referred_by"]


def test_the_text_says_what_the_document_says_and_fits(example, capsys):
    assert execute(["explain", "sales", "--project", str(example)]) == 0
    text = capsys.readouterr().out
    assert "shop: rows of shop.orders with o.customer_id among the values of c.customer_id" in text
    assert "reaches complete consistency with batched-sweep (declared: complete)" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_page_in_the_documentation_shows_what_is_printed(example, capsys):
    page = (Path(__file__).parents[3] / "docs" / "explain.md").read_text()
    shown = re.search(r"\$ viewkeeper explain sales\n(.*?)```", page, re.DOTALL)[1]
    question = re.search(r"a change of crm.customers .*?```", page, re.DOTALL)[0]
    choice = re.search(r"crm.customers, asked for now.*?```", page, re.DOTALL)[0]
    assert execute(["explain", "sales", "--project", str(example)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(shown)
    for line in (*question.splitlines()[:-1], *choice.splitlines()[:-1]):
        assert line.strip() in printed


def test_a_view_that_groups_says_what_is_kept_beside_it(example, capsys):
    (example / "views" / "totals.sql").write_text(
        "SELECT c.region, count(*) AS customers, min(c.name) AS first "
        "FROM crm.customers c GROUP BY c.region"
    )
    totals = explained(capsys, example, "totals")["totals"]
    assert totals["incremental"]
    assert totals["reaches"]["level"] == "complete"
    assert any("for MIN" in kept["holds"] for kept in totals["keeps"])
    suits = {each["protocol"] for each in totals["protocols"] if not each["refused_because"]}
    assert suits == {"batched-sweep", "recompute", "periodic", "virtual"}
    assert execute(["explain", "totals", "--project", str(example)]) == 0
    text = capsys.readouterr().out
    assert "kept beside it" in text
    assert "no other protocol keeps steps, groups or DISTINCT from changes" in text


def test_a_view_that_can_not_be_kept_from_changes_says_why_it_is_computed_anew(example, capsys):
    (example / "views" / "mean.sql").write_text(
        "SELECT sum(CAST(o.quantity AS DOUBLE)) AS total FROM shop.orders o"
    )
    mean = explained(capsys, example, "mean")["mean"]
    assert not mean["incremental"]
    assert mean["changes"] == []
    assert mean["reaches"]["protocol"] == "recompute"
    assert mean["reaches"]["level"] == "strong"
    assert not mean["reaches"]["meets_declared"]
    assert "over doubles" in " ".join(mean["not_incremental_because"])
    assert execute(["explain", "mean", "--project", str(example)]) == 0
    assert "computed anew" in capsys.readouterr().out


def test_a_view_with_steps_is_explained_with_them(example, capsys):
    (example / "views" / "quiet.sql").write_text(
        "SELECT c.customer_id FROM crm.customers c LEFT JOIN shop.orders o "
        "ON c.customer_id = o.customer_id WHERE o.order_id IS NULL\nORDER BY c.customer_id"
    )
    quiet = explained(capsys, example, "quiet")["quiet"]
    assert [step["name"] for step in quiet["steps"]] == ["c_o", "c_without_o_tags", "c_without_o"]
    assert quiet["sources"] == ["crm", "shop"]
    assert "ORDER BY is read over" in quiet["remarks"][0]
    assert execute(["explain", "quiet", "--project", str(example)]) == 0
    text = capsys.readouterr().out
    assert "3 steps before it" in text
    assert "line 2, column 1: ORDER BY is read over" in text


def test_a_view_over_a_view_is_explained_over_the_sources(example, capsys):
    (example / "views" / "numbered.sql").write_text("SELECT count(*) AS n FROM sales")
    numbered = explained(capsys, example, "numbered")["numbered"]
    assert numbered["sources"] == ["shop", "crm"]


def test_a_protocol_that_can_not_keep_the_view_is_told_with_its_reason(example, capsys):
    (example / "views" / "own.sql").write_text(
        "-- consistency: strong\n-- protocol: strobe\nSELECT c.name FROM crm.customers c"
    )
    own = explained(capsys, example, "own")["own"]
    assert own["refused"]["code"] == "protocol-not-applicable"
    assert execute(["explain", "own", "--project", str(example)]) == 0
    assert "does not show customer_id of crm.customers" in capsys.readouterr().out


def test_an_unknown_view_is_told_with_the_known_ones(example, capsys):
    assert execute(["explain", "sale", "--project", str(example)]) == 2
    told = capsys.readouterr().err
    assert "[unknown-view]" in told
    assert "sales" in told


def test_the_drawing_stays_narrow_and_leads_from_every_source_to_the_view(example, capsys):
    wide = " ".join(
        f"JOIN {'crm.customers' if n % 2 else 'shop.orders'} occurrence_number_{n} "
        f"ON o.customer_id = occurrence_number_{n}.customer_id"
        for n in range(1, 12)
    )
    (example / "views" / "wide.sql").write_text(f"SELECT o.order_id FROM shop.orders o {wide}")
    for document in explained(capsys, example).values():
        lines = flow_lines(document)
        drawing = "\n".join(lines)
        assert max(map(len, lines)) <= 100
        for source in document["sources"]:
            assert f"┌ {source} (sqlite) " in drawing
        assert f"┌ {document['name']} " in drawing
        asks = any(change["asks"] for change in document["changes"])
        assert ("│◀─" in drawing) == asks
        assert drawing.count("▶│") == 2
