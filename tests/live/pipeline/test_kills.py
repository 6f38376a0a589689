"""``viewkeeper run`` killed again and again under load: nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from live.pipeline.recording import view_states
from live.pipeline.witnessed import CUSTOMERS, ORDERS, REGIONS, VIEW, WitnessedWriters
from viewkeeper.consistency import check
from viewkeeper.runtime.keeper import Keeper
from viewkeeper.views import Level

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

KILLS = int(os.environ.get("VIEWKEEPER_RUN_KILLS", "2"))


def start_run(folder, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "viewkeeper", "run", "--json", "--project", str(folder)]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)


def test_run_killed_at_random_moments_stays_complete_and_exactly_once(shop, running_spark):
    shop.write_view("sales", VIEW)
    writers = WitnessedWriters(shop, seed=7)
    writers.fill()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    writers.start()
    rng = random.Random(11)
    killed_at = []
    for _ in range(KILLS):
        process = start_run(shop.folder)
        # Let it work for a random number of batches, then for a random moment into the next one.
        for _ in range(rng.randint(1, 4)):
            event = json.loads(process.stdout.readline())
            assert event["event"] in ("batch", "source_waiting"), event
        try:
            process.wait(rng.random() * 1.5)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        # It must not have ended by itself: that would be no kill, and perhaps a fault.
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        killed_at.append(event.get("txn"))
    writers.stop()
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        warehouse = keeper.warehouse()
        view = keeper.views["sales"].definition
        committed = {source: len(script) for source, script in writers.scripts.items()}
        transactions = sum(committed.values())
        assert warehouse.latest().last_txn == transactions > 20, committed
        states = [(state,) for state in view_states(warehouse, "sales", view.schema, 0)]
        verdict = check([view], writers.histories, states)
        assert verdict.level is Level.COMPLETE, verdict.violation
    writers.close()
    print(f"{KILLS} kills at {killed_at}, {transactions} transactions, complete")  # noqa: T201


def test_sqlite_transactions_of_a_time_when_nobody_looked_come_as_one(shop, running_spark):
    """SQLite's last connection takes the log along that tells them apart: a state for all of them."""
    shop.write_view("sales", VIEW)
    writers = WitnessedWriters(shop, seed=3)
    writers.fill()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    for _ in range(KILLS):
        for name in (REGIONS, ORDERS, REGIONS, CUSTOMERS, REGIONS):
            writers.commit_alone(name)
        process = start_run(shop.folder)
        assert json.loads(process.stdout.readline())["event"] == "batch"
        writers.commit_alone(REGIONS)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        warehouse = keeper.warehouse()
        view = keeper.views["sales"].definition
        states = [(state,) for state in view_states(warehouse, "sales", view.schema, 0)]
    committed = {source: len(script) for source, script in writers.scripts.items()}
    assert committed["shop"] + committed["crm"] < len(states) - 1 < sum(committed.values())
    verdict = check([view], writers.histories, states)
    assert verdict.level is Level.STRONG, verdict.violation


def test_a_second_run_is_refused_while_one_is_going(shop, running_spark):
    shop.write_view("sales", VIEW)
    writers = WitnessedWriters(shop, seed=1)
    writers.fill()
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline():
        second = start_run(shop.folder)
        output, _ = second.communicate(timeout=120)
        assert second.returncode == 1
        assert json.loads(output.splitlines()[-1])["error"]["code"] == "warehouse-held"
