"""A periodic view live: it holds back what it reads, and nothing else of its group."""

from __future__ import annotations

import time

import pytest

from live.pipeline.recording import Recording
from live.pipeline.traffic import fill, write_copies
from viewkeeper.live.auditing.audit import audited
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# Customers tie all of them: every view is of one group.
VIEWS = {
    "hourly": "-- consistency: strong\n-- protocol: periodic\n-- every: 1 h\n"
    "SELECT c.name, r.rname FROM crm.customers c JOIN geo.regions r ON c.region_id = r.region_id",
    "sold": "SELECT o.o_id, c.name FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id",
    "big": "SELECT o_id, qty FROM shop.orders WHERE qty > 3",
}
# The same, but that the periodic view reads orders, of which its condition selects some.
LARGE = VIEWS | {
    "hourly": "-- consistency: strong\n-- protocol: periodic\n-- every: 1 h\n"
    "SELECT o.o_id, c.name FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id "
    "WHERE o.qty > 100",
}
UPDATES = 20
PATIENCE_SECONDS = 300


def test_what_a_periodic_view_does_not_read_does_not_wait_for_it(shop, running_spark, capsys):
    fill(shop)
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            recording = Recording(pipeline)
            books = shop.witness(recording.definitions)
            pipeline.load()
            group = pipeline.group_of("hourly")
            assert sorted(group.scope.views) == sorted(pipeline.views)
            # Read by the periodic view: it waits. Of customers, everything would wait that changes them, or orders.
            shop.run("geo", "UPDATE regions SET rname = 'north' WHERE region_id = 1")
            waited = pipeline.committed_now()["geo"]
            seconds = []
            for number in range(UPDATES):
                shop.run("shop", f"INSERT INTO orders VALUES ({9000 + number}, 1, 9)")
                target, began = pipeline.committed_now()["shop"], time.monotonic()
                compare = pipeline.sources["shop"].compare_positions
                while compare(group.reached["shop"], target) < 0:
                    assert time.monotonic() < began + PATIENCE_SECONDS
                    recording.add(pipeline.cycle(0.02))
                seconds.append(time.monotonic() - began)
            with capsys.disabled():
                seconds.sort()
                middle, last = seconds[len(seconds) // 2], seconds[-1]
                print(f"visible after {middle:.2f} s, at most {last:.2f} s")  # noqa: T201
            shown = keeper.warehouse().read_arrow("big").column("o_id").to_pylist()
            assert {*range(9000, 9000 + UPDATES)} <= {*shown}
            compare = pipeline.sources["geo"].compare_positions
            assert compare(group.reached["geo"], waited) < 0
            assert group.jobs.waiting or group.intake.integrator.pending
            # An audit reads the sources without what waits.
            warehouse = keeper.warehouse()
            for view in pipeline.views:
                assert audited(pipeline, warehouse, view).is_equal
        keeper.run_until_caught_up()
        found = verdict(keeper.warehouse(), recording.definitions, books)
        assert found.meets(Level.STRONG), found.problem
        assert all(audit.is_equal for audit in keeper.audit())


def test_what_a_periodic_view_does_not_select_does_not_wait_for_it(shop, running_spark):
    fill(shop)
    for name, text in LARGE.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "customers")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            recording = Recording(pipeline)
            books = shop.witness(recording.definitions)
            pipeline.load()
            group = pipeline.group_of("hourly")
            compare = pipeline.sources["shop"].compare_positions

            def show(statement: str) -> None:
                shop.run("shop", statement)
                target, until = (
                    pipeline.committed_now()["shop"],
                    time.monotonic() + PATIENCE_SECONDS,
                )
                while compare(group.reached["shop"], target) < 0:
                    assert time.monotonic() < until
                    recording.add(pipeline.cycle(0.02))

            show("INSERT INTO orders VALUES (9000, 1, 9)")
            show("UPDATE orders SET qty = 10 WHERE o_id = 9000")
            show("DELETE FROM orders WHERE o_id = 9000")
            assert not group.jobs.waiting
            # One that comes to be selected waits, and so does what its source commits later.
            shop.run("shop", "INSERT INTO orders VALUES (9001, 1, 9)")
            show("INSERT INTO orders VALUES (9002, 1, 9)")
            shop.run("shop", "UPDATE orders SET qty = 200 WHERE o_id = 9001")
            waited = pipeline.committed_now()["shop"]
            until = time.monotonic() + PATIENCE_SECONDS
            while not group.jobs.waiting and not group.intake.integrator.pending:
                assert time.monotonic() < until
                recording.add(pipeline.cycle(0.02))
            assert compare(group.reached["shop"], waited) < 0
        keeper.run_until_caught_up()
        found = verdict(keeper.warehouse(), recording.definitions, books)
        assert found.meets(Level.STRONG), found.problem
        assert keeper.warehouse().read_arrow("hourly").column("o_id").to_pylist() == [9001]
        assert all(audit.is_equal for audit in keeper.audit())
