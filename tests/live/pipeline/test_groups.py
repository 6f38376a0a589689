"""Groups of views live: each moves as one, none waits for another, and a transaction may unite them."""

from __future__ import annotations

import contextlib
import io
import json
import threading

import pytest

from live.pipeline.recording import Recording, view_states
from live.pipeline.traffic import Traffic, fill, write_copies
from viewkeeper.cli import execute
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.live.managers import threads
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
SELECT o.o_id, o.qty, c.name, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
"""
BIG = "SELECT o_id, cust_id, qty FROM shop.orders WHERE qty > 3"
LIVING = """
SELECT c.name, r.rname FROM crm.customers c JOIN geo.regions r ON c.region_id = r.region_id
"""
NEIGHBOURS = """
SELECT a.rname AS here, b.rname AS there
FROM geo.regions a, geo.regions b WHERE a.region_id + 1 = b.region_id
"""
PATIENCE_SECONDS = 600
VIEWS = {"sales": SALES, "big": BIG, "living": LIVING, "neighbours": NEIGHBOURS}


def slow_down(monkeypatch, view: str, before_each_job) -> None:
    """Let something happen in one view's manager before each of its jobs."""
    do = threads.ManagerThread._do

    def slowly(thread, job):
        if thread.view == view:
            before_each_job()
        do(thread, job)

    monkeypatch.setattr(threads.ManagerThread, "_do", slowly)


def test_one_slow_view_of_four_leaves_every_epoch_consistent(shop, running_spark, monkeypatch):
    slow_down(monkeypatch, "living", lambda: threading.Event().wait(0.4))
    fill(shop)
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        recording = Recording(pipeline)
        books = shop.witness(recording.definitions)
        pipeline.load()
        assert [sorted(group.scope.views) for group in pipeline.groups] == [sorted(pipeline.views)]
        warehouse, first = keeper.warehouse(), 0
        # On a machine that is busy few epochs may do for all of it: then more is written.
        while warehouse.latest().epoch <= 3:
            traffic = Traffic(shop, 3, transactions=40, first=first, pause_seconds=0.1).start()
            while not traffic.is_over:
                recording.add(pipeline.cycle(0.2))
            traffic.join()
            recording.catch_up()
            first += 3
        found = verdict(warehouse, recording.definitions, books)
        assert found.meets(Level.COMPLETE), found.problem
        for view in pipeline.views:
            assert audit_view(pipeline, warehouse, view).is_equal


def test_a_slow_view_does_not_stop_views_of_another_group(shop, running_spark, monkeypatch):
    let_go = threading.Event()
    slow_down(monkeypatch, "living", lambda: let_go.wait(PATIENCE_SECONDS))
    fill(shop)
    shop.write_view("living", LIVING)
    shop.write_view("big", BIG)
    write_copies(shop, "orders", "customers", "regions")
    groups = {"living": {"living", "customers_now", "regions_now"}, "big": {"big", "orders_now"}}
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        recordings = {name: Recording(pipeline, views) for name, views in groups.items()}
        books = shop.witness(view.definition for view in pipeline.views.values())
        pipeline.load()
        assert len(pipeline.groups) == 2
        shop.run("crm", "UPDATE customers SET region_id = 0 WHERE cust_id = 5")
        shop.run("shop", *(f"INSERT INTO orders VALUES ({n}, 1, 9)" for n in range(500, 520)))
        big = pipeline.group_of("big")
        targets = pipeline.committed_now()

        def go_on(until) -> None:
            while not until():
                record(pipeline.cycle(0.2))
            while (cycle := pipeline.cycle(0)) is not None:
                record(cycle)

        def record(cycle) -> None:
            for recording in recordings.values():
                recording.add(cycle)

        compare = pipeline.sources["shop"].compare_positions
        go_on(lambda: compare(big.reached["shop"], targets["shop"]) >= 0)
        warehouse = keeper.warehouse()
        # All of it is visible in one view while the other has not moved.
        assert len(recordings["big"].arrivals) == 20
        assert not recordings["living"].arrivals
        let_go.set()
        go_on(lambda: pipeline.has_applied(targets))
        assert len(recordings["living"].arrivals) == 1
        for recording in recordings.values():
            found = verdict(warehouse, recording.definitions, books)
            assert found.meets(Level.COMPLETE), found.problem
        # The ledger's positions are those that every view has reached; a restart begins there.
        latest = warehouse.latest()
        assert latest.views["big"].positions.keys() == {"shop"}
        assert latest.positions.keys() == {"shop", "crm", "geo"}


def test_a_transaction_over_two_groups_makes_them_one(shop, running_spark):
    fill(shop)
    shop.write_view("big", BIG)
    shop.write_view("noted", "SELECT o_id, note FROM shop.notes")
    write_copies(shop, "orders", "notes")
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        recording = Recording(pipeline)
        books = shop.witness(recording.definitions)
        pipeline.load()
        assert len(pipeline.groups) == 2
        writer = shop.databases["shop"].writer()
        for turn in range(5):
            writer.begin()
            writer.run("INSERT INTO orders VALUES (?, ?, ?)", 700 + turn, 1, 9)
            writer.run("INSERT INTO notes VALUES (?, ?)", 700 + turn, "both or none")
            shop.commit("shop", writer)
        writer.close()
        recording.catch_up()
        assert [sorted(group.scope.views) for group in pipeline.groups] == [sorted(pipeline.views)]
        warehouse = keeper.warehouse()
        found = verdict(warehouse, recording.definitions, books)
        assert found.meets(Level.COMPLETE), found.problem
        per_view = [
            view_states(warehouse, pipeline.views[name].definition) for name in ("big", "noted")
        ]
        for big, noted in zip(*per_view, strict=True):
            ordered = {row[0] for row, _ in big if row[0] >= 700}
            assert ordered == {row[0] for row, _ in noted if row[0] >= 700}
    # The next run knows it from the ledger, before it has seen any transaction.
    with Keeper.open(shop.folder) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        assert [sorted(group.scope.views) for group in pipeline.groups] == [sorted(pipeline.views)]


def test_a_view_that_joins_two_groups_starts_where_both_have_come_to(shop, running_spark):
    fill(shop)
    shop.write_view("big", BIG)
    shop.write_view("living", LIVING)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        Traffic(shop, writers=2, transactions=10).start().join()
        # Only one of the groups comes to see this: they stand at different cuts afterwards.
        with keeper.pipeline() as pipeline:
            pipeline.load()
            with pipeline.paused("living"):
                while not pipeline.has_applied({"shop": pipeline.committed_now()["shop"]}):
                    pipeline.cycle(0.1)
    shop.write_view("sales", SALES)
    Traffic(shop, writers=2, transactions=10, first=2).start().join()
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        with keeper.pipeline() as pipeline:
            assert set(pipeline.views) == {"big", "living", "sales"}
            pipeline.load()
            assert len(pipeline.groups) == 1
        assert all(audit.is_equal for audit in keeper.audit())


AGREE = """
SELECT COUNT(*) AS wrong
FROM balances b
LEFT JOIN (SELECT account, SUM(amount) AS booked FROM bookings GROUP BY account) e
ON b.id = e.account
WHERE b.balance <> COALESCE(e.booked, 0)
"""


def command(*words) -> tuple[int, dict]:
    """A command line in this process, and the document that it writes."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = execute([*map(str, words), "--json"])
    return code, json.loads(out.getvalue())


def test_balances_and_their_totals_agree_in_every_state_of_two_views(shop, running_spark):
    """The bank across views: entries of the ledger and balances are written in one transaction."""
    shop.run("shop", "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)")
    shop.run("shop", "CREATE TABLE entries (account BIGINT, amount BIGINT)")
    shop.run("shop", "INSERT INTO accounts VALUES " + ", ".join(f"({n}, 0)" for n in range(5)))
    shop.write_view("balances", "SELECT id, balance FROM shop.accounts")
    shop.write_view("bookings", "SELECT account, amount FROM shop.entries")
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        writer = shop.databases["shop"].writer()
        for turn in range(60):
            writer.begin()
            for account, amount in ((turn % 5, 7), ((turn + 2) % 5, -7)):
                writer.run("INSERT INTO entries VALUES (?, ?)", account, amount)
                writer.run(
                    "UPDATE accounts SET balance = balance + ? WHERE id = ?", amount, account
                )
            writer.commit()
        writer.close()
        targets = pipeline.committed_now()
        warehouse = keeper.warehouse()
        while not pipeline.has_applied(targets):
            # Whenever somebody asks for both, they are at one state.
            code, found = command("query", AGREE, "--project", shop.folder)
            assert (code, found["rows"]) == (0, [[0]])
            pipeline.cycle(0.2)
        code, found = command("history", "--project", shop.folder)
        newest = found["epochs"][0]
        assert newest["views"]["balances"]["positions"] == newest["positions"]
        per_view = [
            view_states(warehouse, pipeline.views[name].definition)
            for name in ("balances", "bookings")
        ]
        assert len(per_view[0]) == 61
        for balances, bookings in zip(*per_view, strict=True):
            booked = dict.fromkeys(range(5), 0)
            for (account, amount), count in bookings:
                booked[account] += amount * count
            assert {row[0]: row[1] for row, _ in balances} == booked
