"""``viewkeeper advise``, and what `explain` says of asking and keeping, on the example project."""

from __future__ import annotations

import json

import pytest

from event_samples import run_event
from viewkeeper.cli import execute
from viewkeeper.cli.choices import size
from viewkeeper.demo.example_project import write_example
from viewkeeper.reports.run_state import RunState


@pytest.fixture
def example(tmp_path):
    write_example(tmp_path / "example")
    return tmp_path / "example"


def measure(folder, rows: int) -> None:
    """A run that asked for customers and fetched so many rows."""
    tally = {"queries": 12, "keys": 20, "rows": rows, "bytes": 40 * rows}
    asked = {"crm": tally | {"relations": {"customers": tally}}}
    changes = {"crm.customers": 2, "shop.orders": 30}
    with RunState(folder, {}) as state:
        state.on_event(run_event("batch", transactions=15, asked=asked, changes=changes))


def advised(capsys, folder, *words):
    assert execute(["advise", *words, "--json", "--project", str(folder)]) == 0
    document = json.loads(capsys.readouterr().out)
    return document, {view["view"]: view for view in document["views"]}


def test_without_a_run_nothing_is_proposed(example, capsys):
    document, views = advised(capsys, example)
    assert document["measured"]["batches"] == 0
    assert all(view["header"] is None for view in views.values())
    assert views["names"]["remark"] == "nothing is joined, so nothing is asked"
    assert execute(["advise", "--project", str(example)]) == 0
    assert "nothing was measured yet" in capsys.readouterr().out


def test_a_small_relation_that_is_asked_for_again_and_again_is_proposed(example, capsys):
    measure(example, rows=100)
    document, views = advised(capsys, example, "sales")
    assert list(views) == ["sales"]
    assert document["measured"]["transactions"] == 15
    found = {each["relation"]: each for each in views["sales"]["relations"]}
    assert found["crm.customers"]["advice"] == "keep"
    assert found["crm.customers"]["measured"]["queries"] == 12
    assert found["shop.orders"]["advice"] == "ask"
    assert views["sales"]["header"] == "-- keep: crm.customers"
    assert execute(["advise", "sales", "--project", str(example)]) == 0
    text = capsys.readouterr().out
    assert "write above the query:  -- keep: crm.customers" in text
    assert "asked for 12 times: 100 rows, 3.9 KiB; 2 rows changed" in text


def test_what_was_hardly_asked_for_is_not(example, capsys):
    measure(example, rows=2)
    _, views = advised(capsys, example, "sales")
    assert views["sales"]["header"] is None


def test_a_view_that_follows_the_advice_is_kept_so_and_explained_so(example, capsys):
    measure(example, rows=100)
    file = example / "views" / "sales.sql"
    file.write_text("-- keep: crm.customers\n" + file.read_text())
    _, views = advised(capsys, example, "sales")
    assert views["sales"]["header"] is None
    assert execute(["explain", "sales", "--json", "--project", str(example)]) == 0
    (sales,) = json.loads(capsys.readouterr().out)["views"]
    asked = {change["relation"]: change["questions"] for change in sales["changes"]}
    assert asked == {"shop.orders": 1, "shop.products": 1, "crm.customers": 2}
    hops = [hop for change in sales["changes"] for hop in change["asks"]]
    assert {h["source"] for h in hops if h["relation"] == "crm.customers"} == {"the warehouse"}
    assert [c["relation"] for c in sales["choices"] if c["kept"]] == ["crm.customers"]
    assert [each["store"] for each in sales["keeps"]] == ["keep.crm.customers"]
    assert execute(["explain", "sales", "--project", str(example)]) == 0
    text = capsys.readouterr().out
    assert "crm.customers, kept now" in text
    assert "ask: up to 1 question a change, rows by key, about 56 bytes a row" in text


def test_views_that_read_no_copies_say_so(example, capsys):
    (example / "views" / "anew.sql").write_text(
        "-- consistency: strong\n-- refresh: full\nSELECT c.name FROM crm.customers c"
    )
    _, views = advised(capsys, example, "anew")
    assert views["anew"]["remark"] == "it is kept by recompute, which reads no copies"


def test_an_unknown_view_is_a_slip(example, capsys):
    assert execute(["advise", "sale", "--project", str(example)]) == 2
    assert "[unknown-view]" in capsys.readouterr().err


def test_sizes_are_read_at_a_glance():
    assert [size(n) for n in (0, 900, 2048, 5 << 20, 3 << 30)] == [
        "0 bytes", "900 bytes", "2.0 KiB", "5.0 MiB", "3.0 GiB",
    ]  # fmt: skip
