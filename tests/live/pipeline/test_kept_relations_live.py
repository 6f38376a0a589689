"""Copies of relations live: their sources are not asked, and every state is right, also later on."""

from __future__ import annotations

import pytest

from live.pipeline.recording import Recording
from live.pipeline.traffic import Traffic, fill, write_copies
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = {
    # Customers and regions are here: only orders are asked for, and that of one source.
    "sales": """
        -- keep: crm.customers, geo.regions
        SELECT o.o_id, o.qty, c.name, r.rname FROM shop.orders o
        JOIN crm.customers c ON o.cust_id = c.cust_id JOIN geo.regions r ON c.region_id = r.region_id""",
    "by_region": """
        -- keep: crm.customers, geo.regions
        SELECT r.rname, COUNT(c.cust_id) AS customers, MIN(c.name) AS first
        FROM geo.regions r LEFT JOIN crm.customers c ON c.region_id = r.region_id GROUP BY r.rname""",
    "idle": """
        -- keep: crm.customers
        SELECT c.cust_id, c.name FROM crm.customers c
        WHERE NOT EXISTS (SELECT 1 FROM shop.orders o WHERE o.cust_id = c.cust_id AND o.qty > 3)""",
}


class Asking(Recording):
    """Adds up the questions to each source."""

    def __init__(self, pipeline) -> None:
        super().__init__(pipeline)
        self.asked = dict.fromkeys(pipeline.sources, 0)

    def add(self, cycle) -> None:
        super().add(cycle)
        if cycle is not None:
            for source, cost in cycle.asked.items():
                self.asked[source] += cost.queries


def test_no_question_reaches_a_source_whose_relations_are_kept(shop, running_spark):
    fill(shop)
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        # The second pipeline reads the copies back from the warehouse.
        for first in (0, 2):
            with keeper.pipeline() as pipeline:
                before = 0 if not first else keeper.warehouse().latest().last_txn
                recording = Asking(pipeline)
                books = shop.witness(recording.definitions)
                pipeline.load()
                traffic = Traffic(shop, writers=2, transactions=20, first=first).start()
                while not traffic.is_over:
                    recording.add(pipeline.cycle(0.2))
                traffic.join()
                recording.catch_up()
                found = verdict(keeper.warehouse(), recording.definitions, books, before)
            assert found.meets(Level.COMPLETE), found.problem
            assert all(books.transactions.values())
            assert recording.asked["shop"] > 0
            assert (recording.asked["crm"], recording.asked["geo"]) == (0, 0)
        assert all(audit.is_equal for audit in keeper.audit())
        # Copies are nobody's to read.
        copies = {"orders_now", "customers_now", "regions_now"}
        assert set(keeper.warehouse().snapshot().views) == {*VIEWS, *copies}
