"""Views of different groups over one database: whoever reads several of them sees one cut of it.

An order is committed before its invoice, each in a transaction of its own, so no moment of the database has
an invoice without its order. The orders' group is the slower one.
"""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time

import pytest

from dashboard.serving import ask, dashboard
from live.pipeline.test_groups import slow_down
from viewkeeper.cli import execute
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PAIRS = 32
# How long a state may take to get from the database to a reader, on a machine that does much else.
PATIENCE_SECONDS = 120
TORN = """
SELECT (SELECT COUNT(*) FROM placed) AS orders,
       (SELECT COUNT(*) FROM billed) AS invoices,
       (SELECT COUNT(*) FROM billed b LEFT JOIN placed p ON b.id = p.id WHERE p.id IS NULL) AS torn
"""


def asked(shop, *more) -> dict:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = execute(["query", TORN, "--project", str(shop.folder), *map(str, more), "--json"])
    found = json.loads(out.getvalue())
    assert code == 0, found
    return found


def read_by_spark(warehouse, txn) -> tuple[set, set]:
    frames = warehouse.read_many(["placed", "billed"], txn)
    placed, billed = ({row[0] for row in frames[name].collect()} for name in ("placed", "billed"))
    return placed, billed


def read_by_dashboard(server, txn) -> tuple[set, set]:
    found = []
    for view in ("placed", "billed"):
        page = ask(server, f"/api/views/{view}/rows?limit=1000&as_of={txn}").document
        found.append({row["values"][0] for row in page["rows"]})
    return found[0], found[1]


@pytest.mark.parametrize("source", ["shop", "crm", "geo"])
def test_no_state_shows_an_invoice_without_its_order(shop, running_spark, monkeypatch, source):
    slow_down(monkeypatch, "placed", lambda: threading.Event().wait(0.3))
    for table in ("orders_placed", "orders_billed"):
        shop.run(source, f"CREATE TABLE {table} (id BIGINT PRIMARY KEY)")
    shop.write_view("placed", f"SELECT id FROM {source}.orders_placed")
    shop.write_view("billed", f"SELECT id FROM {source}.orders_billed")

    def write() -> None:
        for number in range(1, PAIRS + 1):
            shop.run(source, f"INSERT INTO orders_placed VALUES ({number})")
            shop.run(source, f"INSERT INTO orders_billed VALUES ({number})")

    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        assert len(pipeline.groups) == 2
        warehouse = keeper.warehouse()
        writer = threading.Thread(target=write)
        writer.start()
        seen = []
        while writer.is_alive():
            pipeline.cycle(0.2)
            seen.append(read_by_spark(warehouse, None))
        writer.join()
        targets = pipeline.committed_now()
        while not pipeline.has_applied(targets):
            pipeline.cycle(0.2)
            seen.append(read_by_spark(warehouse, None))
        assert [state for state in seen if not state[1] <= state[0]] == []
        # Soon after everything is applied it is shown, though one of the groups had the last word.
        everything = set(range(1, PAIRS + 1))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := read_by_spark(warehouse, None)) != (everything, everything):
            assert time.monotonic() < deadline, found
            pipeline.cycle(0.2)
        found = asked(shop)
        assert found["rows"] == [[PAIRS, PAIRS, 0]]
        newest = warehouse.latest().last_txn
        assert newest == 2 * PAIRS
        with dashboard(shop.folder) as server:
            states = [read_by_dashboard(server, txn) for txn in range(newest + 1)]
        assert [txn for txn, (placed, billed) in enumerate(states) if not billed <= placed] == []
        # Not by going back to the beginning: what one has and the other has passed is there.
        assert states[-1] == (everything, everything)
        assert len({(len(placed), len(billed)) for placed, billed in states}) > 4
        for txn in range(0, newest + 1, 7):
            assert read_by_spark(warehouse, txn) == states[txn]
        for txn in (newest // 3, newest // 2, newest - 3):
            (row,) = asked(shop, "--as-of", txn)["rows"]
            placed, billed = states[txn]
            assert row == [len(placed), len(billed), 0]
