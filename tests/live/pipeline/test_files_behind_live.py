"""Files that lag behind their views, beside a run and after it: understood, written, or named as bad.

And what a project knows about replacements, through renames, restarts and tables that are not there.
"""

from __future__ import annotations

import pytest

from live.pipeline.test_rebuild import BackgroundRun, command
from viewkeeper.errors import UsageError
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
-- consistency: strong
SELECT o.o_id, c.name
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
"""
BIG = "SELECT o_id FROM shop.orders WHERE cust_id > 1"
KNOWLEDGE = """
[[knowledge.replacements]]
relation = "crm.customers"
by = "shop.party"
containment = "equal"
attributes = { cust_id = "party_id", name = "label" }

[[knowledge.replacements]]
relation = "shop.orders"
by = "shop.spare"
attributes = { o_id = "id" }
"""


@pytest.fixture
def project(shop):
    shop.run(
        "shop",
        "CREATE TABLE orders (o_id bigint PRIMARY KEY, cust_id bigint)",
        "INSERT INTO orders SELECT n, n % 5 FROM generate_series(1, 50) n",
        "CREATE TABLE spare (id bigint PRIMARY KEY)",
    )
    people = ", ".join(f"({n}, 'customer {n}')" for n in range(5))
    shop.run(
        "crm",
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50))",
        f"INSERT INTO customers VALUES {people}",
    )
    shop.run("geo", "CREATE TABLE places (p_id INTEGER PRIMARY KEY)")
    shop.write_view("sales", SALES)
    shop.write_view("big", BIG)
    shop.write_view("places", "SELECT p_id FROM geo.places")
    file = shop.folder / "viewkeeper.toml"
    file.write_text(file.read_text() + KNOWLEDGE)
    return shop


def commands(shop, *names: str) -> dict[str, tuple[int, dict]]:
    return {name: command(name, "--project", str(shop.folder)) for name in names}


def test_a_lagging_file_is_understood_beside_a_run_and_a_bad_one_harms_no_other(
    project, running_spark
):
    shop, folder = project, str(project.folder)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    with BackgroundRun(shop.folder) as run:
        run.await_event("merge")
        shop.run("crm", "ALTER TABLE customers RENAME COLUMN name TO full_name")
        run.await_event("schema_changed")
        shop.run("crm", "RENAME TABLE customers TO clients")
        run.await_event("schema_changed")
        # An edit of a mere header, in a file that still has the old names.
        shop.write_view("sales", SALES.replace("strong", "convergent"))
        code, told = command("reload", "--project", folder)
        assert (code, sorted(told["views"])) == (0, ["big", "places", "sales"]), told
        shop.run("crm", "UPDATE clients SET full_name = 'first' WHERE cust_id = 1")
        run.await_change("sales")
        # What is refused changes nothing, and the view goes on as it was.
        shop.write_view("sales", SALES.replace("c.name", "c.nothing"))
        code, told = command("reload", "--project", folder)
        assert (code, told["error"]["code"]) == (1, "unknown-relation"), told
        shop.run("crm", "UPDATE clients SET full_name = 'second' WHERE cust_id = 1")
        run.await_change("sales")
        for name, (code, document) in commands(shop, "check", "explain", "advise").items():
            bad = document.get("bad") or {
                v["view"]: v["error"] for v in document["views"] if v["error"]
            }
            assert (code, list(bad)) == (1, ["sales"]), (name, document)
        _, audited = command("audit", "--project", folder)
        assert {v["view"]: v["verdict"] for v in audited["views"]} == {
            "sales": "equal",
            "big": "equal",
            "places": "equal",
        }
    assert run.error is None
    # A run that starts with the bad file keeps the others, and says which one it does not.
    shop.run("shop", "INSERT INTO orders VALUES (100, 4)")
    events: list[dict] = []
    with Keeper.open(shop.folder) as keeper:
        with pytest.raises(UsageError) as caught:
            keeper.run(until_caught_up=True, on_event=lambda event: events.append(event.as_dict()))
        assert caught.value.code.startswith("unknown-")
        stopped = next(event for event in events if event["event"] == "views_stopped")
        assert stopped["views"] == ["sales"]
        warehouse = keeper.warehouse(with_spark=False)
        assert 100 in warehouse.read_arrow("big")["o_id"].to_pylist()
        assert "second" in warehouse.read_arrow("sales")["name"].to_pylist()
    shop.write_view("sales", SALES)
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert 100 in keeper.warehouse(with_spark=False).read_arrow("sales")["o_id"].to_pylist()
    assert {name: code for name, (code, _) in commands(shop, "check", "explain").items()} == {
        "check": 0,
        "explain": 0,
    }
    # The file is brought up to date in its user's words; then there is nothing to fill or to write.
    code, told = command("evolve", "--write", "--project", folder)
    assert (code, [each["view"] for each in told["written"]]) == (0, ["sales"]), told
    text = (shop.folder / "views" / "sales.sql").read_text()
    assert text == SALES.replace("c.name", "c.full_name AS name").replace("customers", "clients")
    assert "+SELECT o.o_id, c.full_name AS name" in told["written"][0]["diff"]
    code, told = command("evolve", "--write", "--project", folder)
    assert (code, told["written"], told["left"]) == (0, [], {})
    with Keeper.open(shop.folder) as keeper:
        assert "loading" not in {event["event"] for event in caught_up(keeper)}
        assert all(audit.is_equal for audit in keeper.audit())


def caught_up(keeper: Keeper) -> list[dict]:
    events: list[dict] = []
    keeper.run(until_caught_up=True, on_event=lambda event: events.append(event.as_dict()))
    return events


def test_knowledge_outlives_renames_restarts_and_tables_that_are_not_there(project, running_spark):
    shop = project
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        # One of the tables that it names is not there yet, and ends nothing.
        (note,) = keeper.knowledge.notes
        assert "shop.party" in note
        keeper.run_until_caught_up()
        shop.run("crm", "ALTER TABLE customers RENAME COLUMN name TO full_name")
        shop.run("crm", "RENAME TABLE customers TO clients")
        keeper.run_until_caught_up()
    # The other one goes, and the next start goes on; what was missing appears.
    shop.run("shop", "DROP TABLE spare")
    shop.run(
        "shop",
        "CREATE TABLE party (party_id bigint PRIMARY KEY, label text)",
        "INSERT INTO party SELECT n, 'customer ' || n FROM generate_series(0, 4) n",
    )
    with Keeper.open(shop.folder) as keeper:
        # Nobody records its changes yet: it can't be used, and harms no view.
        assert "shop.party" not in {str(name) for name in keeper.evolution.watched(keeper.views)}
        keeper.run_until_caught_up()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        (note,) = keeper.knowledge.notes
        assert "shop.spare" in note
        assert "shop.party" in {str(name) for name in keeper.evolution.watched(keeper.views)}
        keeper.run_until_caught_up()
    # A rename, a restart, a drop: the file still speaks of crm.customers.
    shop.run("crm", "DROP TABLE clients")
    with Keeper.open(shop.folder) as keeper:
        events = caught_up(keeper)
        changed = [event for event in events if event["event"] == "schema_changed"]
        effects = {e["view"]: e["effect"] for event in changed for e in event["effects"]}
        assert effects == {"sales": "synchronized"}
        shop.run("shop", "UPDATE party SET label = 'the new one' WHERE party_id = 1")
        keeper.run_until_caught_up()
        assert "the new one" in keeper.warehouse().read_arrow("sales")["name"].to_pylist()
        assert all(audit.is_equal for audit in keeper.audit())


def test_a_reload_reads_the_knowledge_and_a_rebuild_brings_a_retired_view_back(
    project, running_spark
):
    shop, folder = project, str(project.folder)
    file = shop.folder / "viewkeeper.toml"
    without = file.read_text().replace(KNOWLEDGE, "")
    file.write_text(without)
    shop.run(
        "shop",
        "CREATE TABLE party (party_id bigint PRIMARY KEY, label text)",
        "INSERT INTO party SELECT n, 'customer ' || n FROM generate_series(0, 4) n",
    )
    with BackgroundRun(shop.folder, allow_setup=True) as run:
        run.await_event("merge")
        file.write_text(without + '\n[[knowledge.replacements]]\nrelation = "crm.customers"\n')
        code, told = command("reload", "--project", folder)
        assert (code, told["error"]["code"]) == (1, "bad-knowledge"), told
        file.write_text(without + KNOWLEDGE)
        code, told = command("reload", "--project", folder)
        assert (code, sorted(told["views"])) == (0, ["big", "places", "sales"]), told
        shop.run("crm", "DROP TABLE customers")
        changed = run.await_event("schema_changed")
        assert [e["effect"] for e in changed["effects"]] == ["synchronized"]
        # What stood for it goes too, with nothing left to stand for that: retired, for a true reason.
        shop.run("shop", "DROP TABLE party")
        changed = run.await_event("schema_changed")
        assert [(e["view"], e["effect"]) for e in changed["effects"]] == [("sales", "retired")]
        code, told = command("rebuild", "sales", "--project", folder)
        assert code == 1, told
        code, told = command("check", "--project", folder)
        assert any("sales was retired" in note for note in told["notes"]), told
        shop.run(
            "crm",
            "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50))",
            "INSERT INTO customers VALUES (1, 'back again'), (2, 'too')",
        )
        code, told = command("rebuild", "sales", "--project", folder)
        assert (code, told["views"]) == (0, ["sales"]), told
        shop.run("crm", "UPDATE customers SET name = 'and kept' WHERE cust_id = 2")
        run.await_change("sales")
        _, audited = command("audit", "--project", folder)
        assert {v["view"]: v["verdict"] for v in audited["views"]} == {
            "sales": "equal",
            "big": "equal",
            "places": "equal",
        }
    assert run.error is None
