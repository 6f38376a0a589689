"""Rich views live: groups, DISTINCT, outer and anti joins, views over views; every state is right."""

from __future__ import annotations

import pytest

from live.pipeline.recording import Recording
from live.pipeline.traffic import Traffic, fill, write_copies
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = {
    "by_region": """
        SELECT r.rname, COUNT(*) AS orders, SUM(o.qty) AS qty, MIN(o.qty) AS least, MAX(o.o_id) AS last
        FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
        JOIN geo.regions r ON c.region_id = r.region_id
        GROUP BY r.rname HAVING COUNT(*) > 3""",
    "total": "SELECT COUNT(*) AS orders, AVG(qty) AS mean FROM shop.orders WHERE qty > 2",
    # A quotient of integers is a double, and only a sum of decimals is kept from changes.
    "eighths": """
        SELECT cust_id, SUM(CAST(qty / 8 AS DECIMAL(12, 2))) AS eighths,
        SUM(CAST(concat(CAST(qty AS STRING), '.5') AS DECIMAL(12, 1))) AS halves,
        MAX(CAST(concat('2020-', CAST(1 + qty % 12 AS STRING)) AS DATE)) AS month
        FROM shop.orders GROUP BY cust_id""",
    "buyers": """
        SELECT DISTINCT c.name FROM crm.customers c JOIN shop.orders o ON o.cust_id = c.cust_id""",
    "with_notes": """
        SELECT o.o_id, o.qty, n.note FROM shop.orders o LEFT JOIN shop.notes n ON o.o_id = n.o_id""",
    "idle": """
        SELECT c.cust_id, c.name FROM crm.customers c
        WHERE NOT EXISTS (SELECT 1 FROM shop.orders o WHERE o.cust_id = c.cust_id AND o.qty > 3)""",
}

COPIES = {"orders_now", "notes_now", "customers_now", "regions_now"}


def test_every_state_of_rich_views_is_right_and_so_it_is_after_a_restart(shop, running_spark):
    fill(shop)
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "notes", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            recording = Recording(pipeline)
            books = shop.witness(recording.definitions)
            pipeline.load()
            for first in (0, 2):
                traffic = Traffic(shop, writers=2, transactions=25, first=first).start()
                while not traffic.is_over:
                    recording.add(pipeline.cycle(0.2))
                traffic.join()
                recording.catch_up()
            found = verdict(keeper.warehouse(), recording.definitions, books)
            assert found.meets(Level.COMPLETE), found.problem
            assert sum(books.transactions.values()) > 50
        # What is kept beside the views is read back from the warehouse.
        Traffic(shop, writers=2, transactions=10, first=4).start().join()
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        assert set(keeper.warehouse().snapshot().views) == {*VIEWS, *COPIES}
