"""On a disk that really is full: a clean error, nothing lost, and it goes on once there is room."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILLER = Path(__file__).with_name("disk_filler.py")
DISK_KIB, BALLAST_KIB = 2_000, 700


def in_mount(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a small file system of its own on ``folder``, gone when it ends."""
    mount = f"mount -t tmpfs -o size={DISK_KIB}k tmpfs {folder}"
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mount} && {command}"],
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_full_disk_stops_commits_and_loses_nothing(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or in_mount(tmp_path, "true").returncode != 0:
        pytest.skip("this system gives no mounts to unprivileged users")
    done = in_mount(tmp_path, f"exec {sys.executable} {FILLER} {tmp_path} {BALLAST_KIB * 1024}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    sys.stderr.write(f"\ndisk full: {found}\n")
    assert set(found["errors"]) == {"disk-full"}
    assert found["when_full"] > 0
    assert found["last_txn"] == found["when_full"] + 30
    assert os.listdir(tmp_path) == []  # the mount was really used
