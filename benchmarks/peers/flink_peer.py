"""Apache Flink SQL: an incremental join, fed from files of changes, its results thrown away.

Included: parsing JSON, the join (and the aggregate) in memory. Not included: capture, delivery of the
result to anything durable, checkpoints. Flink starts with the files' appearance; it is done when no
operator reads or writes any more. In the run for states the results are printed, one line for each.
"""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from peers.task import KEYS, RELATIONS, Measurement, Streamed, Task

COLUMN_TYPES = {"name": "STRING", "rname": "STRING"}
POLL_SECONDS = 0.05
# So long nothing may have moved before a stream counts as done; not part of what is measured.
QUIET_SECONDS = 2.0
SETTLE_SECONDS_MAX = 600.0


def run(task: Task) -> Measurement:
    from pyflink.version import __version__

    port = _free_port()
    tables = _environment(port, parallelism=1 if task.moves else 2, batches="batched" in task.peer)
    for relation in RELATIONS:
        (task.scratch / "in" / relation).mkdir(parents=True)
        tables.execute_sql(_input(task, relation))
    tables.execute_sql(_output(task))
    # Written where Flink does not look, and moved there as a whole when it is their turn.
    for relation in RELATIONS:
        rows = (
            {"before": None, "after": row, "op": "c"}
            for batch in pq.ParquetFile(task.base(relation)).iter_batches()
            for row in batch.to_pylist()
        )
        _write(task, "base", relation, rows)
    for stream in task.streams:
        changes = list(task.changes(stream))
        for relation in RELATIONS:
            mine = [_debezium(change) for change in changes if change["relation"] == relation]
            if mine:
                _write(task, stream, relation, mine)
    job = tables.execute_sql(f"INSERT INTO view_out {task.sql()}").get_job_client()
    watch = _Watch(port, job.get_job_id())
    watch.started()
    answer = Measurement(f"Flink {__version__}", load_seconds=_brought_in(task, "base", watch))
    lines_before = _printed(task)
    for stream in task.streams:
        seconds = _brought_in(task, stream, watch)
        extra = {"records": watch.moved}
        answer.streams.append(Streamed(stream, task.updates(stream), seconds, extra=extra))
    if task.moves:
        _sync_output()
        answer.states = [[line] for line in _signed(_printed(task)[len(lines_before) :])]
    job.cancel().result()
    return answer


def _environment(port: int, parallelism: int, batches: bool) -> Any:
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    settings = {
        "parallelism.default": str(parallelism),
        "rest.port": str(port),
        "rest.bind-address": "127.0.0.1",
        "metrics.fetcher.update-interval": "50",
        "taskmanager.numberOfTaskSlots": "2",
        "taskmanager.memory.network.max": "128m",
    }
    if batches:
        settings |= {
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": "200 ms",
            "table.exec.mini-batch.size": "5000",
        }
    for name, value in settings.items():
        configuration.set_string(name, value)
    chosen = EnvironmentSettings.new_instance().in_streaming_mode()
    return TableEnvironment.create(chosen.with_configuration(configuration).build())


def _input(task: Task, relation: str) -> str:
    columns = ", ".join(f"{c} {COLUMN_TYPES.get(c, 'BIGINT')}" for c in RELATIONS[relation])
    return (
        f"CREATE TABLE {relation} ({columns}, PRIMARY KEY ({KEYS[relation]}) NOT ENFORCED) WITH ("
        f"'connector' = 'filesystem', 'path' = 'file://{task.scratch}/in/{relation}', "
        "'format' = 'debezium-json', 'source.monitor-interval' = '20 ms')"
    )


def _output(task: Task) -> str:
    columns = {
        "join": "o_id BIGINT, qty BIGINT, name STRING, rname STRING",
        "totals": "rname STRING, total BIGINT, orders BIGINT",
    }[task.view]
    connector = "'print', 'print-identifier' = 'state'" if task.moves else "'blackhole'"
    return f"CREATE TABLE view_out ({columns}) WITH ('connector' = {connector})"


def _debezium(change: dict[str, Any]) -> dict[str, Any]:
    before, after = change["before"], change["after"]
    operation = "c" if before is None else "d" if after is None else "u"
    return {"before": before, "after": after, "op": operation}


def _write(task: Task, stream: str, relation: str, rows: Iterable[dict[str, Any]]) -> None:
    path = _waiting(task, stream, relation)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _waiting(task: Task, stream: str, relation: str) -> Path:
    return task.scratch / "waiting" / stream / f"{relation}.json"


def _brought_in(task: Task, stream: str, watch: _Watch) -> float:
    """Seconds from the files' appearance to the last record that moved."""
    before = watch.counts()
    started = time.perf_counter()
    for relation in RELATIONS:
        path = _waiting(task, stream, relation)
        if path.exists():
            os.rename(path, task.scratch / "in" / relation / f"{stream}.json")
    return watch.settled(before) - started


class _Watch:
    """Looks at a running job from outside, through Flink's own REST interface."""

    def __init__(self, port: int, job: Any) -> None:
        self._url = f"http://127.0.0.1:{port}/jobs/{job}"
        self.moved: tuple[int, ...] = ()

    def started(self) -> None:
        while self._job().get("state") != "RUNNING" or any(
            vertex["status"] != "RUNNING" for vertex in self._job()["vertices"]
        ):
            time.sleep(POLL_SECONDS)

    def settled(self, first: tuple[int, ...]) -> float:
        """When the last record moved, by our clock; waits until some have and none has for a while."""
        last = first
        moment = time.perf_counter()
        deadline = moment + SETTLE_SECONDS_MAX
        while True:
            time.sleep(POLL_SECONDS)
            found, now = self.counts(), time.perf_counter()
            if found != last:
                last, moment = found, now
            elif last != first and now - moment > QUIET_SECONDS:
                self.moved = last
                return moment
            if now > deadline:
                raise TimeoutError(f"Flink was not done after {SETTLE_SECONDS_MAX} s")

    def counts(self) -> tuple[int, ...]:
        """Of every operator the records that it has read and written."""
        counts = []
        for vertex in self._job()["vertices"]:
            metrics = vertex["metrics"]
            counts += [metrics["read-records"], metrics["write-records"]]
        return tuple(counts)

    def _job(self) -> dict[str, Any]:
        with urllib.request.urlopen(self._url, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def _sync_output() -> None:
    time.sleep(QUIET_SECONDS)  # Java's standard output is a file: nothing tells when it is written


def _printed(task: Task) -> list[str]:
    if not task.moves:
        return []
    lines = (task.scratch / "output.txt").read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith("state")]


def _signed(lines: Iterable[str]) -> Iterator[list[Any]]:
    """Each printed row with its sign: ``state> +U[5, 1, customer 5, region 3]``."""
    for line in lines:
        kind, row = line.split("> ", 1)[1].split("[", 1)
        o_id, qty, name, rname = row.rstrip("]").split(", ", 3)
        yield [1 if kind.startswith("+") else -1, [int(o_id), int(qty), name, rname]]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
