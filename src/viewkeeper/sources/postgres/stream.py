"""The replication protocol of PostgreSQL over libpq: payloads in, confirmations out.

Written on psycopg's libpq layer because of the confirmations. The driver with a replication API of
its own (psycopg2) moves the confirmed position forward by itself when a keepalive comes and the last
message began before it; but messages of a transaction carry the places of its rows, not of its
commit, so a whole transaction that is stored nowhere can be confirmed. Here a position is confirmed
when `confirm` is called, and at no other time.

Much that waits already is read by questions first (`backlog`); the reader sees one stream.
"""

from __future__ import annotations

import select
import struct
import time
from contextlib import suppress

import psycopg
from psycopg import pq

from viewkeeper.errors import SourceError
from viewkeeper.sources.postgres import backlog
from viewkeeper.sources.postgres.backlog import Backlog
from viewkeeper.sources.postgres.connection import SETTINGS, connection_string, translated
from viewkeeper.sources.postgres.position import feed_gap
from viewkeeper.sources.urls import SourceUrl
from viewkeeper.sources.wire import Malformed

# The server answers a request for a keepalive in milliseconds; a link silent for this long is dead.
SILENCE_SECONDS_MAX = 6.0
# Decoding what a question is for may take so long, before a word is said; then the stream is tried.
QUESTION_SECONDS_MAX = 30.0
# How soon an idle stream asks where the server stands. The server tells by itself when it moves on;
# asking makes up for what it does not tell, less and less often while nothing happens.
ASK_FIRST_SECONDS, ASK_MOST_SECONDS = 0.02, 1.0
# The server closes a stream that says nothing for wal_sender_timeout.
REPORT_EVERY_SECONDS = 5.0

# There is no such slot; or the server gave up keeping its log.
_SLOT_LOST = ("42704", "55000")
_DATA, _KEEPALIVE = b"wk"
_HEADER_BYTES = 25  # kind, start, end, time
_KEEPALIVE_MESSAGE = struct.Struct(">xQQB")
_REPORT = struct.Struct(">cQQQQB")
_PLACE = struct.Struct(">Q")


class ReplicationStream:
    """One slot's stream from an LSN on. ``sent_lsn``: everything up to here has been read."""

    def __init__(
        self, source: str, url: SourceUrl, slot: str, start_lsn: int, *, messages: bool = False
    ) -> None:
        """``messages``: with logical messages, which anybody may send."""
        self._source = source
        self.sent_lsn = 0
        self._confirmed_lsn = 0
        self._asked_at = self._reported_at = time.monotonic()
        # Since when a question is open: who was not polled for a while has not been silent.
        self._unanswered_since: float | None = None
        self._ask_after = ASK_FIRST_SECONDS
        self._slot, self._start_lsn = slot, start_lsn
        self._messages = "true" if messages else "false"
        try:
            self._connection = psycopg.Connection.connect(
                connection_string(url, SETTINGS, replication="database"), autocommit=True
            )
        except psycopg.Error as error:
            raise translated(error, source, "start its feed") from None
        self._pq = self._connection.pgconn
        # Not select, which knows the first 1,024 descriptors of a process only.
        self._arrivals = select.poll()
        self._arrivals.register(self._pq.socket, select.POLLIN)
        self._backlog: Backlog | None = None
        self._has_cancelled = False
        try:
            limit = self._backlog_limit()
            if limit is not None:
                self._backlog = Backlog(self._pq, slot, limit, self._messages)
                self._asked_at = time.monotonic()
        except psycopg.Error as error:
            self.close()
            raise self._lost(str(error)) from None
        if self._backlog is None:
            self._begin_stream()

    def _backlog_limit(self) -> int | None:
        """How far questions may reach; None where the stream may as well begin at once."""
        command = (
            "SELECT restart_lsn - '0/0', confirmed_flush_lsn - '0/0', pg_current_wal_flush_lsn() - '0/0' "
            f"FROM pg_replication_slots WHERE slot_name = '{self._slot}'"
        )
        result = self._pq.exec_(command.encode())
        if result.status != pq.ExecStatus.TUPLES_OK or not result.ntuples:
            return None
        values = [result.get_value(0, column) for column in range(3)]
        if None in values:
            return None
        restart, confirmed, newest = (int(value or 0) for value in values)
        limit = restart + backlog.BYTES_MAX
        # Questions begin where the slot was confirmed: what comes before the start is not to be seen again.
        is_worth_it = min(newest, limit) - confirmed >= backlog.BYTES_MIN
        return limit if is_worth_it and confirmed >= self._start_lsn else None

    def _begin_stream(self) -> None:
        start = max(self._start_lsn, self._backlog.end_lsn if self._backlog is not None else 0)
        self._backlog = None
        # Identifiers of slot and publication are ours: lower-case letters, digits, underscores.
        command = (
            f"START_REPLICATION SLOT {self._slot} LOGICAL {start >> 32:X}/{start & 0xFFFFFFFF:X} "
            f"(proto_version '1', publication_names '{self._slot}', messages '{self._messages}')"
        )
        try:
            result = self._pq.exec_(command.encode())
        except psycopg.Error as error:
            self.close()
            raise self._lost(str(error)) from None
        if result.status != pq.ExecStatus.COPY_BOTH:
            self.close()
            raise _refused(self._source, result)
        self._pq.nonblocking = 1
        self._asked_at = time.monotonic()
        if self._confirmed_lsn:
            self._report(ask=False)

    def read(self, most: int) -> list[bytes]:
        """Payloads that have arrived, at most this number, none of them empty; none when there are none yet.

        Raises Malformed for what is neither a payload nor a keepalive.
        """
        if self._backlog is not None:
            return self._read_backlog(self._backlog, most)
        found: list[bytes] = []
        has_looked = False
        get, add = self._pq.get_copy_data, found.append
        try:
            while len(found) < most:
                size, data = get(1)
                if size > 0:
                    kind = data[0]
                    if kind == _DATA and size > _HEADER_BYTES:
                        add(data[_HEADER_BYTES:].tobytes())
                    elif kind == _KEEPALIVE and size == _KEEPALIVE_MESSAGE.size:
                        self._unanswered_since = None
                        self._on_keepalive(data.tobytes())
                    else:
                        raise Malformed(f"the stream sent {size} bytes of the kind {kind}")
                elif size < 0:
                    raise self._lost(self._pq.get_error_message())
                elif has_looked:
                    break
                else:
                    # Move what the socket has, if anything, into libpq's buffer.
                    self._pq.consume_input()
                    has_looked = True
        except psycopg.Error as error:
            raise self._lost(str(error)) from None
        if found:
            self._unanswered_since = None
            self._ask_after = ASK_FIRST_SECONDS
        return found

    def _read_backlog(self, waiting: Backlog, most: int) -> list[bytes]:
        try:
            found = waiting.read(most)
        except psycopg.Error as error:
            raise self._lost(str(error)) from None
        if found:
            self._asked_at = time.monotonic()
        if waiting.is_over:
            self.sent_lsn = waiting.reach
            self._begin_stream()
        return found

    def _on_keepalive(self, message: bytes) -> None:
        sent, _, wants_reply = _KEEPALIVE_MESSAGE.unpack(message)
        # Keepalives stand between the payloads of the stream, so all before this has been read.
        if sent > self.sent_lsn:
            self.sent_lsn = sent
            self._ask_after = ASK_FIRST_SECONDS
        if wants_reply:
            self._report(ask=False)

    def wait(self, seconds: float) -> None:
        """Until something arrives, at most so long; raises SourceError when the link is silent."""
        now = time.monotonic()
        if self._backlog is not None:
            if now - self._asked_at > QUESTION_SECONDS_MAX:
                self._give_up_asking()
            self._arrivals.poll(seconds * 1_000)
            return
        since = self._unanswered_since
        if since is not None and now - since > SILENCE_SECONDS_MAX:
            raise self._lost(f"no sign of life for {SILENCE_SECONDS_MAX:.0f} seconds")
        if now - self._asked_at >= self._ask_after:
            self._asked_at = now
            self._unanswered_since = now if since is None else since
            self._ask_after = min(self._ask_after * 2, ASK_MOST_SECONDS)
            self._report(ask=True)
        elif now - self._reported_at >= REPORT_EVERY_SECONDS:
            self._report(ask=False)
        if self._arrivals.poll(min(seconds, self._ask_after) * 1_000):
            self._unanswered_since = None

    def _give_up_asking(self) -> None:
        """A server that needs so long for an answer sends sooner; one that is gone never says that it stopped."""
        if self._has_cancelled:
            raise self._lost(f"a question was not answered for {QUESTION_SECONDS_MAX:.0f} seconds")
        self._has_cancelled, self._asked_at = True, time.monotonic()
        self._cancel()

    def _cancel(self) -> None:
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=1.0)

    def confirm(self, lsn: int) -> None:
        """The server may forget everything up to here. Tell it only what is durable with us."""
        self._confirmed_lsn = max(self._confirmed_lsn, lsn)
        # Questions leave no room for reports; it is sent as soon as the stream begins.
        if self._backlog is None:
            self._report(ask=False)

    def _report(self, *, ask: bool) -> None:
        self._reported_at = time.monotonic()
        confirmed = self._confirmed_lsn
        # A flush position of zero would mean "nothing": the server then keeps what it knows.
        report = _REPORT.pack(b"r", max(confirmed, self.sent_lsn), confirmed, confirmed, 0, ask)
        try:
            self._pq.put_copy_data(report)
            self._pq.flush()
        except psycopg.Error as error:
            raise self._lost(str(error)) from None

    def _lost(self, detail: str) -> SourceError:
        return SourceError(
            "link-lost",
            f"the feed of PostgreSQL source {self._source} broke",
            source=self._source,
            retryable=True,
            detail=detail.strip() or "the server ended the stream",
            hint="is the server running, and does the network lead there? a run tries again by itself",
        )

    def close(self) -> None:
        if self._backlog is not None:
            # Else the server would hold the slot until it has decoded all that was asked for.
            self._cancel()
        with suppress(psycopg.Error):
            self._connection.close()


def _refused(source: str, result: pq.abc.PGresult) -> SourceError:
    error = psycopg.errors.error_from_result(result)
    if error.sqlstate in _SLOT_LOST:
        # It was there when it was looked for, a moment ago.
        return feed_gap(source, str(error).splitlines()[0])
    return translated(error, source, "start its feed")
