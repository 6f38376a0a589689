"""Every page in a real browser, over a warehouse whose rows are known and a run that the test plays."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from dashboard.looking import open_page, photograph, serious_faults
from dashboard.serving import dashboard
from dashboard.small_project import HOSTILE, RENAME

pytestmark = pytest.mark.xdist_group("browser")

FIGURE_5 = ["(7, 8)×2", "(5, 6)×2 (7, 8)×2", "(5, 6)×2", "(5, 6)"]


def merge(*rows: dict[str, str]) -> dict:
    """A group of views; each row says the colours of its cells."""
    made = [
        {
            "row": number,
            "txns": [10 * number, 10 * number + 2],
            "cells": {view: {"colour": colour, "state": 0} for view, colour in row.items()},
            "waits_for": [view for view, colour in row.items() if colour == "white"],
        }
        for number, row in enumerate(rows, 4)
    ]
    return {"groups": [{"views": list(rows[0]), "algorithm": "spa", "rows": made}]}


def test_an_empty_project_says_what_to_do(page, project, server):
    open_page(page, server, "/")
    page.get_by_text("never run").first.wait_for()
    page.get_by_role("link", name="people").first.wait_for()
    open_page(page, server, "/merge")
    page.get_by_text("No run is merging views now.").wait_for()
    open_page(page, server, "/evolution")
    page.get_by_text("No schema has changed.").wait_for()


def test_figures_change_as_transactions_are_committed(page, project, server):
    project.tell()
    open_page(page, server, "/")
    rows = page.locator("[data-figure='rows-people']")
    expect(rows).to_have_text("0")
    project.commit(((1, "one", 3),))
    expect(page.locator("[data-figure='rows-people']")).to_have_text("3")
    assert "transaction 1" in page.locator("#pulse").text_content()


def test_focus_stays_where_it_is_while_figures_change(page, project, server):
    project.tell()
    open_page(page, server, "/")
    link = page.get_by_role("link", name="people", exact=True)
    link.focus()
    project.commit(((1, "one", 1),))
    expect(page.locator("[data-figure='rows-people']")).to_have_text("1")
    assert link.evaluate("link => document.activeElement === link")


def test_the_painting_table_paints(page, project, server):
    first, second = {"people": "white", "places": "red"}, {"people": "black", "places": "white"}
    project.tell(merge=merge(first, second))
    open_page(page, server, "/merge")

    def colours() -> list[str]:
        return [c.get_attribute("data-colour") for c in page.locator("tbody .paint").all()]

    assert colours() == ["white", "red", "black", "white"]
    page.get_by_text("waits for people").wait_for()
    page.get_by_role("rowheader", name="40–42").wait_for()
    photograph(page, "merge")
    project.tell(merge=merge({"people": "gray", "places": "gray"}, second))
    page.wait_for_selector(".paint[data-colour='gray'] ~ .paint[data-colour='gray']")
    assert colours() == ["gray", "gray", "black", "white"]
    assert page.get_by_text("waits for people").count() == 0
    page.get_by_text("waits for places").wait_for()


def test_time_travel_shows_the_rows_of_that_time(page, project, server):
    project.commit(
        ((1, "one", 1), (2, "two", 1)), ((1, "one", -1), (1, "uno", 1)), ((3, "tres", 2),)
    )
    open_page(page, server, "/views/people")

    def shown(place: str) -> list[list[str]]:
        return [
            [cell.strip() for cell in row.locator("td").all_text_contents()]
            for row in page.locator(f"{place} tbody tr").all()
        ]

    page.get_by_role("heading", name="4 rows at transaction 3").wait_for()
    page.get_by_label("Transaction", exact=True).fill("1")
    page.get_by_label("Transaction", exact=True).press("Enter")
    page.get_by_role("heading", name="2 rows at transaction 1").wait_for()
    assert shown(".extent") == [["1×", "1", "one"], ["1×", "2", "two"]]
    page.get_by_label("Compare with").fill("3")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="From transaction 3 to 1").wait_for()
    assert shown(".difference") == [["+", "1", "one"], ["−", "1", "uno"], ["− 2×", "3", "tres"]]
    page.get_by_role("button", name="Look at transaction 2").click()
    page.get_by_role("heading", name="2 rows at transaction 2").wait_for()
    assert shown(".extent") == [["1×", "1", "uno"], ["1×", "2", "two"]]


def test_a_hostile_row_shows_as_text(page, project, server):
    project.commit(tuple((number, name, 1) for number, name in HOSTILE.items()))
    open_page(page, server, "/views/people")
    page.get_by_role("heading", name="3 rows at transaction 1").wait_for()
    cells = page.locator(".extent tbody td:nth-child(3)")
    assert cells.nth(0).text_content() == HOSTILE[101]
    assert cells.nth(0).locator("script, img").count() == 0
    assert "1,000,000 characters" in cells.nth(1).text_content()
    # The mark that would turn the text around is told by its name, and the text is isolated.
    assert cells.nth(2).text_content() == "safe U+202E gnp.exe U+200F end"
    assert cells.nth(2).locator("bdi").count() == 1
    assert page.title() == "people · Viewkeeper"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_rename_is_approved(page, project, server):
    project.write("evolution.json", {"changes": [RENAME]})
    open_page(page, server, "/")
    page.get_by_text("1 schema change waiting for your word").wait_for()
    open_page(page, server, "/evolution")
    page.get_by_text("RENAME COLUMN name TO full_name").wait_for()
    assert page.locator(".line-gone").text_content().strip() == "SELECT p.id, p.name"
    assert page.locator(".line-new").text_content().strip() == "SELECT p.id, p.full_name AS name"
    photograph(page, "evolution")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("approved, not applied yet").wait_for()
    assert project.read("decisions.json")["7"]["decision"] == "approve"
    # The keeper does it, and the page follows.
    project.write("evolution.json", {"changes": [RENAME | {"status": "applied"}]})
    project.commit(((1, "one", 1),))
    page.locator("li[data-status='applied']").wait_for()
    assert page.get_by_role("button", name="Approve").count() == 0


def test_a_view_that_waits_for_a_word_has_a_red_mark(page, project, server):
    project.commit(((1, "one", 1),))
    change = {name: RENAME[name] for name in ("id", "source", "relation", "statement", "status")}
    since = "2026-05-01T12:00:00+00:00"
    standing = {"views": {"people": since}, "sources": {"depot": since}}
    project.tell(standing=standing | {"approvals": [change | {"views": ["people"]}]})
    open_page(page, server, "/")
    page.get_by_role("alert").get_by_text("people stands still").wait_for()
    row = page.locator("tr", has=page.get_by_role("link", name="people"))
    row.get_by_text("waits for your word").wait_for()
    assert row.locator("[data-verdict='bad']").count() > 0
    page.get_by_text("0 of 1").first.wait_for()  # views that are well
    open_page(page, server, "/views/people")
    page.get_by_text("it stands still").first.wait_for()
    # The keeper has its word, and the page follows.
    fresh = {"views": {"people": None}, "sources": {}, "approvals": []}
    project.tell(standing=fresh)
    page.get_by_text("it stands still").wait_for(state="detached")


def test_the_lab_steps_through_figure_5(page, server):
    open_page(page, server, "/lab")
    page.get_by_label("Scenario").select_option("sweep-figure-5-concurrent")
    lab = page.locator(".lab")
    lab.get_by_text("sweep reached complete consistency").wait_for()
    forward = lab.get_by_role("button", name="Step forward")
    view = lab.locator("table", has_text="The view now").locator("tbody")
    seen = []
    steps = int(lab.get_by_role("slider", name="Step").get_attribute("max"))
    for _ in range(steps + 1):
        rows = [row.locator("td").all_text_contents() for row in view.locator("tr").all()]
        told = " ".join(f"({', '.join(v)})" + (f"×{n[:-1]}" if n != "1×" else "") for n, *v in rows)
        if not seen or seen[-1] != told:
            seen.append(told)
        forward.click()
    assert seen == FIGURE_5
    assert lab.locator(".states .reached").count() == 4
    lab.get_by_role("button", name="First step").click()
    assert lab.locator(".states .reached").count() == 1


def test_the_lab_goes_with_the_arrow_keys(page, server):
    open_page(page, server, "/lab")
    page.locator(".sequence").focus()
    for key, told in (
        ("ArrowRight", "step 2 of"),
        ("ArrowRight", "step 3 of"),
        ("ArrowLeft", "step 2 of"),
    ):
        page.keyboard.press(key)
        page.locator(".lab .stepper").get_by_text(told).wait_for()


def test_the_same_scenario_under_naive_shows_the_anomaly(page, server):
    open_page(page, server, "/lab")
    page.get_by_label("Protocol").select_option("naive")
    page.get_by_text("naive reached no level of consistency").wait_for()
    page.get_by_text("too many").first.wait_for()


def test_the_lab_shows_a_token_on_its_ring_and_compares(page, server):
    open_page(page, server, "/lab")
    page.get_by_label("Scenario").select_option("random")
    page.get_by_label("Protocol").select_option("ring")
    page.get_by_text("ring reached").wait_for()
    page.locator(".lab").get_by_role("button", name="Last step").click()
    page.locator(".ring .token").wait_for()
    page.get_by_label("What to compare").select_option("staleness")
    page.get_by_role("button", name="Measure").click()
    page.locator(".chart").wait_for()


def test_the_lab_shows_the_newest_choice_although_an_older_answer_comes_later(page, server):
    open_page(page, server, "/lab")
    held = []
    page.route("**/api/lab/run?protocol=sweep*", lambda route: held.append(route))
    page.get_by_label("Scenario").select_option("random")
    page.get_by_label("Protocol").select_option("ring")
    page.get_by_text("ring reached").wait_for()
    assert len(held) == 1
    with page.expect_response("**/api/lab/run?protocol=sweep*") as late:
        held[0].continue_()
    late.value.finished()
    page.evaluate("() => new Promise((shown) => setTimeout(shown))")  # its turn has come
    assert page.get_by_text("ring reached").is_visible()


def test_painting_in_the_lab(page, server):
    open_page(page, server, "/lab")
    part = page.locator("#painting")
    part.get_by_role("button", name="Last step").click()
    # Example 3 ends with U1 and U3 applied, V1 and V2 together.
    colours = [c.get_attribute("data-colour") for c in part.locator("tbody .paint").all()]
    assert set(colours) <= {"gray", "black"}
    part.get_by_text("commit").first.wait_for()


def test_the_token_is_asked_for_and_kept_out_of_the_address(page, project, troubles):
    with dashboard(project.folder, "secret of this test") as locked:
        page.goto(f"http://127.0.0.1:{locked.port}/")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("this is not the token").wait_for()
        troubles.clear()  # the browser tells of the refused request
        page.goto("about:blank")
        page.goto(locked.url)
        page.get_by_role("heading", name="Overview").wait_for()
        assert "token" not in page.url
        page.goto("about:blank")


@pytest.mark.parametrize("path", ["/", "/views/people", "/merge", "/evolution", "/lab"])
@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_nobody_is_shut_out(examined_page, project, server, path, look):
    page = examined_page
    project.commit(((1, "one", 1), (2, None, 2)))
    project.tell(
        merge=merge({"people": "red", "places": "white"}, {"people": "gray", "places": "black"})
    )
    project.write("evolution.json", {"changes": [RENAME]})
    if look == "phone":
        page.set_viewport_size({"width": 360, "height": 740})
    else:
        page.emulate_media(color_scheme=look)
    open_page(page, server, path)
    assert serious_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_checker_of_accessibility_finds_faults(examined_page, server):
    """It could not fail otherwise."""
    page = examined_page
    open_page(page, server, "/")
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    assert serious_faults(page) != []


def test_everything_can_be_reached_with_the_keyboard(page, project, server):
    open_page(page, server, "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"people", "Freshness", "Lag", "Words on this page"} <= reached
