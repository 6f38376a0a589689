import contextlib
import datetime as dt
import http.client
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from event_samples import run_event
from viewkeeper.reports import metrics as metrics_module
from viewkeeper.reports.metrics import Metrics, MetricsServer
from viewkeeper.run_events import RunEvent

BATCH = run_event(
    "batch",
    asked={"shop": {"queries": 2, "keys": 4, "rows": 9}},
    changed={'odd"view': {"inserted": 6, "deleted": 1}},
)


def test_batches_add_up_and_labels_are_escaped():
    metrics = Metrics()
    metrics.on_event(BATCH)
    metrics.on_event(BATCH)
    metrics.on_event(run_event("source_waiting", error={"source": "crm"}))
    text = metrics.text()
    assert "viewkeeper_transactions_total 6\n" in text
    assert "viewkeeper_frontier 42\n" in text
    assert 'viewkeeper_source_rows_total{source="shop"} 18\n' in text
    assert 'viewkeeper_view_rows_inserted_total{view="odd\\"view"} 12\n' in text
    assert 'viewkeeper_source_waits_total{source="crm"} 1\n' in text
    assert "# TYPE viewkeeper_epochs_total counter\n" in text


def freshness(metrics: Metrics, name: str = "viewkeeper_freshness_seconds") -> float:
    lines = [line for line in metrics.text().splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].split()[-1])


def test_freshness_is_the_age_of_what_is_not_shown_also_while_nothing_moves():
    metrics = Metrics()
    metrics.on_event(BATCH)
    assert freshness(metrics) == 0
    assert freshness(metrics, "viewkeeper_latency_seconds") == 0.25
    since = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=10)
    metrics.on_event(standing(since.isoformat()))
    assert 600 <= freshness(metrics) < 6000
    before = freshness(metrics)
    while freshness(metrics) == before:
        pass  # nothing is told, and it grows all the same
    assert 'viewkeeper_view_freshness_seconds{view="other"} 0\n' in metrics.text()
    assert freshness(metrics, "viewkeeper_pending_approvals") == 1
    metrics.on_event(standing(None, approvals=[]))
    assert freshness(metrics) == 0
    assert freshness(metrics, "viewkeeper_pending_approvals") == 0


def standing(since: str | None, **news: object) -> RunEvent:
    views = {"frozen": since, "other": None}
    return run_event(
        "standing", **{"views": views, "sources": {}, "approvals": [{"id": "7"}]} | news
    )


def test_the_server_answers_on_loopback_and_knows_one_page():
    metrics = Metrics()
    metrics.on_event(BATCH)
    with MetricsServer(metrics, 0) as server:
        url = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            assert answer.read().decode() == metrics.text()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/")


@pytest.mark.parametrize(
    "host", ["keeper.example", "", "[", "127.0.0.1.example:9", "x@127.0.0.1", "localhost#.example"]
)
def test_a_foreign_name_opens_no_metrics(host):
    """A page of another site can point its own name to this machine; a browser then sends that name."""
    metrics = Metrics()
    metrics.on_event(BATCH)
    with MetricsServer(metrics, 0) as server:
        for own in ("localhost", f"127.0.0.1:{server.port}", "[::1]"):
            assert asked(server.port, own)[0] == 200
        status, body = asked(server.port, host)
    assert status == 403
    assert b"viewkeeper_" not in body


def asked(port: int, host: str) -> tuple[int, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    link.putrequest("GET", "/metrics", skip_host=True)
    link.putheader("Host", host)
    link.endheaders()
    answer = link.getresponse()
    return answer.status, answer.read()


def test_half_open_connections_cost_a_run_few_threads_and_keep_nobody_out_for_long(monkeypatch):
    monkeypatch.setattr(metrics_module, "REQUEST_SECONDS_MAX", 0.5)
    before = threading.active_count()
    with MetricsServer(Metrics(), 0) as server, contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=600))
        assert threading.active_count() - before <= metrics_module.REQUESTS_MAX + 1
        url = f"http://127.0.0.1:{server.port}/metrics"
        deadline = time.monotonic() + 600
        while True:
            try:
                with urllib.request.urlopen(url, timeout=600) as answer:
                    assert answer.status == 200
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
