"""A guard against getting slower that can run on busy machines: ratios within one run, against a baseline.

    python benchmarks/check.py [--record] [--slowed]

Times of a shared machine mean nothing from one day to the next. So each figure is ours divided by that of
something else which ran in between, on the same machine. Work is counted in CPU seconds of all processes
that take part, ours, the JVM's and the databases', over those of a plain loop in Python; waiting shows in
one figure by the clock, over Spark computing the view anew. Of several rounds the best counts, for others
can only make a round worse. Fails (exit code 1) when a ratio is more than a third below `baseline.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from peers.processes import cpu_seconds

BASELINE = Path(__file__).with_name("baseline.json")
# How far below the baseline a ratio may be: a third.
TOLERATED = 2 / 3
ORDERS, UPDATES, FEW_UPDATES, ROUNDS, LOADS = 20_000, 5_000, 200, 4, 4
SEED = 3

MEANINGS = {
    "updates": "updates per CPU second of a backlog of 5,000, over rounds of a plain loop per CPU second",
    "few_updates": "seconds of one Spark computation of the whole view, over those of 200 updates",
    "load": "rows of the initial load per CPU second, over rounds of a plain loop per CPU second",
    "lab": "simulated runs per CPU second, over rounds of a plain loop per CPU second",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--record", action="store_true", help="this run becomes the baseline")
    parser.add_argument("--slowed", action="store_true", help="with every commit made slower")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with _slower_commits() if options.slowed else contextlib.nullcontext():
        found = measured()
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.record:
        BASELINE.write_text(json.dumps({k: round(v, 4) for k, v in found.items()}, indent=1) + "\n")
    baseline = json.loads(BASELINE.read_text())
    print(told(found, baseline))
    fallen_ones = fallen(found, baseline)
    if fallen_ones:
        print(f"slower by more than a third: {', '.join(fallen_ones)}")
        sys.exit(1)


def fallen(found: Mapping[str, float], baseline: Mapping[str, float]) -> list[str]:
    """The ratios that are more than a third below the baseline, or gone."""
    return [name for name, was in baseline.items() if found.get(name, 0.0) < was * TOLERATED]


def told(found: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    lines = []
    for name, ratio in found.items():
        was = baseline.get(name)
        beside = "new" if was is None else f"{ratio / was:.2f} of the baseline's {was:.4g}"
        lines.append(f"{name:<12} {ratio:>10.4g}  {beside:<36} {MEANINGS[name]}")
    return "\n".join(lines)


def measured() -> dict[str, float]:
    """All ratios; larger is better."""
    from viewkeeper.spark.session import SparkSettings, start_spark

    loop, lab = Best(), Best()
    for _ in range(ROUNDS):
        loop.take(_loops_per_second)
        lab.take(_simulated_per_second)
    with start_spark(SparkSettings(master="local[2]")) as spark:
        updates, few, load, anew = _pipeline(loop, spark)
    return {
        "updates": updates.value / loop.value,
        "few_updates": few.value / anew.value,
        "load": load.value / loop.value,
        "lab": lab.value / loop.value,
    }


class Best:
    """The largest rate that was seen."""

    def __init__(self) -> None:
        self.value = 0.0

    def take(self, rate: Callable[[], float]) -> None:
        self.value = max(self.value, rate())


def _pipeline(loop: Best, spark: Any) -> tuple[Best, Best, Best, Best]:
    """Rates of a backlog, of a small batch, of the load, and of Spark computing the view anew."""
    from peers.task import Task
    from peers.viewkeeper_peer import Databases, caught_up
    from peers.workload import Sizes, write_workload

    from viewkeeper.project.keeper import Keeper

    names = [f"{kind}{number}" for number in range(ROUNDS + 1) for kind in ("many", "few")]
    lengths = [(name, UPDATES if name.startswith("many") else FEW_UPDATES) for name in names]
    updates, few, load, anew = Best(), Best(), Best(), Best()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="viewkeeper-")))
        write_workload(folder / "data", ORDERS, lengths, SEED)
        task = Task("", "join", folder / "data", folder / "run", tuple(names))
        task.scratch.mkdir()
        databases = Databases(stack, task)
        sizes = Sizes.of(ORDERS)
        rows = sizes.orders + sizes.customers + sizes.regions
        project = databases.project(task)
        for number in range(LOADS):
            (project / "viewkeeper.toml").write_text(
                _elsewhere((project / "viewkeeper.toml").read_text(), number)
            )
            with Keeper.open(project, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
                load.take(lambda: rows / _work(pipeline.load))
        keeper = stack.enter_context(Keeper.open(project, allow_setup=True))
        for name in names:
            databases.write(task.changes(name))
            with keeper.pipeline() as pipeline:
                before = cpu_seconds(os.getpid())
                seconds = caught_up(pipeline, name, task.updates(name)).seconds
                work = cpu_seconds(os.getpid()) - before
            # The first two warm everything.
            if not name.endswith("0"):
                if name.startswith("many"):
                    updates.take(lambda: UPDATES / work)  # noqa: B023  (used at once)
                else:
                    few.take(lambda: 1 / seconds)  # noqa: B023
            loop.take(_loops_per_second)
            anew.take(lambda: 1 / _seconds(lambda: _refresh(spark, task, names[-1])))
    return updates, few, load, anew


def _elsewhere(text: str, number: int) -> str:
    """The project with another warehouse: the next load is one."""
    rest = "\n".join(
        line for line in text.splitlines() if not line.startswith(("path =", "[warehouse]"))
    )
    return f'[warehouse]\npath = "warehouse-{number}"\n{rest}\n'


def _refresh(spark: Any, task: Any, stream: str) -> None:
    names = {}
    for relation in ("orders", "customers", "regions"):
        spark.bulk.read.parquet(str(task.after(stream, relation))).createOrReplaceTempView(relation)
        names[relation] = relation
    out = str(task.scratch / "anew")
    spark.bulk.sql(task.sql(**names)).write.mode("overwrite").parquet(out)


def _seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _work(action: Callable[[], Any]) -> float:
    """CPU seconds of all our processes meanwhile."""
    before = cpu_seconds(os.getpid())
    action()
    return cpu_seconds(os.getpid()) - before


def _own_work(action: Callable[[], Any]) -> float:
    """CPU seconds of this thread alone."""
    started = time.thread_time()
    action()
    return time.thread_time() - started


def _loops_per_second() -> float:
    """A plain loop of the kind of work that rows make: tuples, dictionaries, integers, texts."""

    def loop() -> None:
        found: dict[tuple[int, str], int] = {}
        for number in range(200_000):
            key = (number % 5_000, f"name {number % 97}")
            found[key] = found.get(key, 0) + number
        sum(sorted(found.values()))

    return 1 / _own_work(loop)


def _simulated_per_second() -> float:
    from viewkeeper.protocols.registry import PROTOCOLS
    from viewkeeper.simulator.generator import Size
    from viewkeeper.simulator.run import simulated

    runs, protocol = 100, PROTOCOLS["batched-sweep"]
    return runs / _own_work(lambda: [simulated(protocol, seed, Size()) for seed in range(runs)])


@contextlib.contextmanager
def _slower_commits() -> Iterator[None]:
    """Every commit to a table takes half a second of work more: what the guard must notice."""
    from viewkeeper.warehouse.tables import Table

    commit = Table.commit

    def slower(self: Table, *arguments: Any, **named: Any) -> Any:
        until = time.perf_counter() + 0.5
        while time.perf_counter() < until:
            pass
        return commit(self, *arguments, **named)

    Table.commit = slower  # type: ignore[method-assign]
    try:
        yield
    finally:
        Table.commit = commit  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
