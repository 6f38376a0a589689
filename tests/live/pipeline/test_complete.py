"""Writers on PostgreSQL, MariaDB and SQLite at once: every state of every view is right."""

from __future__ import annotations

import pytest

from live.pipeline.recording import Recording, view_states
from live.pipeline.traffic import Traffic, fill, write_copies
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = """
-- consistency: complete
SELECT o.o_id, o.qty, c.name, r.rname
FROM shop.orders o
JOIN crm.customers c ON o.cust_id = c.cust_id
JOIN geo.regions r ON c.region_id = r.region_id
WHERE o.qty > 2
"""
NOTED = """
SELECT o.o_id, n.note, c.name
FROM shop.orders o JOIN shop.notes n ON o.o_id = n.o_id, crm.customers c
WHERE c.cust_id = o.cust_id AND c.name <> 'customer 3'
"""
PLACES = """
SELECT a.rname AS here, b.rname AS there FROM geo.regions a, geo.regions b
WHERE a.region_id < b.region_id
UNION ALL
SELECT c.name, r.rname FROM crm.customers c JOIN geo.regions r USING (region_id)
"""


def test_every_state_of_three_views_over_three_databases_is_complete(shop, running_spark):
    fill(shop)
    for name, text in {"sales": SALES, "noted": NOTED, "places": PLACES}.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "notes", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        recording = Recording(pipeline)
        books = shop.witness(recording.definitions)
        pipeline.load()
        traffic = Traffic(shop, writers=4, transactions=40).start()
        while not traffic.is_over:
            recording.add(pipeline.cycle(0.2))
        traffic.join()
        recording.catch_up()
        warehouse = keeper.warehouse()
        assert warehouse.latest().last_txn == len(recording.arrivals)
        assert sum(books.transactions.values()) > 100
        found = verdict(warehouse, recording.definitions, books)
        assert found.meets(Level.COMPLETE), found.problem
        for view in pipeline.views:
            audit = audit_view(pipeline, warehouse, view)
            assert audit.is_equal, audit


def test_transfers_inside_a_source_never_change_the_total_in_any_state(shop, running_spark):
    """The bank test: money moves inside each bank, and from one bank to the other."""
    shop.run("shop", "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)")
    shop.run("crm", "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)")
    for bank in ("shop", "crm"):
        rows = ", ".join(f"({n}, 100)" for n in range(10))
        shop.run(bank, f"INSERT INTO accounts VALUES {rows}")
    shop.write_view(
        "balances",
        "SELECT 'shop' AS bank, id, balance FROM shop.accounts "
        "UNION ALL SELECT 'crm', id, balance FROM crm.accounts",
    )
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        writers = {bank: shop.databases[bank].writer() for bank in ("shop", "crm")}
        sent = 0
        for turn in range(40):
            for writer in writers.values():
                writer.begin()
                _move(writer, turn % 10, -7)
                _move(writer, (turn + 3) % 10, +7)
                writer.commit()
            if turn % 4 == 0:  # across two banks: two transactions, first out, then in
                for bank, amount in (("shop", -5), ("crm", +5)):
                    writers[bank].begin()
                    _move(writers[bank], turn % 10, amount)
                    writers[bank].commit()
                sent += 5
            if turn % 10 == 0:
                pipeline.cycle(0.2)
        targets = pipeline.committed_now()
        while not pipeline.has_applied(targets):
            pipeline.cycle(0.2)
        states = view_states(keeper.warehouse(), pipeline.views["balances"].definition)
        assert len(states) == 40 * 2 + 10 * 2 + 1
        on_the_way = set()
        for state in states:
            totals = {"shop": 0, "crm": 0}
            for (bank, _, balance), count in state:
                totals[bank] += balance * count
            # Each bank alone is right in every state; together they are, but for money on its way.
            assert totals["shop"] in range(1000 - sent, 1001, 5)
            assert totals["crm"] in range(1000, 1001 + sent, 5)
            on_the_way.add(2000 - totals["shop"] - totals["crm"])
        assert sum(b * c for (_, _, b), c in states[-1]) == 2000
        for writer in writers.values():
            writer.close()


def _move(writer, account: int, amount: int) -> None:
    writer.run("UPDATE accounts SET balance = balance + ? WHERE id = ?", amount, account)


def test_a_restarted_keeper_goes_on_where_the_ledger_stands(shop, running_spark):
    fill(shop)
    shop.write_view("sales", SALES)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    for round_ in range(3):
        traffic = Traffic(shop, writers=2, transactions=15, first=round_ * 2).start()
        traffic.join()
        with Keeper.open(shop.folder) as keeper:
            report = keeper.run_until_caught_up()
            assert report.transactions > 0
            assert all(audit.is_equal for audit in keeper.audit())
    with Keeper.open(shop.folder) as keeper:
        assert keeper.run_until_caught_up().transactions == 0
