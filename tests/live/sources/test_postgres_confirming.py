"""Only what we confirmed is confirmed, also in the middle of a long transaction.

The log holds the rows of a long transaction before the commits of two short ones. When the reader
has confirmed the first short one and is in the middle of the long one, the driver with a replication
API of its own (psycopg2) takes the next keepalive for a reason to confirm the second one as well.
"""

import select
import struct
import time

import psycopg
import pytest

from viewkeeper.sources.postgres import backlog
from viewkeeper.sources.postgres.position import lsn_number
from viewkeeper.sources.postgres.stream import ReplicationStream
from viewkeeper.sources.urls import parse_source_url

KIND = "postgres"
SLOT = "viewkeeper_src"
MESSAGES_MAX = 8_000
PATIENCE_SECONDS = 300


@pytest.fixture
def log(database):
    """The log as described above, with a slot and a publication of the same name."""
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT, name TEXT)")
    writer.run(f"CREATE PUBLICATION {SLOT} FOR TABLE things")
    writer.run(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
    with psycopg.connect(database.url) as long:
        long.execute(
            f"INSERT INTO things SELECT n, repeat('x', 2000) FROM generate_series(1, {MESSAGES_MAX}) n"
        )
        writer.run("INSERT INTO things VALUES (-1, 'first')")
        writer.run("INSERT INTO things VALUES (-2, 'second')")
    yield writer
    writer.close()


def confirmed(writer):
    sql = f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{SLOT}'"
    return lsn_number(writer.fetch(sql)[0][0])


def read_slowly(writer, read, confirm, ask):
    """Confirm the first commit, read on; gives both short commits and all that was ever confirmed."""
    ends, seen = [], set()
    for count in range(MESSAGES_MAX):
        payload = read()
        if payload[:1] == b"C":
            ends.append(struct.unpack_from(">BQQQ", payload, 1)[2])
            if len(ends) == 1:
                confirm(ends[0])
        if count % 200 == 0:
            ask()
            time.sleep(0.02)  # slow on purpose: the server must be waiting to send
            seen.add(confirmed(writer))
    # The server may be slow to take note of the first one; then it is asked until it has.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while max(seen) < ends[0] and time.monotonic() < deadline:
        ask()
        time.sleep(0.02)
        seen.add(confirmed(writer))
    return ends, seen


def test_our_stream_confirms_nothing_by_itself(database, log, monkeypatch):
    monkeypatch.setattr(backlog, "BYTES_MIN", 1 << 40)
    stream = ReplicationStream("src", parse_source_url(database.url, "src"), SLOT, 0)

    def read():
        while not (payloads := stream.read(1)):
            stream.wait(1.0)
        return payloads[0]

    ends, seen = read_slowly(log, read, stream.confirm, lambda: stream._report(ask=True))
    stream.close()
    assert len(ends) == 2
    assert ends[0] in seen
    assert max(seen) == ends[0]


def test_psycopg2_confirms_a_transaction_that_nobody_stored(database, log):
    """Why we do not use it. If this fails one day, the driver was mended."""
    psycopg2 = pytest.importorskip("psycopg2")
    extras = pytest.importorskip("psycopg2.extras")
    connection = psycopg2.connect(
        database.url, connection_factory=extras.LogicalReplicationConnection
    )
    cursor = connection.cursor()
    cursor.start_replication(
        SLOT, options={"proto_version": "1", "publication_names": SLOT}, decode=False
    )

    def read():
        while (message := cursor.read_message()) is None:
            select.select([connection], [], [], 1.0)
        return message.payload

    ends, seen = read_slowly(
        log,
        read,
        lambda lsn: cursor.send_feedback(flush_lsn=lsn, force=True),
        lambda: cursor.send_feedback(reply=True),
    )
    connection.close()
    assert max(seen) >= ends[1]
