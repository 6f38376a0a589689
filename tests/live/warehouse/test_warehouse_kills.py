"""A publishing process is killed with SIGKILL, at random moments and at each named point.

No reader of the ledger ever sees a state that is not the replay's, and the next process goes on with
every epoch there exactly once.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from epoch_publisher import AMORTISATION
from epoch_workload import (
    SCHEMAS,
    Replay,
    check_history,
    check_retained,
    check_snapshot,
    check_state,
    epoch,
)

from viewkeeper.failpoints import VARIABLE, WAREHOUSE_POINTS
from viewkeeper.warehouse import Snapshot, Warehouse, consolidate
from viewkeeper.warehouse.entries import views_to_json
from viewkeeper.warehouse.tables import Table

PUBLISHER = Path(__file__).with_name("epoch_publisher.py")
FAR = 10**9
# `make kill-warehouse` runs the long version.
KILLS = int(os.environ.get("VIEWKEEPER_KILLS", "6"))
SEED = int(os.environ.get("VIEWKEEPER_SEED", "5"))


def start(folder: Path, mode: str, last: int, failpoint: str = "") -> subprocess.Popen[str]:
    environment = os.environ | ({VARIABLE: failpoint} if failpoint else {})
    return subprocess.Popen(
        [sys.executable, str(PUBLISHER), str(folder), mode, str(last)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


class Watcher(threading.Thread):
    """Reads all views at the newest state, again and again, and keeps the first thing it dislikes."""

    def __init__(self, warehouse: Warehouse) -> None:
        super().__init__(daemon=True)
        self._warehouse = warehouse
        self._closing = threading.Event()
        self.states_seen = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        replay, last = Replay(), 0
        while not self._closing.is_set():
            try:
                txn = check_state(self._warehouse, replay)
                assert txn >= last, f"the state went back from {last} to {txn}"
            except BaseException as problem:
                self.problem = problem
                return
            self.states_seen += txn != last
            last = txn

    def close(self) -> None:
        self._closing.set()
        self.join()
        if self.problem is not None:
            raise self.problem


def test_a_publisher_killed_at_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    chance = random.Random(SEED)
    watcher = Watcher(warehouse)
    watcher.start()
    replay = Replay()
    for _ in range(KILLS):
        process = start(tmp_path / "w", "background", FAR)
        assert process.stdout is not None
        said = process.stdout.readline()
        # However slow the machine: each process gets something done, and the watcher sees it.
        seen = watcher.states_seen
        while watcher.states_seen < seen + 2 and watcher.is_alive() and process.poll() is None:
            time.sleep(0.01)
        # The moment of death is the point of this test, not a wait for something to happen.
        time.sleep(chance.uniform(0, 1.2))
        process.kill()
        _, errors = process.communicate()
        assert said == "ready\n", errors
        assert process.returncode == -9, errors
        check_state(warehouse, replay)
        check_history(warehouse)
    process = start(tmp_path / "w", "background", warehouse.latest().last_txn + 20)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    watcher.close()
    check_history(warehouse)
    compared = check_retained(warehouse, Replay(), step=1 if KILLS >= 50 else 7)
    report(warehouse, watcher, compared)


def report(warehouse: Warehouse, watcher: Watcher, compared: int) -> None:
    latest = warehouse.latest()
    sys.stderr.write(
        f"\n{KILLS} kills: {latest.epoch} epochs, {latest.last_txn} transactions, "
        f"{latest.token} writers; {watcher.states_seen} states watched, none torn; "
        f"{compared} retained states equal to the replay\n"
    )
    assert watcher.states_seen > KILLS


def die_at(folder: Path, failpoint: str) -> None:
    process = start(folder, "in-turn", FAR, failpoint)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == -9, f"{failpoint} was not reached: {errors}"


@pytest.mark.parametrize(
    "point",
    [
        *(point for point in WAREHOUSE_POINTS if point not in ("during-recovery", "after-table")),
        *("after-table:4", "after-table:5", "after-table:6", "before-ledger:3", "after-ledger:5"),
        *("consolidation-after-table:2", "vacuum-after-file:7"),
    ],
)
def test_a_publisher_that_dies_at_a_named_point_leaves_every_state_right(
    tmp_path: Path, point: str
) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    die_at(tmp_path / "w", point)
    goes_on(warehouse)


def test_tables_read_at_their_latest_versions_would_have_been_torn(tmp_path: Path) -> None:
    """What the ledger is for: the same check fails on tables read without it."""
    warehouse = Warehouse.create(tmp_path / "w")
    die_at(tmp_path / "w", "after-table:4")  # three tables created, one of three changed
    entry = warehouse.latest()
    tables = {view: Table.open(warehouse.storage, f"views/{view}") for view in SCHEMAS}
    versions = {view: table.version for view, table in tables.items() if table is not None}
    ahead = [view for view in SCHEMAS if versions[view] != entry.views[view].version]
    assert ahead == ["marks"]
    unnamed = {
        view: replace(state, version=versions[view], base_txn=0, seal="")
        for view, state in entry.views.items()
    }
    torn = replace(entry, last_txn=FAR, views_json=views_to_json(unnamed))
    with pytest.raises(AssertionError, match="torn or wrong"):
        check_snapshot(Snapshot(warehouse.storage, FAR, (torn,)), Replay().at(0))
    check_state(warehouse, Replay())


def test_a_publisher_that_dies_while_it_recovers_leaves_every_state_right(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    die_at(tmp_path / "w", "after-table:8")
    die_at(tmp_path / "w", "during-recovery")
    die_at(tmp_path / "w", "during-recovery:2")
    goes_on(warehouse)


def goes_on(warehouse: Warehouse) -> None:
    """Right before recovery, right after it, right after more work."""
    check_state(warehouse, Replay())
    check_history(warehouse)
    with warehouse.writer() as writer:
        if writer.latest.views:
            check_retained(warehouse, Replay(), step=5)
            first = writer.latest.last_txn + 1
            writer.commit(epoch(first, first + 30))
            consolidate(writer, AMORTISATION)
    check_history(warehouse)
    check_retained(warehouse, Replay(), step=5)
