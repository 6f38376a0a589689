"""Figures of a run in Prometheus' text form, served on loopback.

Fed by the same events that the terminal and ``--json`` show, so all of them tell the same story.
"""

from __future__ import annotations

import datetime as dt
import http.server
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from viewkeeper import run_events as ev
from viewkeeper.addresses import names_this_machine
from viewkeeper.reports.standing import approvals_of, freshness_seconds

Labels = tuple[tuple[str, str], ...]

# How many scrapes are answered at once, and how long one may take to ask.
REQUESTS_MAX = 16
REQUEST_SECONDS_MAX = 10.0

# Name, kind, what it means.
METRICS: tuple[tuple[str, str, str], ...] = (
    ("viewkeeper_transactions_total", "counter", "Source transactions applied to the views."),
    ("viewkeeper_changed_rows_total", "counter", "Rows changed at the sources, applied."),
    ("viewkeeper_epochs_total", "counter", "Epochs committed to the warehouse."),
    ("viewkeeper_frontier", "gauge", "Number of the newest transaction in the warehouse."),
    (
        "viewkeeper_freshness_seconds",
        "gauge",
        "Age of the oldest committed transaction that a view does not show yet; 0 when none waits.",
    ),
    (
        "viewkeeper_view_freshness_seconds",
        "gauge",
        "Age of the oldest committed transaction that this view does not show yet.",
    ),
    (
        "viewkeeper_latency_seconds",
        "gauge",
        "Age of the newest transaction when it became visible, in the last epoch.",
    ),
    (
        "viewkeeper_pending_approvals",
        "gauge",
        "Schema changes that wait for somebody's word; the views that they concern stand still.",
    ),
    ("viewkeeper_phase_seconds_total", "counter", "Time spent, by phase of a cycle."),
    ("viewkeeper_source_queries_total", "counter", "Questions asked, by source."),
    ("viewkeeper_source_rows_total", "counter", "Rows fetched, by source."),
    ("viewkeeper_source_waits_total", "counter", "Times a source had to be waited for."),
    ("viewkeeper_view_stopped", "gauge", "1 while a view's source can't go on for it."),
    ("viewkeeper_view_rebuilds_total", "counter", "Times a view was filled anew on request."),
    ("viewkeeper_view_audits_total", "counter", "Times a view was checked by its run."),
    ("viewkeeper_view_differs", "gauge", "1 while a view's last audit found differences."),
    ("viewkeeper_view_rows_inserted_total", "counter", "Rows put into a view."),
    ("viewkeeper_view_rows_deleted_total", "counter", "Rows taken out of a view."),
)


class Metrics:
    """Counters and gauges by name and labels. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, Labels], float] = {}
        # What the run last said of what its views do not show.
        self._standing: Mapping[str, Any] = {}

    def on_event(self, event: ev.RunEvent) -> None:
        with self._lock:
            match event:
                case ev.BatchCommitted():
                    self._batch(event)
                case ev.ViewsStopped(views):
                    for view in views:
                        self._set("viewkeeper_view_stopped", 1, view=view)
                case ev.ViewsRebuilt(views):
                    for view in views:
                        self._set("viewkeeper_view_stopped", 0, view=view)
                        self._add("viewkeeper_view_rebuilds_total", 1, view=view)
                case ev.ViewAudited(view, verdict):
                    self._add("viewkeeper_view_audits_total", 1, view=view)
                    if verdict != "unknown":
                        self._set("viewkeeper_view_differs", verdict == "different", view=view)
                case ev.StandingChanged():
                    self._standing = event.as_fields()
                    self._set("viewkeeper_pending_approvals", len(approvals_of(self._standing)))
                case ev.SourceWentAway(error):
                    source = str(error.get("source", ""))
                    self._add("viewkeeper_source_waits_total", 1, source=source)

    def _batch(self, batch: ev.BatchCommitted) -> None:
        self._add("viewkeeper_transactions_total", batch.transactions)
        self._add("viewkeeper_changed_rows_total", batch.rows)
        self._add("viewkeeper_epochs_total", 1)
        self._set("viewkeeper_frontier", batch.txn)
        self._set("viewkeeper_latency_seconds", batch.freshness_seconds)
        for phase, seconds in batch.seconds.items():
            self._add("viewkeeper_phase_seconds_total", seconds, phase=phase)
        for source, asked in batch.asked.items():
            self._add("viewkeeper_source_queries_total", asked["queries"], source=source)
            self._add("viewkeeper_source_rows_total", asked["rows"], source=source)
        for view, changed in batch.changed.items():
            self._add("viewkeeper_view_rows_inserted_total", changed["inserted"], view=view)
            self._add("viewkeeper_view_rows_deleted_total", changed["deleted"], view=view)

    def _freshness(self, now: dt.datetime) -> dict[tuple[str, Labels], float]:
        """As of now: what waits grows old also while nothing is told."""
        ages = {
            v: freshness_seconds(self._standing, v, now) or 0.0
            for v in self._standing.get("views", ())
        }
        name = "viewkeeper_view_freshness_seconds"
        found = {(name, (("view", view),)): age for view, age in ages.items()}
        return found | {("viewkeeper_freshness_seconds", ()): max(ages.values(), default=0.0)}

    def _add(self, name: str, by: float, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        self._values[key] = self._values.get(key, 0) + by

    def _set(self, name: str, value: float, **labels: str) -> None:
        self._values[name, tuple(sorted(labels.items()))] = value

    def text(self) -> str:
        """The exposition that Prometheus reads."""
        return "".join(line + "\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        with self._lock:
            values = self._values | self._freshness(dt.datetime.now(dt.UTC))
        for name, kind, meaning in METRICS:
            yield f"# HELP {name} {meaning}"
            yield f"# TYPE {name} {kind}"
            for (found, labels), value in sorted(values.items()):
                if found == name:
                    yield f"{name}{_braced(labels)} {value:g}"


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Limited(http.server.ThreadingHTTPServer):
    """Answers some requests at once and no more: every connection has a thread of the run's process."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._room = threading.BoundedSemaphore(REQUESTS_MAX)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that went away, or sent no HTTP: nothing of ours


class MetricsServer:
    """Serves ``/metrics`` on 127.0.0.1 while it is entered; ``port`` 0 takes any free one."""

    def __init__(self, metrics: Metrics, port: int) -> None:
        handler = _handler_for(metrics)
        self._server = _Limited(("127.0.0.1", port), handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_for(metrics: Metrics) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS_MAX

        def do_GET(self) -> None:
            if not names_this_machine(self.headers.get("host", "")):
                self.send_error(403, "it answers to this machine's own names only")
                return
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass  # a scrape every few seconds is no news

    return Handler
