"""The figures of batches add up by relation, and go on from run to run."""

import event_samples
from viewkeeper.reports.run_state import RunState, read_run_state
from viewkeeper.reports.traffic import add_batch, measured, no_traffic
from viewkeeper.run_events import BatchCommitted
from viewkeeper.views.advice import Traffic

TALLY = {"queries": 2, "keys": 3, "rows": 10, "bytes": 400}
BATCH = BatchCommitted.of(
    event_samples.BATCH
    | {
        "transactions": 4,
        "asked": {
            "crm": TALLY | {"relations": {"customers": TALLY}},
            "geo": {"queries": 0, "keys": 0, "rows": 0, "bytes": 0, "relations": {}},
        },
        "changes": {"crm.customers": 5, "shop.orders": 1},
    }
)


def test_batches_add_up():
    traffic = no_traffic("then")
    add_batch(traffic, BATCH)
    add_batch(traffic, BATCH)
    assert (traffic["batches"], traffic["transactions"]) == (2, 8)
    assert measured(traffic) == {
        "crm.customers": Traffic(queries=4, keys=6, rows=20, bytes=800, changed=10),
        "shop.orders": Traffic(changed=2),
    }


def test_a_run_goes_on_where_the_last_one_ended(tmp_path):
    for _ in range(2):
        with RunState(tmp_path, {}) as state:
            state.on_event(BATCH)
    found = read_run_state(tmp_path)["traffic"]
    assert found["batches"] == 2
    assert measured(found)["crm.customers"].queries == 4
