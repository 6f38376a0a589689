"""The raw binary log over a connection: every event once, in order, without a hole.

Each event must begin where the one before it ended; together with the checksums, without which no log is
read, that turns any loss, ours or the server's, into an error. The stream never reconnects by itself: a connection that comes
back in the middle of a transaction would give half of it (the caller starts again at a boundary).
"""

from __future__ import annotations

import secrets
import struct
import time
from collections.abc import Callable

import pymysql
from pymysql.constants import COMMAND

from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.connection import LOG_UNAVAILABLE, Link, translated
from viewkeeper.sources.mariadb.position import Place, another_history
from viewkeeper.sources.wire import Damage, Malformed

HEARTBEAT_SECONDS = 1.0
# A link that carried neither event nor heartbeat for so long is dead.
SILENCE_SECONDS_MAX = 6.0
RECEIVE_BYTES = 1 << 18
_PACKET_BYTES_MAX = 0xFFFFFF
_ERROR = b"\xff"
_SEND_ANNOTATIONS = 2  # all events are asked for, so that a missing one shows
# The protocol's field for an offset has 32 bits.
OFFSET_MAX = 2**32 - 1

Clock = Callable[[], float]


class BinlogStream:
    """Owns the connection it is given. ``file``, ``offset`` and ``born`` say where it stands.

    Once it is made, the log has been found, and found to be the one that ``start`` belongs to.
    """

    def __init__(
        self,
        connection: Link,
        source: str,
        start: Place,
        clock: Clock = time.monotonic,
        damage: Damage | None = None,
    ) -> None:
        self.file, self.offset, self.born = start.file, start.offset, 0
        # Whether the file before this one was never closed: its server crashed.
        self.crossed_crash = False
        self._closed_in_order = False
        self.server = 0
        self._source = source
        self._doing = f"read the binary log of source {source}"
        self._start = start
        self._clock = clock
        self._connection = connection
        self._buffer = bytearray()
        self._at = 0
        self._parts = b""
        self._damage = damage or Damage(source)
        self._ahead: binlog.Event | None = None
        self._heard = clock()
        try:
            with translated(source, self._doing):
                self._ask(start)
            self._await_birth()
        except BaseException:
            self.close()
            raise

    def next(self, timeout_seconds: float) -> binlog.Event | None:
        """The next event, or None when none came in time; heartbeats are swallowed.

        Raises SourceError: ``feed-gap`` when the log does not have what is needed, retryable when
        the link is lost.
        """
        if self._ahead is not None:
            first, self._ahead = self._ahead, None
            return first
        deadline = None
        while True:
            # The way of nearly every event; only waiting for bytes is worth a look at the clock.
            packet = self._packet()
            if packet is not None:
                event = self._event(packet)
                if event is not None:
                    return event
                continue
            now = self._clock()
            deadline = now + timeout_seconds if deadline is None else deadline
            with translated(self._source, self._doing):
                received = self._receive(deadline - now)
            if not received and self._clock() >= deadline:
                return None

    def close(self) -> None:
        # Without a farewell: the server is in the middle of sending and would not listen.
        self._connection._force_close()

    def _await_birth(self) -> None:
        """Until the log has said which one it is, so that a gap is known before anything is read."""
        while not self.born and self._ahead is None:
            self._ahead = self.next(HEARTBEAT_SECONDS)

    # -- the protocol -------------------------------------------------------------------------

    def _ask(self, start: Place) -> None:
        if start.offset > OFFSET_MAX:
            raise another_history(self._source, f"no server can be asked for {start.identity}")
        with self._connection.cursor() as cursor:
            # So that also what is in no file (a rotation that the server makes up) has a checksum.
            cursor.execute("SET @master_binlog_checksum = 'CRC32'")
            cursor.execute(
                "SET @master_heartbeat_period = %s", (int(HEARTBEAT_SECONDS * 1_000_000_000),)
            )
            cursor.execute("SET @mariadb_slave_capability = 4, net_write_timeout = 3600")
        # Two replicas of one number disconnect each other.
        number = secrets.randbelow(2**31) + 2**31
        request = struct.pack("<IHI", start.offset, _SEND_ANNOTATIONS, number)
        self._connection._execute_command(COMMAND.COM_BINLOG_DUMP, request + start.file.encode())

    def _receive(self, timeout_seconds: float) -> bool:
        """More bytes into the buffer; False when none came."""
        link = self._connection._sock
        if link is None:
            raise EOFError("the connection is closed")
        link.settimeout(max(timeout_seconds, 0.0) or 0.000_1)
        try:
            data = link.recv(RECEIVE_BYTES)
        except (TimeoutError, BlockingIOError):
            silent = self._clock() - self._heard
            if silent > SILENCE_SECONDS_MAX:
                raise TimeoutError(f"neither event nor heartbeat for {silent:.0f} s") from None
            return False
        if not data:
            raise EOFError("the server closed the connection")
        self._heard = self._clock()
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data
        return True

    def _packet(self) -> bytes | None:
        """The next whole packet; those above 16 MB come in several pieces."""
        while True:
            buffer, at = self._buffer, self._at
            if len(buffer) - at < 4:
                return None
            size = buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16
            end = at + 4 + size
            if len(buffer) < end:
                return None
            piece = bytes(memoryview(buffer)[at + 4 : end])
            self._at = end
            if self._parts:
                piece = self._parts + piece
                self._parts = b""
            if size < _PACKET_BYTES_MAX:
                return piece
            if len(piece) > binlog.EVENT_BYTES_MAX:
                raise self._too_large(f"an event has more than {len(piece)} bytes")
            self._parts = piece

    def _event(self, packet: bytes) -> binlog.Event | None:
        if packet[:1] != b"\0":
            with translated(self._source, self._doing):
                raise self._refusal(packet)
        try:
            event, self.server = binlog.parse_event(packet[1:])
            return self._placed(event)
        except binlog.TooLarge as error:
            raise self._too_large(str(error)) from error
        except Malformed as error:
            raise self.unreadable(str(error)) from error

    def _refusal(self, packet: bytes) -> Exception:
        if packet[:1] != _ERROR:
            return EOFError("the server ended the stream")
        number = int.from_bytes(packet[1:3], "little")
        text = packet[3:].decode(errors="replace").removeprefix("#HY000")
        if number == LOG_UNAVAILABLE:
            return SourceError(
                "feed-gap",
                f"the binary log of source {self._source} can't be read on from"
                f" {self.file}:{self.offset}",
                source=self._source,
                retryable=False,
                detail=f"MariaDB error {number}: {text}",
                hint=f"{rebuild_command(self._source)}, and keep the log longer"
                " (binlog_expire_logs_seconds)",
            )
        error: Exception = pymysql.OperationalError(number, text)
        return error

    # -- no hole ------------------------------------------------------------------------------

    def _placed(self, event: binlog.Event) -> binlog.Event | None:
        """The event, with our own place advanced over it; None for those that are in no file."""
        if event.type == binlog.HEARTBEAT:
            return None
        if event.type == binlog.ROTATE and event.is_artificial:
            self._enter(*binlog.rotation(event))
            return None
        if event.type == binlog.FORMAT:
            self._require_checksums(binlog.checksum_kind(event))
            self._learn_birth(event.timestamp)
        if event.is_artificial:
            return None
        expected = self.offset + event.size
        if event.end != expected & OFFSET_MAX:
            raise self.damaged(f"expected an event up to {expected}, found one up to {event.end}")
        self.offset = expected
        self._closed_in_order = event.type in (binlog.ROTATE, binlog.STOP)
        return event

    def _enter(self, file: str, offset: int) -> None:
        if file != self.file:
            self.crossed_crash, self._closed_in_order = not self._closed_in_order, False
            self.file, self.offset, self.born = file, offset, 0

    def _learn_birth(self, born: int) -> None:
        self.born = born
        start = self._start
        if start.born and start.file == self.file and start.born != born:
            raise another_history(
                self._source, f"{self.file} was begun at {born}, the one we read at {start.born}"
            )

    def _require_checksums(self, kind: int) -> None:
        if kind != binlog.CRC32:
            raise SourceError(
                "log-without-checksums",
                f"the binary log of source {self._source} has no checksums from"
                f" {self.file}:{self.offset} on",
                source=self._source,
                retryable=False,
                detail="binlog_checksum was NONE when the file was begun: a damaged event would be other rows",
                hint="SET GLOBAL binlog_checksum = CRC32, which begins a new file, and the same in the"
                f" server's configuration; then {rebuild_command(self._source)}",
            )

    def _too_large(self, detail: str) -> SourceError:
        return SourceError(
            "event-too-large",
            f"the binary log of source {self._source} has too large an event behind"
            f" {self.file}:{self.offset}",
            source=self._source,
            retryable=False,
            detail=f"{detail}; the most is {binlog.EVENT_BYTES_MAX}",
            hint="keep such values out of the tables that are logged (max_allowed_packet limits them), then "
            + rebuild_command(self._source),
        )

    def unreadable(self, detail: str) -> SourceError:
        """What was sent is no event: perhaps it was so on its way only."""
        return self._damage.error(f"{self.file}:{self.offset}", detail)

    def damaged(self, detail: str) -> SourceError:
        """The log or the way to it lost something: only a rebuild helps."""
        return SourceError(
            "feed-gap",
            f"the binary log of source {self._source} has a hole at {self.file}:{self.offset}",
            source=self._source,
            retryable=False,
            detail=detail,
            hint=rebuild_command(self._source),
        )
