"""What `check` says of a server's log, decided on the values of its variables and on bytes of its events."""

from __future__ import annotations

import struct
import zlib
from types import SimpleNamespace

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.sources.mariadb import binlog, snapshot
from viewkeeper.sources.mariadb.feed import MariaDBFeed
from viewkeeper.sources.mariadb.position import Place
from viewkeeper.sources.mariadb.preflight import event_findings, log_findings
from viewkeeper.sources.mariadb.snapshot import snapshot_place

GOOD = {
    "log_bin": "ON",
    "binlog_expire_logs_seconds": "604800",
    "max_allowed_packet": str(1 << 28),
    "wsrep_on": "OFF",
}
# Of MariaDB 12.3: parts of a row event that is too large for one.
PARTIAL_ROWS = 172


def event(kind: int, flags: int = 0) -> binlog.Event:
    """An event as it stands in the log: header, body and checksum."""
    body = b"\0" * 8
    size = binlog.HEADER_BYTES + len(body) + binlog.CHECKSUM_BYTES
    packet = struct.pack("<IBIIIH", 1_700_000_000, kind, 1, size, 4 + size, flags) + body
    parsed, _ = binlog.parse_event(packet + struct.pack("<I", zlib.crc32(packet)))
    return parsed


def codes(found) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in found]


@pytest.mark.parametrize("engine", [{}, {"binlog_storage_engine": ""}])
def test_a_log_in_files_is_good(engine):
    assert codes(log_findings("crm", GOOD | engine)) == []


@pytest.mark.parametrize("engine", ["innodb", "InnoDB"])
def test_a_log_in_a_storage_engine_is_refused(engine):
    (finding,) = log_findings("crm", GOOD | {"binlog_storage_engine": engine})
    assert (finding.code, finding.severity) == ("log-in-engine", "refused")
    assert engine in finding.message
    assert "binlog_storage_engine" in finding.fix


def test_what_was_refused_before_still_is():
    bad = {"log_bin": "OFF", "binlog_expire_logs_seconds": "60", "wsrep_on": "ON"}
    found = codes(log_findings("crm", GOOD | bad))
    assert found == [("no-binary-log", "refused"), ("short-log", "warning"), ("galera", "refused")]


def test_a_place_in_such_a_log_is_a_named_stop_and_no_number_that_fails(monkeypatch):
    told = [("Binlog_snapshot_file", "binlog-000001.ibb"), ("Binlog_snapshot_position", "77")]
    monkeypatch.setattr(snapshot, "rows", lambda link, sql: told)
    with pytest.raises(SourceError) as caught:
        snapshot_place(None, "crm")
    assert (caught.value.code, caught.value.retryable) == ("log-in-engine", False)
    told[0] = ("Binlog_snapshot_file", "binlog.000001")
    assert snapshot_place(None, "crm") == Place("binlog.000001", 77)


def test_events_that_a_feed_would_stop_at_are_named_by_a_check():
    known = [event(kind) for kind in sorted(binlog.UNDERSTOOD)]
    assert codes(event_findings(known)) == []
    marked = event(PARTIAL_ROWS, flags=binlog.IGNORABLE)
    assert codes(event_findings([*known, marked])) == []
    (finding,) = event_findings([*known, event(PARTIAL_ROWS), event(200), event(200)])
    assert (finding.code, finding.severity) == ("unknown-event", "refused")
    assert "172, 200" in finding.message


def test_a_feed_stops_at_such_an_event_by_name():
    events = [event(PARTIAL_ROWS)]
    stream = SimpleNamespace(
        next=lambda seconds: events.pop() if events else None,
        file="binlog.000001", offset=4, born=1, close=lambda: None,
    )  # fmt: skip
    around = SimpleNamespace(relations={}, charsets={}, table=None, is_durable=None)
    feed = MariaDBFeed("crm", stream, Place("binlog.000001", 4), {}, around)
    with pytest.raises(SourceError) as caught:
        feed.poll(0)
    assert (caught.value.code, caught.value.retryable) == ("unknown-event", False)
