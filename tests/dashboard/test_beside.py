"""The dashboard of a run as a process of its own: its death is told, and it comes back; it never outlives the run."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from viewkeeper.dashboard.beside import DashboardProcess
from viewkeeper.errors import UsageError

PATIENCE_SECONDS = 600
pytestmark = pytest.mark.thorough


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}api/session", timeout=PATIENCE_SECONDS) as answer:
            return "open" in json.load(answer)
    except OSError:
        return False


def test_its_death_is_told_and_it_is_started_again_at_the_same_place(project):
    told: queue.Queue[dict] = queue.Queue()
    with DashboardProcess(project.folder, 0, None, told.put) as server:
        assert answers(server.url)
        first = server.pid
        os.kill(first, signal.SIGKILL)
        event = told.get(timeout=PATIENCE_SECONDS)
        assert (event.name, event.code) == ("warning", "dashboard-ended")
        until(lambda: server.pid != first and answers(server.url))
        last = server.pid
    assert is_gone(last)
    assert told.empty()


def test_a_token_is_kept_and_stands_on_no_command_line(project):
    with DashboardProcess(project.folder, 0, "a secret token", lambda event: None) as server:
        assert server.url.endswith("#token=a secret token")
        assert b"a secret token" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert b"a secret token" not in Path(f"/proc/{server.pid}/environ").read_bytes()


def test_a_port_that_is_taken_is_told(project):
    with DashboardProcess(project.folder, 0, None, lambda event: None) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(UsageError, match="port-taken"):
            DashboardProcess(project.folder, port, None, lambda event: None)


def test_it_ends_when_the_run_is_killed(project):
    program = """
import sys, time
from pathlib import Path
from viewkeeper.dashboard.beside import DashboardProcess
with DashboardProcess(Path(sys.argv[1]), 0, None, print) as server:
    print(server.pid, flush=True)
    time.sleep(3600)
"""
    command = [sys.executable, "-c", program, str(project.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        run.kill()
    until(lambda: is_gone(pid))
