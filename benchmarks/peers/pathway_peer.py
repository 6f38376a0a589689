"""Pathway: an incremental dataflow in memory, fed from this process, its results thrown away.

Included: handing rows over from Python, the join (and the aggregate) in memory, on two threads. Not
included: capture, parsing, delivery of the result to anything durable (``pathway-stored`` writes it into
a file). A row of a region, a customer and
an order of their own follows every stream; when the view shows it, all before it has been worked in. What
a consumer sees are Pathway's closed times, so those are the states.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import Any

import pyarrow.parquet as pq

from peers.task import KEYS, RELATIONS, Measurement, Streamed, Task

SECONDS_MAX = 600.0
AUTOCOMMIT_MILLISECONDS = 50
_END = object()


def run(task: Task) -> Measurement:
    os.environ.setdefault("PATHWAY_THREADS", "2")
    import pathway as pw

    answer = Measurement(f"Pathway {pw.__version__}")
    subjects = {relation: _subject(pw) for relation in RELATIONS}
    tables = {
        relation: pw.io.python.read(
            subjects[relation],
            schema=_schema(pw, relation),
            autocommit_duration_ms=AUTOCOMMIT_MILLISECONDS,
        )
        for relation in RELATIONS
    }
    view = _view(pw, task, tables)
    watch, recorder = _Watch(), _Recorder()
    pw.io.subscribe(view.filter(view.is_marker), watch.change, on_time_end=watch.closed)
    if task.moves:
        pw.io.subscribe(view, recorder.change)
    elif "stored" in task.peer:
        pw.io.csv.write(view, task.scratch / "view.csv")
    else:
        pw.io.null.write(view)
    driver = threading.Thread(target=_drive, args=(task, subjects, watch, answer, recorder))
    driver.start()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, terminate_on_error=True)
    driver.join()
    if task.moves:
        answer.states = recorder.states()
    return answer


def _drive(
    task: Task, subjects: dict[str, Any], watch: _Watch, answer: Measurement, recorder: _Recorder
) -> None:
    try:
        base: list[tuple[str, Any, Any]] = [
            (relation, None, row)
            for relation in RELATIONS
            for row in pq.read_table(task.base(relation)).to_pylist()
        ]
        answer.load_seconds = _brought_in("base", base, subjects, watch, False)
        recorder.begins_after = watch.shown["marker base"]
        for stream in task.streams:
            changes = [(c["relation"], c["before"], c["after"]) for c in task.changes(stream)]
            seconds = _brought_in(stream, changes, subjects, watch, task.moves)
            answer.streams.append(Streamed(stream, len(changes), seconds))
    finally:
        for subject in subjects.values():
            subject.waiting.put(_END)


def _brought_in(
    name: str, changes: list[Any], subjects: dict[str, Any], watch: _Watch, one_by_one: bool
) -> float:
    """Seconds from the first row handed over to the moment when the view shows what came last."""
    number = -1 - abs(hash(name)) % 1_000_000_000
    marker: dict[str, dict[str, Any]] = {
        "orders": {"o_id": number, "cust_id": number, "qty": 0},
        "customers": {"cust_id": number, "name": "marker", "region_id": number},
        "regions": {"region_id": number, "rname": f"marker {name}"},
    }
    started = time.perf_counter()
    for relation, before, after in changes:
        subjects[relation].waiting.put((before, after, one_by_one))
    for relation, row in marker.items():
        subjects[relation].waiting.put((None, row, True))
    watch.wait_for(f"marker {name}")
    return time.perf_counter() - started


class _Watch:
    """Sees rows that were put in to be seen, and when Pathway is through with the time of each."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}
        self._closed = -1
        self._news = threading.Condition()

    def change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            self.shown[row["rname"]] = time

    def closed(self, time: int) -> None:
        with self._news:
            self._closed = max(self._closed, time)
            self._news.notify_all()

    def wait_for(self, marker: str) -> None:
        with self._news:
            done = self._news.wait_for(
                lambda: marker in self.shown and self.shown[marker] <= self._closed, SECONDS_MAX
            )
        if not done:
            raise TimeoutError(f"Pathway was not done after {SECONDS_MAX} s")


class _Recorder:
    """Signed rows by the time at which they were shown."""

    def __init__(self) -> None:
        self._by_time: dict[int, list[list[Any]]] = {}
        self.begins_after = 0

    def change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if not row["is_marker"]:
            values = [row["o_id"], row["qty"], row["name"], row["rname"]]
            self._by_time.setdefault(time, []).append([1 if is_addition else -1, values])

    def states(self) -> list[list[list[Any]]]:
        moments = sorted(moment for moment in self._by_time if moment > self.begins_after)
        return [self._by_time[moment] for moment in moments]


def _subject(pw: Any) -> Any:
    class Subject(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(session_type="upsert")
            self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def run(self) -> None:
            while (item := self.waiting.get()) is not _END:
                before, after, is_committed = item
                if after is None:
                    self.delete(**before)
                else:
                    self.next(**after)
                if is_committed:
                    self.commit()

    return Subject()


def _schema(pw: Any, relation: str) -> Any:
    columns = {
        name: pw.column_definition(
            dtype=str if name in ("name", "rname") else int, primary_key=name == KEYS[relation]
        )
        for name in RELATIONS[relation]
    }
    return pw.schema_builder(columns, name=relation)


def _view(pw: Any, task: Task, tables: dict[str, Any]) -> Any:
    orders, customers, regions = (tables[relation] for relation in RELATIONS)
    bought = orders.join(customers, orders.cust_id == customers.cust_id).select(
        orders.o_id, orders.qty, customers.name, customers.region_id
    )
    joined = bought.join(regions, bought.region_id == regions.region_id).select(
        bought.o_id, bought.qty, bought.name, regions.rname
    )
    if task.view == "join":
        return joined.with_columns(is_marker=joined.o_id < 0)
    totals = joined.groupby(joined.rname).reduce(
        joined.rname, total=pw.reducers.sum(joined.qty), orders=pw.reducers.count()
    )
    return totals.with_columns(is_marker=totals.rname.str.startswith("marker"))
