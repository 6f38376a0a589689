"""Views that show a state for several transactions, live: MVC's complete-N."""

from __future__ import annotations

from functools import partial

import pytest

from live.pipeline.recording import Recording
from live.pipeline.traffic import fill, write_copies
from viewkeeper.engine.limits import Limits
from viewkeeper.project import keeper as keepers
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

BLOCK = 3
SOLD = f"""
-- block: {BLOCK}
SELECT o.o_id, o.qty, c.name FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
"""


def test_a_state_has_a_whole_block_of_transactions(shop, running_spark, monkeypatch):
    fill(shop)
    shop.write_view("sold", SOLD)
    write_copies(shop, "orders", "customers")
    # However slow this machine is, no pause ends a block.
    monkeypatch.setattr(keepers, "Limits", partial(Limits, block_seconds=3_600.0))
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            recording = Recording(pipeline)
            books = shop.witness(recording.definitions)
            pipeline.load()
            (group,) = pipeline.groups
            loaded = keeper.warehouse().latest().last_txn
            for number in range(3 * BLOCK + 1):
                if number % 2:
                    shop.run("crm", f"UPDATE customers SET name = 'n{number}' WHERE cust_id = 1")
                else:
                    shop.run("shop", f"INSERT INTO orders VALUES ({9000 + number}, 1, {number})")
            while len(recording.arrivals) < 3 * BLOCK:
                recording.add(pipeline.cycle(0.2))
            assert len(recording.arrivals) == 3 * BLOCK
            assert keeper.warehouse().latest().last_txn == loaded + 3
            assert group.intake.integrator.waits_for_block or not group.intake.integrator.pending
        # A run until all is shown does not wait for a block to be whole.
        keeper.run_until_caught_up()
        warehouse = keeper.warehouse()
        assert warehouse.latest().last_txn == loaded + 4
        found = verdict(warehouse, recording.definitions, books, block=BLOCK)
        assert found.meets(Level.COMPLETE), found.problem
        assert not verdict(warehouse, recording.definitions, books).meets(Level.COMPLETE)
        assert all(audit.is_equal for audit in keeper.audit())
