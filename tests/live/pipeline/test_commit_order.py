"""The order of commits that a project chooses is the one that its groups have, and every transaction stays a state."""

from __future__ import annotations

import pytest

from live.pipeline.recording import Recording
from live.pipeline.traffic import fill, write_copies
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SOLD = (
    "SELECT o.o_id, o.qty, c.name FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id"
)


@pytest.mark.parametrize("order", ["sequential", "batched"])
def test_the_order_of_commits_is_the_projects(shop, running_spark, order):
    fill(shop)
    shop.write_view("sold", SOLD)
    write_copies(shop, "orders", "customers")
    file = shop.folder / "viewkeeper.toml"
    told = f'[warehouse]\ncommits = "{order}"'
    file.write_text(file.read_text().replace("[warehouse]", told, 1))
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            recording = Recording(pipeline)
            books = shop.witness(recording.definitions)
            pipeline.load()
            assert {group.jobs.merge.commits.name for group in pipeline.groups} == {order}
            for number in range(12):
                if number % 3:
                    shop.run("shop", f"INSERT INTO orders VALUES ({9000 + number}, 1, {number})")
                else:
                    shop.run("crm", f"UPDATE customers SET name = 'n{number}' WHERE cust_id = 1")
            while len(recording.arrivals) < 12:
                recording.add(pipeline.cycle(0.2))
        found = verdict(keeper.warehouse(), recording.definitions, books)
        assert found.meets(Level.COMPLETE), found.problem
        assert all(audit.is_equal for audit in keeper.audit())
