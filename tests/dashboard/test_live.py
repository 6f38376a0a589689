"""The dashboard of a real run: PostgreSQL and SQLite behind it, writers at both.

With ``VIEWKEEPER_SCREENSHOTS=FOLDER`` the pages are photographed into that folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from dashboard.conftest import Troubles, opened
from dashboard.live_scene import ORDERS, LiveScene
from dashboard.looking import photograph
from dashboard.serving import dashboard
from viewkeeper.errors import UsageError
from viewkeeper.spark.java import require_java

pytestmark = pytest.mark.xdist_group("browser")

# A run that goes on takes Spark's time.
RECOVERED_MS, AUDITED_MS = 300_000, 600_000
PAGES = {
    "overview": "/",
    "view": "/views/sales",
    "merge": "/merge",
    "evolution": "/evolution",
    "lab": "/lab",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Iterator[LiveScene]:
    try:
        require_java()
    except UsageError as error:
        pytest.skip(str(error))
    with LiveScene(tmp_path_factory.mktemp("live") / "project") as found:
        yield found


@pytest.fixture
def live_page(scene, browser) -> Iterator:
    troubles = Troubles()
    with opened(browser, troubles) as found:
        yield found
    assert not troubles


def go(page, scene: LiveScene, path: str) -> None:
    page.goto(scene.url.rstrip("/") + path)
    page.wait_for_selector("main[data-moment]")


def transaction(page) -> int:
    expect(page.locator("#pulse")).to_contain_text("transaction")
    return int(re.sub(r"\D", "", page.locator("#pulse").text_content()))


def await_transaction_after(page, number: int) -> None:
    """A digit more or another number: the text is not what it was."""
    expect(page.locator("#pulse")).not_to_have_text(
        f"Live · transaction {number:,}", timeout=RECOVERED_MS
    )
    assert transaction(page) > number


@pytest.mark.parametrize("name", PAGES)
def test_each_page_shows_live_data(scene, live_page, name):
    go(live_page, scene, PAGES[name])
    await_transaction_after(live_page, transaction(live_page))


def test_figures_follow_the_writers(scene, live_page):
    go(live_page, scene, "/")
    rows = live_page.locator("[data-figure='rows-sales']")
    before = rows.text_content()
    expect(rows).not_to_have_text(before)
    for source in ("PostgreSQL", "SQLite"):
        live_page.get_by_text(source).first.wait_for()
    go(live_page, scene, "/views/sales")
    live_page.get_by_role("heading", name="How it is kept").wait_for()
    live_page.get_by_text("A change of shop.customers").wait_for()
    live_page.locator(".chart").first.wait_for()


def test_the_runs_own_table_is_painted(scene, live_page):
    go(live_page, scene, "/merge")
    live_page.get_by_role("heading", name="addresses, contacts, sales").wait_for()
    live_page.locator(".painting .paint").first.wait_for()


def test_every_state_is_a_prefix_of_what_was_written(scene, live_page):
    """Orders are written one by one, so a state with n orders has exactly the first n."""
    go(live_page, scene, "/views/sales")
    # Two in three transactions at least are orders.
    while (newest := transaction(live_page)) < 6:
        await_transaction_after(live_page, newest)
    field = live_page.get_by_label("Transaction", exact=True)
    counts = []
    for number in (newest // 3, newest // 2, newest):
        field.fill(str(number))
        field.press("Enter")
        heading = live_page.get_by_role(
            "heading", name=re.compile(rf"rows at transaction {number:,}$")
        )
        total = int(re.sub(r"\D", "", heading.text_content().split(" rows")[0]))
        document = live_page.request.get(
            f"{scene.url}api/views/sales/rows?as_of={number}&first={total - 1}"
        ).json()
        assert [row["values"][0] for row in document["rows"]] == [total]
        counts.append(total)
    assert ORDERS <= counts[0] <= counts[1] <= counts[2]
    assert counts[0] < counts[2]


def test_a_source_that_goes_away_shows_and_recovers(scene, live_page):
    go(live_page, scene, "/")
    before = transaction(live_page)
    scene.postgres.kill()
    try:
        trouble = live_page.locator(".problem", has_text="shop")
        trouble.wait_for()
        expect(live_page.locator("#pulse")).to_have_attribute(
            "data-state", "bad", timeout=RECOVERED_MS
        )
        # The page stays readable: the other source and all views are there.
        live_page.get_by_role("link", name="addresses", exact=True).wait_for()
        go(live_page, scene, "/views/sales")
        live_page.get_by_role("heading", name="How it is kept").wait_for()
        live_page.get_by_text("A change of shop.customers").wait_for()
        go(live_page, scene, "/")
        live_page.locator(".problem").first.wait_for()
        photograph(live_page, "source-away")
    finally:
        scene.postgres.start()
    go(live_page, scene, "/")
    live_page.locator(".problem").wait_for(state="detached", timeout=RECOVERED_MS)
    expect(live_page.locator("#pulse")).to_have_attribute(
        "data-state", "good", timeout=RECOVERED_MS
    )
    await_transaction_after(live_page, before)


def test_pages_as_they_are_shown_in_the_documentation(scene, live_page):
    go(live_page, scene, "/views/sales")
    live_page.get_by_role("button", name="Compare").click()
    live_page.locator(".difference td").first.wait_for()
    photograph(live_page, "view")
    go(live_page, scene, "/lab")
    for _ in range(17):
        live_page.locator(".lab").get_by_role("button", name="Step forward").click()
    for _ in range(5):
        live_page.locator("#painting").get_by_role("button", name="Step forward").click()
    live_page.get_by_role("button", name="Measure").click()
    live_page.locator(".chart").first.wait_for()
    photograph(live_page, "lab")
    for look in ("light", "dark"):
        live_page.emulate_media(color_scheme=look)
        go(live_page, scene, "/")
        live_page.locator(".flow").wait_for()
        photograph(live_page, f"overview-{look}")
    live_page.set_viewport_size({"width": 390, "height": 800})
    go(live_page, scene, "/")
    photograph(live_page, "overview-phone")


def test_a_dropped_column_waits_for_a_word_and_gets_it(scene, live_page):
    """From the statement at the source to the view without the column, through the page."""
    scene.postgres.run_script("ALTER TABLE customers DROP COLUMN phone;")
    go(live_page, scene, "/evolution")
    change = live_page.locator("li", has_text="contacts")
    expect(change).to_have_attribute("data-status", "pending", timeout=RECOVERED_MS)
    assert "c.phone" in change.locator("pre", has_text="SELECT").first.text_content()
    change.get_by_role("button", name="Approve").click()
    expect(change).to_have_attribute("data-status", "applied", timeout=RECOVERED_MS)
    go(live_page, scene, "/views/contacts")
    live_page.get_by_text("Version 2, since transaction").wait_for(timeout=RECOVERED_MS)
    live_page.get_by_role("button", name="Newest", exact=True).click()
    heads = live_page.locator(".extent th")
    expect(heads).to_have_text(["times", "customer_id", "name"])
    go(live_page, scene, "/")
    await_transaction_after(live_page, transaction(live_page))


def test_a_rename_is_approved(scene, live_page):
    """It waits, the old version stays readable, and what was written meanwhile comes behind it."""
    scene.postgres.run_script("ALTER TABLE customers RENAME COLUMN name TO full_name;")
    go(live_page, scene, "/evolution")
    change = live_page.locator("li[data-status]", has_text="RENAME COLUMN name TO full_name")
    expect(change).to_have_attribute("data-status", "pending", timeout=RECOVERED_MS)
    effect = change.locator(".effect", has_text="View contacts")
    expect(effect).to_contain_text("goes on under other names")
    expect(effect.get_by_label("Before")).to_contain_text("c.name")
    expect(effect.get_by_label("After")).to_contain_text("c.full_name AS name")
    # The page is told of it when it comes to that; the run says it at once.
    stands_at = live_page.request.get(f"{scene.url}api/overview").json()["frontier"]
    newest = scene.newest_order
    while scene.newest_order == newest:
        live_page.wait_for_timeout(50)
    go(live_page, scene, "/views/contacts")
    heads = live_page.locator(".extent th")
    live_page.get_by_role("button", name="Newest", exact=True).click()
    expect(heads).to_have_text(["times", "customer_id", "name"])
    assert live_page.request.get(f"{scene.url}api/overview").json()["frontier"] == stands_at

    go(live_page, scene, "/evolution")
    change.get_by_role("button", name="Approve").click()
    expect(change).to_have_attribute("data-status", "applied", timeout=RECOVERED_MS)
    go(live_page, scene, "/views/contacts")
    live_page.get_by_text("Version 3, since transaction").wait_for(timeout=RECOVERED_MS)
    live_page.get_by_role("button", name="Newest", exact=True).click()
    expect(heads).to_have_text(["times", "customer_id", "name"])
    go(live_page, scene, "/")
    await_transaction_after(live_page, stands_at)


def test_a_view_is_audited_from_its_page(scene, live_page):
    """By the run itself while there is one, at the state it stands at; else by a process of its own."""
    go(live_page, scene, "/views/sales")
    before = transaction(live_page)
    live_page.get_by_role("button", name="Run an audit").click()
    live_page.get_by_text("right at transaction").wait_for(timeout=AUDITED_MS)
    await_transaction_after(live_page, before)
    live_page.goto("about:blank")
    scene.stop_run()
    with dashboard(scene.folder) as server:
        live_page.goto(f"http://127.0.0.1:{server.port}/views/sales")
        live_page.get_by_role("button", name="Run an audit").click()
        live_page.get_by_text("right at transaction").wait_for(timeout=AUDITED_MS)
        live_page.goto("about:blank")
