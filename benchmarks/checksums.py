"""What checksums cost: the peers' stream and a read of a million rows, with them and without, in one process.

    python benchmarks/checksums.py [--rounds 8] [--updates 5000] [--json FILE]

Two projects over two sets of the same databases get the same changes. In one of them nothing is hashed, sealed, chained,
noted as a head or verified. They take turns, each the first one as often, so that whatever else the machine does meets
both. A ratio is that of the medians; the CPU time is that of this process alone, where all of it is computed.

On a busy machine these ratios of whole streams differ by more than checksums cost. So in the last rounds the functions
that hash, seal, chain and note heads are timed by themselves, in CPU time of their thread: ``share`` is the part of the
process's CPU time that they took. Page checksums are computed inside Arrow: a CRC of the same bytes stands for them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import statistics
import sys
import tempfile
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.task import Task
from peers.viewkeeper_peer import Databases, caught_up
from peers.workload import write_workload

from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, Schema
from viewkeeper.project import remembering
from viewkeeper.project.keeper import Keeper
from viewkeeper.warehouse import Definition, EpochCommit, Extent, Warehouse, datafiles
from viewkeeper.warehouse.storage import Storage

WITH, WITHOUT = "with", "without"
SEED, ORDERS, ROWS, READS, SHARES = 3, 100_000, 1_000_000, 15, 5
PLACE = "viewkeeper.warehouse"


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """A warehouse as it was before it had checksums."""
    write = pq.write_table

    def plain_name(purpose: str, content: object) -> str:
        return f"{purpose}-{uuid.uuid4().hex[:16]}.parquet"

    def plain_write(*given: Any, **options: Any) -> None:
        write(*given, **options | {"write_page_checksum": False})

    def plain_open(storage: Storage, path: str, size: int, whose: str) -> pq.ParquetFile:
        # The same bytes from the same memory, so that what differs is the hash.
        with storage.filesystem.open_input_file(path) as source:
            return pq.ParquetFile(pa.BufferReader(source.read_buffer(size)))

    instead: dict[str, Any] = {
        **{
            f"{module}.checked_name": plain_name for module in ("datafiles", "ledger", "publishing")
        },
        **{f"{module}.opened": plain_open for module in ("reading", "ledger")},
        **{f"{module}.seal_of": lambda files: "" for module in ("reading", "writer", "commits")},
        **{f"{module}.resealed": lambda *given: "" for module in ("commits", "consolidation")},
        **{f"{module}.chained": lambda entry, before: entry for module in ("writer", "ledger")},
        "writer.write_head": lambda storage, entry: None,
        "dataframes.verified": mock.Mock(),
        "datafiles.pq.write_table": plain_write,
    }
    with contextlib.ExitStack() as stack:
        for name, replaced in instead.items():
            stack.enter_context(mock.patch(f"{PLACE}.{name}", replaced))
        stack.enter_context(mock.patch("viewkeeper.project.remembering.put"))
        yield


class Counted:
    """The CPU seconds that the functions of checksums take."""

    NAMES = (
        "checksums.checksum", "reading.seal_of", "writer.seal_of", "commits.seal_of", "commits.resealed",
        "consolidation.resealed", "writer.chained", "writer.write_head",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seconds = 0.0

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.seconds += time.thread_time() - started

        return timed

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        crc, encoded = self._timed(zlib.crc32), datafiles.encoded

        def encoded_with_crc(*given: Any, **options: Any) -> pa.Buffer:
            content = encoded(*given, **options)
            crc(content)
            return content

        with contextlib.ExitStack() as stack:
            for name in self.NAMES:
                module, _, function = name.partition(".")
                right = getattr(importlib.import_module(f"{PLACE}.{module}"), function)
                stack.enter_context(mock.patch(f"{PLACE}.{name}", self._timed(right)))
            for module in ("datafiles", "ledger"):
                stack.enter_context(mock.patch(f"{PLACE}.{module}.encoded", encoded_with_crc))
            put = self._timed(remembering.put)
            stack.enter_context(mock.patch("viewkeeper.project.remembering.put", put))
            yield


MODES: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    WITH: contextlib.nullcontext,
    WITHOUT: unchecked,
}


@dataclass
class Times:
    """Seconds of both, by the clock and of this process."""

    wall: dict[str, list[float]] = field(default_factory=lambda: {WITH: [], WITHOUT: []})
    cpu: dict[str, list[float]] = field(default_factory=lambda: {WITH: [], WITHOUT: []})
    # Of whole streams, the part that checksums took.
    shares: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def taken(self, mode: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall[mode].append(time.perf_counter() - wall)
        self.cpu[mode].append(time.process_time() - cpu)

    def as_dict(self) -> dict[str, Any]:
        return {
            "cpu_ratio": _ratio(self.cpu, statistics.median),
            "cpu_ratio_of_the_best": _ratio(self.cpu, min),
            "wall_ratio": _ratio(self.wall, statistics.median),
            "wall_ratio_of_the_best": _ratio(self.wall, min),
            "cpu_seconds": {mode: round(statistics.median(s), 4) for mode, s in self.cpu.items()},
            "rounds": len(self.cpu[WITH]),
            **({"share": round(statistics.median(self.shares), 4)} if self.shares else {}),
        }


def _ratio(seconds: dict[str, list[float]], chosen: Callable[[list[float]], float]) -> float:
    return round(chosen(seconds[WITH]) / chosen(seconds[WITHOUT]), 4)


def in_turns(number: int) -> tuple[str, str]:
    return (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH)


def stream(folder: Path, rounds: int, updates: int) -> Times:
    """The peers' join, kept through one stream of updates after the other."""
    times, names = Times(), tuple(f"stream{number}" for number in range(rounds + 2))
    shares = tuple(f"share{number}" for number in range(SHARES))
    lengths = [(name, updates) for name in (*names, *shares)]
    write_workload(folder / "data", ORDERS, lengths, SEED)
    with contextlib.ExitStack() as stack:
        sides: dict[str, tuple[Task, Databases, Keeper]] = {}
        for mode in MODES:
            task = Task("", "join", folder / "data", folder / mode, (*names, *shares))
            task.scratch.mkdir()
            databases = Databases(stack, task)
            with MODES[mode]():
                project = databases.project(task)
                keeper = stack.enter_context(Keeper.open(project, allow_setup=True))
                with keeper.pipeline() as pipeline:
                    pipeline.load()
            sides[mode] = task, databases, keeper
        for number, name in enumerate(names):
            for mode in in_turns(number):
                task, databases, keeper = sides[mode]
                databases.write(task.changes(name))
                counted = times if number >= 2 else Times()  # the first two warm everything
                with MODES[mode](), keeper.pipeline() as pipeline, counted.taken(mode):
                    caught_up(pipeline, name, task.updates(name))
        for name in shares:
            task, databases, keeper = sides[WITH]
            databases.write(task.changes(name))
            counted_cpu, spent = Counted(), Times()
            with counted_cpu.on(), keeper.pipeline() as pipeline, spent.taken(WITH):
                caught_up(pipeline, name, task.updates(name))
            times.shares.append(counted_cpu.seconds / spent.cpu[WITH][0])
    return times


def read(folder: Path) -> Times:
    """A view of a million rows, as Arrow."""
    times = Times()
    schema = Schema.of(id=INTEGER, name=STRING, amount=DOUBLE, qty=INTEGER)
    ids = np.arange(ROWS)
    rows = pa.table(
        {
            "id": pa.array(ids),
            "name": pa.array([f"name {number % 977}" for number in ids]),
            "amount": pa.array(np.random.default_rng(SEED).random(ROWS)),
            "qty": pa.array(ids % 1_000),
            "_count": pa.array(np.ones(ROWS, np.int64)),
        }
    )
    warehouses = {mode: Warehouse.create(folder / f"read-{mode}") for mode in MODES}
    for mode, warehouse in warehouses.items():
        commit = EpochCommit(1, 0, {"v": Extent(rows)}, definitions={"v": Definition(schema, "S")})
        with MODES[mode](), warehouse.writer() as writer:
            writer.commit(commit)
    for number in range(READS + 2):
        for mode in in_turns(number):
            counted = times if number >= 2 else Times()
            with MODES[mode](), counted.taken(mode):
                found = warehouses[mode].read_arrow("v", with_count=True).num_rows
            assert found == ROWS
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--updates", type=int, default=5_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="viewkeeper-checksums-") as name:
        folder = Path(name)
        found = {"read": read(folder).as_dict()}
        print(json.dumps(found, indent=1), flush=True)
        found["stream"] = stream(folder, options.rounds, options.updates).as_dict()
    print(json.dumps(found, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
