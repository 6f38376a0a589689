"""A MariaDB table is replaced by another one of its name, as online migration tools do it, under writers."""

from __future__ import annotations

import contextlib

import pytest

from live.pipeline.test_rebuild import rows
from live.pipeline.test_schema_changes_under_writers import audit, settle
from live.pipeline.traffic import InBackground
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PLACES = """
SELECT c.cust_id, c.points, r.rname
FROM crm.customers c JOIN geo.regions r ON c.region_id = r.region_id
"""
COPY = (
    "CREATE TABLE {new} (points BIGINT, region_id BIGINT, more BIGINT, cust_id BIGINT PRIMARY KEY)",
    "INSERT INTO {new} SELECT points + 1000, region_id, 1, cust_id FROM customers WHERE cust_id < 50",
)


class Customers(InBackground):
    """Writes to the table that has the name, whichever it is."""

    def __init__(self, shop) -> None:
        super().__init__()
        self._shop = shop

    def _run(self) -> None:
        writer = self._shop.databases["crm"].writer()
        while not self._stop.wait(0.1):
            with contextlib.suppress(Exception):  # for a moment there is none
                sql = "UPDATE customers SET points = points + 1 WHERE cust_id = ?"
                writer.run(sql, self.written % 40)
                self.written += 1
        writer.close()


def test_a_view_means_the_table_that_has_the_name(shop, running_spark):
    shop.run(
        "crm",
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, points BIGINT, region_id BIGINT)",
        "INSERT INTO customers SELECT seq, seq, seq % 5 FROM seq_1_to_60",
    )
    shop.run("geo", "CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)")
    shop.run("geo", "INSERT INTO regions VALUES (0, 'a'), (1, 'b'), (2, 'c'), (3, 'd'), (4, 'e')")
    shop.write_view("places", PLACES)
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline() as pipeline,
        Customers(shop) as customers,
    ):
        pipeline.load()
        settle(pipeline, {"crm": customers})
        shop.run("crm", *(text.format(new="first") for text in COPY))
        shop.run("crm", "RENAME TABLE customers TO old, first TO customers")
        settle(pipeline, {"crm": customers})
        assert audit(pipeline, keeper, "places").is_equal
        assert min(row[1] for row in rows(shop, "places")) > 1000
        # What happens to the other table is of no concern, and the next migration is as the first.
        shop.run("crm", "UPDATE old SET points = 0", "DROP TABLE old")
        shop.run("crm", *(text.format(new="second") for text in COPY))
        shop.run("crm", "RENAME TABLE customers TO older, second TO customers")
        settle(pipeline, {"crm": customers})
        assert audit(pipeline, keeper, "places").is_equal
        assert min(row[1] for row in rows(shop, "places")) > 2000
        assert {r.relation for r in pipeline.group_of("places").scope.relations} == {
            "customers",
            "regions",
        }
