"""Each run a process of its own, with what its whole tree held in memory looked at from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.task import Task

HERE = Path(__file__).parents[1]
SECONDS_MAX = 1_800.0
SAMPLE_SECONDS = 0.3
# Every so many samples the databases are looked at, too: dozens of processes that share a gigabyte, whose
# pages are counted one by one on the processors that are being measured.
DATABASES_EVERY = 20
DATABASES = ("postgres", "initdb", "psql")
LINES_TOLD = 12


@dataclass
class Memory:
    """Megabytes at the worst moment; of database servers apart, for those belong to the sources."""

    system: float = 0.0
    databases: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a system answered, or why it did not."""

    measurement: dict[str, Any] | None
    memory: Memory
    failure: str = ""


def carried_out(
    task: Task, python: Path, *, nice: int = 0, code: Sequence[Path] = (HERE,)
) -> Outcome:
    """Run a task in an environment, and wait for its answer. Its folder is gone afterwards.

    ``code``: where its modules are looked for first, another revision's, for example.
    """
    shutil.rmtree(task.scratch, ignore_errors=True)
    task.scratch.mkdir(parents=True)
    order, answer, output = (task.scratch / n for n in ("task.json", "answer.json", "output.txt"))
    task.write(order)
    command = [str(python), "-m", "peers.peer", str(order), str(answer)]
    path = os.pathsep.join(str(each) for each in code)
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    environment.pop("SPARK_HOME", None)
    memory = Memory()
    with output.open("wb") as log:
        process = subprocess.Popen(
            ["nice", "-n", str(nice), *command],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=task.scratch,
            start_new_session=True,
        )
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, memory, over))
        watcher.start()
        try:
            code: int | None = process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            over.set()
            watcher.join()
            _end_group(process)
    try:
        if code == 0 and answer.exists():
            return Outcome(json.loads(answer.read_text()), memory)
        said = output.read_text(errors="replace").strip().splitlines()[-LINES_TOLD:]
        how = f"ended with {code}" if code is not None else f"not done after {SECONDS_MAX:.0f} s"
        return Outcome(None, memory, "\n".join([how, *said]))
    finally:
        shutil.rmtree(task.scratch, ignore_errors=True)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """What a system left behind in its own process group goes with it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def cpu_seconds(root: int) -> float:
    """What a process and all below it have used, those that have ended and were waited for included."""
    ticks = 0
    for pid in _tree(root):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _watch(root: int, memory: Memory, over: threading.Event) -> None:
    turn = 0
    while not over.wait(SAMPLE_SECONDS):
        turn += 1
        found = {"system": 0.0, "databases": 0.0}
        for pid in _tree(root):
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                kind = "databases" if name.startswith(DATABASES) else "system"
                if kind == "system" or turn % DATABASES_EVERY == 0:
                    found[kind] += _megabytes(pid)
        memory.system = max(memory.system, found["system"])
        memory.databases = max(memory.databases, found["databases"])


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def _megabytes(pid: int) -> float:
    """Resident, with pages that processes share counted once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except PermissionError:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return 0.0
