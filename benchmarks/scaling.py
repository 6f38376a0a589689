"""How the pipeline grows: one and two workers of a cluster, and cost by sources, views, base and batch.

    python benchmarks/scaling.py [--parts workers sources views base batch] [--orders 400000]

Small sizes on purpose: what is looked for is the shape of a curve. Everything runs on this machine, the
databases, the driver and the executors together; where that decides a figure, CPU seconds are told too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from peers.task import Task
from peers.viewkeeper_peer import Databases, caught_up
from peers.workload import write_workload
from scaling_chain import Chain
from scaling_report import Curve, into_document, table

from viewkeeper.project.keeper import Keeper
from viewkeeper.spark.session import SparkSettings, start_spark
from viewkeeper.testing.spark_cluster import SparkCluster

REPOSITORY = Path(__file__).parents[1]
PARTS = ("workers", "sources", "views", "base", "batch")
SEED = 5
# The same for any number of workers, so that the work is.
SHUFFLE_PARTITIONS = 4
WARM_ORDERS = 200_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--orders", type=int, default=3_000_000, help="of the load on a cluster")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=REPOSITORY / "build" / "scaling.json")
    parser.add_argument("--document", type=Path)
    options = parser.parse_args()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"processors": os.cpu_count(), "load_before": os.getloadavg()[0]}
    if "workers" in options.parts:
        found["workers"] = workers(options.orders, options.rounds)
    wanted = [part for part in options.parts if part != "workers"]
    if wanted:
        found["curves"] = [curve.as_dict() for curve in curves(wanted, options.rounds)]
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if options.document is not None:
        into_document(found, options.document)


# -- workers ---------------------------------------------------------------------------------------


def workers(orders: int, rounds: int) -> list[dict[str, Any]]:
    """The initial load on one worker and on two, of one core each, in turns."""
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="viewkeeper-scaling-") as folder:
        data = Path(folder) / "data"
        write_workload(data / "warm", WARM_ORDERS, [("none", 0)], SEED)
        write_workload(data / "full", orders, [("none", 0)], SEED)
        for number in range(rounds):
            for count in (1, 2):
                runs.append({"round": number, **_load_on(count, data, Path(folder) / "run")})
                print(json.dumps(runs[-1]), file=sys.stderr)
    return runs


def _load_on(count: int, data: Path, scratch: Path) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(SparkCluster(count, cores=1, memory="2g"))
        folders = []
        for name in ("warm", "full"):
            task = Task("", "join", data / name, scratch / name, ())
            task.scratch.mkdir(parents=True, exist_ok=True)
            folder = Databases(stack, task).project(task)
            with (folder / "viewkeeper.toml").open("a") as file:
                file.write(_cluster_section(cluster.url, count))
            folders.append(str(folder))
        driver = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("scaling_driver.py")), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        )
        try:
            _expect(driver, "ready")
            before = cluster.worker_seconds()
            _go_on(driver)
            loaded = _expect(driver, "loaded")
            busy = [b - a for a, b in zip(before, cluster.worker_seconds(), strict=True)]
            _go_on(driver)
            driver.wait(60)
        finally:
            driver.kill()
            driver.communicate()
    shutil.rmtree(scratch, ignore_errors=True)
    return {"workers": count, "seconds": loaded["seconds"], "cpu_seconds_by_worker": busy} | {
        "cpu_seconds_driver": loaded["cpu_seconds"]
    }


def _cluster_section(url: str, count: int) -> str:
    return (
        f'[spark]\nmaster = "{url}"\n[spark.config]\n"spark.driver.host" = "127.0.0.1"\n'
        '"spark.driver.bindAddress" = "127.0.0.1"\n"spark.executor.memory" = "1g"\n'
        f'"spark.sql.shuffle.partitions" = "{SHUFFLE_PARTITIONS}"\n"spark.cores.max" = "{count}"\n'
        # An executor that compiles much while it is measured would be measured compiling.
        '"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"\n'
        # Work begins when all workers are there.
        f'"spark.default.parallelism" = "{count}"\n'
        '"spark.scheduler.minRegisteredResourcesRatio" = "1.0"\n'
    )


def _expect(driver: subprocess.Popen[str], word: str) -> dict[str, Any]:
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.startswith("{"):
            told: dict[str, Any] = json.loads(line)
            if told["event"] == word:
                return told
    raise RuntimeError(f"the driver ended before it was {word}")


def _go_on(driver: subprocess.Popen[str]) -> None:
    assert driver.stdin is not None
    driver.stdin.write("go on\n")
    driver.stdin.flush()


# -- curves ----------------------------------------------------------------------------------------


def curves(parts: Sequence[str], rounds: int) -> Iterator[Curve]:
    """Each curve over one figure, all others held."""
    made: dict[str, Callable[[int], Iterator[Curve]]] = {
        "sources": by_sources,
        "views": by_views,
        "base": by_base,
        "batch": by_batch,
    }
    with start_spark(SparkSettings(master="local[2]")):
        for part in parts:
            yield from made[part](rounds)


def by_sources(rounds: int, sizes: Sequence[int] = (2, 3, 4, 6, 8)) -> Iterator[Curve]:
    """A chain of n sources; all changes happen in the first one."""
    seconds, queries = [], []
    for size in sizes:
        with Chain(sources=size, views=1) as chain:
            figures = [chain.brought_in(1_000) for _ in range(rounds + 1)][1:]
        seconds.append(statistics.median(f["seconds"] for f in figures))
        queries.append(statistics.median(f["queries"] for f in figures))
    yield Curve("queries per batch", "sources n", sizes, queries, "n − 1", [n - 1 for n in sizes])
    yield Curve.linear("seconds per batch of 1,000", "sources n", sizes, seconds, "a + b·n")


def by_views(rounds: int, sizes: Sequence[int] = (1, 2, 4, 8)) -> Iterator[Curve]:
    """m views over the same three sources, in one group."""
    seconds, queries = [], []
    for size in sizes:
        with Chain(sources=3, views=size) as chain:
            figures = [chain.brought_in(1_000) for _ in range(rounds + 1)][1:]
        seconds.append(statistics.median(f["seconds"] for f in figures))
        queries.append(statistics.median(f["queries"] for f in figures))
    yield Curve.linear("seconds per batch of 1,000", "views m", sizes, seconds, "a + b·m")
    yield Curve.linear("queries per batch", "views m", sizes, queries, "a + b·m")


def by_base(
    rounds: int, sizes: Sequence[int] = (20_000, 50_000, 100_000, 200_000)
) -> Iterator[Curve]:
    """The peers' workload over larger and larger bases; streams stay the same."""
    loads, seconds = [], []
    for size in sizes:
        load, streams = _streamed(size, [2_000] * (rounds + 1))
        loads.append(load)
        seconds.append(statistics.median(streams[1:]))
    flat = [seconds[0]] * len(sizes)
    yield Curve("seconds for 2,000 updates", "orders N", sizes, seconds, "constant", flat)
    yield Curve.linear("seconds of the initial load", "orders N", sizes, loads, "a + b·N")


def by_batch(rounds: int, sizes: Sequence[int] = (100, 1_000, 5_000, 20_000)) -> Iterator[Curve]:
    """More and more updates at once over one base."""
    warmed = [2_000, *(size for size in sizes for _ in range(rounds))]
    _, streams = _streamed(50_000, warmed)
    by_size = [
        statistics.median(streams[1 + i * rounds : 1 + (i + 1) * rounds]) for i in range(len(sizes))
    ]
    yield Curve.linear("seconds", "updates at once k", sizes, by_size, "a + b·k")
    each = [1_000 * seconds / size for seconds, size in zip(by_size, sizes, strict=True)]
    slope = (by_size[-1] - by_size[0]) / (sizes[-1] - sizes[0])
    fixed = by_size[0] - slope * sizes[0]
    law = [1_000 * (fixed / size + slope) for size in sizes]
    yield Curve("milliseconds per update", "updates at once k", sizes, each, "a/k + b", law)


def _streamed(orders: int, streams: Sequence[int]) -> tuple[float, list[float]]:
    """Seconds of the load, and of each stream."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="viewkeeper-")))
        names = [f"s{number}" for number in range(len(streams))]
        write_workload(folder / "data", orders, list(zip(names, streams, strict=True)), SEED)
        task = Task("", "join", folder / "data", folder / "run", tuple(names))
        task.scratch.mkdir()
        databases = Databases(stack, task)
        keeper = stack.enter_context(Keeper.open(databases.project(task), allow_setup=True))
        with keeper.pipeline() as pipeline:
            started = time.perf_counter()
            pipeline.load()
            load = time.perf_counter() - started
        seconds = []
        for name in names:
            databases.write(task.changes(name))
            with keeper.pipeline() as pipeline:
                seconds.append(caught_up(pipeline, name, task.updates(name)).seconds)
    return load, seconds


if __name__ == "__main__":
    main()
