"""Folders of killed processes are cleared away by the next one; those of living ones are not."""

import os
import signal
import subprocess
import sys

import pytest

from viewkeeper.spark import temporary

SCRIPT = """
import sys, time
from pathlib import Path
from viewkeeper.spark.temporary import temporary_folder
folder = temporary_folder("stage", Path(sys.argv[1]))
(folder / "rows").write_text("rows")
print(folder, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def process(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout.readline().startswith(str(tmp_path))
        yield started


def test_what_a_killed_process_left_is_cleared_away(tmp_path, process, monkeypatch):
    monkeypatch.setattr(temporary, "YOUNG_SECONDS", 0.0)
    (tmp_path / "viewkeeper-run-somebody").mkdir()  # without a lock: not for us to judge
    assert temporary.clear_left_behind(tmp_path) == []
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    [cleared] = temporary.clear_left_behind(tmp_path)
    assert not cleared.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["viewkeeper-run-somebody"]


def test_a_process_that_ends_in_order_leaves_nothing(tmp_path, process):
    process.communicate("end\n")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_just_being_made_is_left_alone(tmp_path, process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert temporary.clear_left_behind(tmp_path) == []
