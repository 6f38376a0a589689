"""``viewkeeper run`` killed again and again under load: nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from live.pipeline.witnessed import CUSTOMERS, ORDERS, REGIONS, VIEW, WitnessedWriters
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

KILLS = int(os.environ.get("VIEWKEEPER_RUN_KILLS", "2"))


def start_run(folder, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "viewkeeper", "run", "--json", "--project", str(folder)]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)


def next_batch(process: subprocess.Popen) -> dict:
    """What a run says before it is passed over: one that was killed may still hold its slot."""
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "batch":
            return event
        assert event["event"] in ("source_waiting", "source_back", "ready"), event
    raise AssertionError(f"it ended by itself, with {process.wait()}")


def test_run_killed_at_random_moments_stays_complete_and_exactly_once(shop, running_spark):
    writers = WitnessedWriters(shop, seed=7)
    writers.fill()
    writers.write_views()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    writers.start()
    rng = random.Random(11)
    killed_at = []
    for _ in range(KILLS):
        process = start_run(shop.folder)
        # Let it work for a random number of batches, then for a random moment into the next one.
        for _ in range(rng.randint(1, 4)):
            event = next_batch(process)
        try:
            process.wait(rng.random() * 1.5)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        # It must not have ended by itself: that would be no kill, and perhaps a fault.
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        killed_at.append(event["txn"])
    writers.stop()
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        warehouse = keeper.warehouse()
        transactions = sum(writers.books.transactions.values())
        assert warehouse.latest().last_txn == transactions, writers.books.transactions
        found = verdict(warehouse, (v.definition for v in keeper.views.values()), writers.books)
        assert found.meets(Level.COMPLETE), found.problem
    writers.close()
    print(f"{KILLS} kills at {killed_at}, {transactions} transactions, complete")  # noqa: T201


def test_sqlite_transactions_of_a_time_when_nobody_looked_come_as_one(shop, running_spark):
    """SQLite's last connection takes the log along that tells them apart: a state for all of them."""
    writers = WitnessedWriters(shop, seed=3)
    writers.fill()
    writers.write_views()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    for _ in range(KILLS):
        for name in (REGIONS, ORDERS, REGIONS, CUSTOMERS, REGIONS):
            writers.commit_alone(name)
        process = start_run(shop.folder)
        next_batch(process)
        writers.commit_alone(REGIONS)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        warehouse = keeper.warehouse()
        found = verdict(warehouse, (v.definition for v in keeper.views.values()), writers.books)
        last = warehouse.latest().last_txn
    committed = writers.books.transactions
    assert committed["shop"] + committed["crm"] < last < sum(committed.values())
    assert (found.level, found.claims_hold) == (Level.STRONG, True), found.problem


def test_a_second_run_is_refused_while_one_is_going(shop, running_spark):
    shop.write_view("sales", VIEW)
    writers = WitnessedWriters(shop, seed=1)
    writers.fill()
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline():
        second = start_run(shop.folder)
        output, _ = second.communicate(timeout=600)
        assert second.returncode == 1
        assert json.loads(output.splitlines()[-1])["error"]["code"] == "warehouse-held"
