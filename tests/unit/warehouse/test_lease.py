from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from unit.warehouse.entries_for_tests import NOON, at
from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.lease import (
    FILE,
    Heartbeat,
    Holder,
    Process,
    check_free,
    is_held,
    is_running,
)
from viewkeeper.warehouse.storage import Storage

ME = Process("here", "boot-1", 100, "5")
OTHER = Holder(3, Process("here", "boot-1", 200, "7"), NOON, ttl_seconds=30)


def test_a_process_that_runs_on_this_machine_holds_the_lease() -> None:
    assert is_held(OTHER, ME, at(1), lambda process: True)
    assert not is_held(OTHER, ME, at(1), lambda process: False)


def test_a_process_elsewhere_holds_it_while_its_heart_beats() -> None:
    elsewhere = replace(OTHER, process=replace(OTHER.process, machine="boot-2"))
    assert is_held(elsewhere, ME, at(29), lambda process: False)
    assert not is_held(elsewhere, ME, at(31), lambda process: True)


def test_nobody_and_half_a_file_hold_nothing() -> None:
    assert not is_held(None, ME, NOON, lambda process: True)
    for content in (b"", b"{", b"[]", b"null", b'{"token": 1}', OTHER.to_bytes()[:40]):
        assert Holder.from_bytes(content) is None
    assert Holder.from_bytes(OTHER.to_bytes()) == OTHER


def test_a_process_is_told_from_another_that_got_its_number() -> None:
    me = Process.current()
    assert is_running(me)
    assert not is_running(replace(me, started="1"))


def test_a_process_that_ended_is_not_running_even_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    running = replace(Process.current(), pid=child.pid, started=_started(child.pid))
    assert is_running(running)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_running(running)
    child.communicate()
    assert not is_running(running)


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_the_lease_is_held_until_closed_and_names_its_holder(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    check_free(storage, NOON)
    heartbeat = Heartbeat(storage, 1, lambda: NOON)
    with pytest.raises(WarehouseError, match=f"process {os.getpid()} on .*, last seen 5 s ago"):
        check_free(storage, at(5))
    heartbeat.close()
    check_free(storage, at(5))
    assert not (tmp_path / FILE).exists()


def test_a_writer_that_was_replaced_leaves_the_other_s_lease_alone(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    stale = Heartbeat(storage, 1, lambda: NOON)
    fresh = Heartbeat(storage, 2, lambda: NOON)
    stale.close()
    content = storage.read_bytes(FILE)
    assert content is not None
    assert Holder.from_bytes(content).token == 2
    fresh.close()
