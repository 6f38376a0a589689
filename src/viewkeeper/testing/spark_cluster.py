"""A Spark standalone cluster on the loopback interface: a master and some workers, each its own process.

From the classes in PySpark's wheel, started by the wheel's own ``spark-class``; the scripts that start
clusters elsewhere are not in it. PySpark is located and not imported: what is tested imports it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.testing.server import LOOPBACK, ServerProcess, TemporaryServer, free_port

START_SECONDS_MAX = 300.0
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkCluster(TemporaryServer):
    """Starts on construction; ``stop`` (or leaving the ``with``) ends all of it.

    An application's executors are children of the workers: processes that see nothing of its driver's
    memory. Each worker offers ``cores`` of them a core.
    """

    product = "Spark cluster"

    def __init__(self, workers: int = 1, *, cores: int = 1, memory: str = "1g") -> None:
        super().__init__()
        self.port, self._web_port = free_port(), free_port()
        self.url = f"spark://{LOOPBACK}:{self.port}"
        self.workers = workers
        self._processes: list[ServerProcess] = []
        try:
            self._start("master", "--port", str(self.port), "--webui-port", str(self._web_port))
            self._await(lambda: self._state() is not None)
            for number in range(workers):
                self._start(
                    "worker", "--cores", str(cores), "--memory", memory, "--webui-port", "0",
                    "--work-dir", str(self._folder / f"work-{number}"), self.url,
                )  # fmt: skip
            self._await(lambda: self.alive_workers == workers)
        except BaseException:
            self.stop()
            raise

    @property
    def alive_workers(self) -> int:
        """How many workers the master knows and hears from."""
        return int((self._state() or {}).get("aliveworkers", 0))

    def executors_used(self) -> int:
        """How many executors have been started so far, by what their workers have kept of them."""
        return len(list(self._folder.glob("work-*/app-*/*/stderr")))

    def worker_seconds(self) -> list[float]:
        """CPU seconds that each worker has used so far, its executors and their Python included."""
        _, *workers = self._processes
        return [_tree_seconds(worker.pid) for worker in workers]

    def stop(self) -> None:
        """End workers, their executors and the master, and remove their files."""
        for process in reversed(self._processes):
            process.end()  # executors are in the group of their worker
        self._processes.clear()
        self._remove_folder()

    def _start(self, role: str, *arguments: str) -> None:
        home = _spark_home()
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _QUICK_JVM,
            "PYSPARK_PYTHON": sys.executable,
        }
        name = f"org.apache.spark.deploy.{role}.{role.capitalize()}"
        command = [str(home / "bin" / "spark-class"), name, "--host", LOOPBACK, *arguments]
        self._processes.append(ServerProcess(command, self._folder, env=environment))

    def _await(self, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not is_ready():
            if time.monotonic() > deadline or any(p.has_ended for p in self._processes):
                raise self._not_started()
            time.sleep(0.1)

    def _state(self) -> dict[str, Any] | None:
        """What the master says of itself; None while it does not answer, or not with that."""
        url = f"http://{LOOPBACK}:{self._web_port}/json/"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):  # its page is there a moment before what is on it
            return None
        return found


def _tree_seconds(root: int) -> float:
    """CPU seconds of a process and all below it, those that have ended and were waited for included.

    Not of its process group: PySpark puts its Python workers into one of their own.
    """
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
                ticks[int(entry.name)] = sum(int(field) for field in fields[11:15])
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UsageError("server-not-installed", "PySpark is not installed")
    return Path(spec.origin).parent
