from __future__ import annotations

import json
import os
import subprocess
import sys
import time
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


ELSEWHERE = replace(OTHER, process=replace(OTHER.process, machine="boot-2"))


def test_no_clock_has_a_say_in_whether_a_process_of_this_machine_runs() -> None:
    """Its beat may be late because one call kept Python to itself, or dated by a clock that was wrong."""
    for seconds in (-86_400, 31, 86_400):
        assert is_held(OTHER, ME, at(seconds), lambda process: True)
        assert not is_held(OTHER, ME, at(seconds), lambda process: False)


def test_where_no_start_is_known_a_number_alone_does_not_hold_it_for_ever() -> None:
    unknown = replace(OTHER, process=replace(OTHER.process, started=""))
    assert is_held(unknown, ME, at(29), lambda process: True)
    assert not is_held(unknown, ME, at(31), lambda process: True)


def test_a_lease_dated_in_the_future_is_watched_and_goes_unless_it_beats(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    future = replace(ELSEWHERE, beat_at=at(86_400))
    waited: list[float] = []
    storage.write_bytes(future.to_bytes(), FILE)
    check_free(storage, NOON, waited.append)
    assert waited == [future.ttl_seconds]

    def beats(seconds: float) -> None:
        storage.write_bytes(replace(future, beat_at=at(86_410)).to_bytes(), FILE)

    with pytest.raises(WarehouseError, match="warehouse-held"):
        check_free(storage, NOON, beats)
    # Its own clock may be right by now.
    with pytest.raises(WarehouseError, match="warehouse-held"):
        check_free(storage, NOON, lambda _: storage.write_bytes(ELSEWHERE.to_bytes(), FILE))
    # Given back meanwhile.
    storage.write_bytes(future.to_bytes(), FILE)
    check_free(storage, NOON, lambda _: (tmp_path / FILE).unlink())


def test_a_lease_that_is_a_little_in_the_future_expires_soon(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    storage.write_bytes(replace(ELSEWHERE, beat_at=at(20)).to_bytes(), FILE)
    with pytest.raises(WarehouseError, match="warehouse-held"):
        check_free(storage, NOON, lambda seconds: pytest.fail("nothing to wait for"))
    check_free(storage, at(51), lambda seconds: pytest.fail("nothing to wait for"))


def test_the_beat_goes_on_while_one_call_keeps_python_to_itself(tmp_path: Path) -> None:
    """Seen by another process: nothing of this one runs meanwhile."""
    program = """
import datetime as dt, re, sys
from viewkeeper.warehouse.lease import Heartbeat
from viewkeeper.warehouse.storage import Storage
Heartbeat(Storage.at(sys.argv[1]), 1, lambda: dt.datetime.now(dt.UTC), 0.3, apart=True)
print("begun", flush=True)
re.match("(a+)+$", "a" * 60 + "b")
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"begun\n"
            seen = {_beat(tmp_path)}
            while len(seen) < 4:  # the time limit of the whole test ends what does not beat
                seen.add(_beat(tmp_path))
                time.sleep(0.02)
        finally:
            holder.kill()
    # It ends with the writer.
    last = _beat(tmp_path)
    while (later := _later(tmp_path)) != last:
        last = later


def _beat(folder: Path) -> str:
    return str(json.loads((folder / FILE).read_bytes())["beat_at"])


def _later(folder: Path) -> str:
    time.sleep(1)
    return _beat(folder)


def test_a_beat_apart_ends_when_it_is_closed_and_when_another_has_the_lease(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    stale = Heartbeat(storage, 1, lambda: NOON, 0.3, apart=True)
    fresh = replace(Holder.from_bytes((tmp_path / FILE).read_bytes()), token=2)  # type: ignore[type-var]
    storage.write_bytes(fresh.to_bytes(), FILE)
    assert stale.beating is not None
    assert stale.beating._process is not None
    assert stale.beating._process.wait(600) == 0
    stale.close()
    assert Holder.from_bytes((tmp_path / FILE).read_bytes()) == fresh
    (tmp_path / FILE).unlink()
    closed = Heartbeat(storage, 3, lambda: NOON, 0.3, apart=True)
    closed.close()
    assert list(tmp_path.iterdir()) == []


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
