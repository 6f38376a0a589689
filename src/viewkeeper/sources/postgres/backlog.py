"""What a slot holds already, read by questions instead of from its stream.

A walsender hands every message to the network by itself, which costs several times what decoding it does.
A question for the same messages is decoded, then sent at once, in less than half of the time. It takes
nothing from the slot (it *peeks*), so the stream goes on wherever the reading ended, and whatever goes wrong
is read again.

A question is answered when all that it asks for is decoded, from the slot's beginning. So the first is for
little and each next one for ten times as much; only new messages are sent. What lies beyond
``BYTES_MAX`` of the server's log is left to the stream.
"""

from __future__ import annotations

import struct

from psycopg import pq

from viewkeeper.sources.postgres import pgoutput
from viewkeeper.sources.wire import Malformed

# Below this number of bytes of the server's log the stream is there sooner.
BYTES_MIN = 1 << 20
# No server is asked to decode more of its log than this, nor to keep what it decoded.
BYTES_MAX = 256 << 20
# How many messages the first question is for, and how many times as many each next one.
MESSAGES_FIRST, MESSAGES_TIMES = 30_000, 10

# Of COPY's binary format: what it begins with (no flags, no extension), and what ends it; before a line's
# only column, how many there are and its length.
_SIGNATURE, _LAST = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_LINE = struct.Struct(">HI")


class Backlog:
    """Messages of a slot from its confirmed position on, over a connection that has no other work.

    ``end_lsn``: the end of the last transaction that was read; 0 before the first. ``reach``: all up to
    here has been read, once it is over; 0 where that is not known.
    """

    def __init__(self, connection: pq.abc.PGconn, slot: str, limit_lsn: int, messages: str) -> None:
        self._pq, self._messages = connection, messages
        self._slot, self._limit_lsn = slot, limit_lsn
        self.end_lsn = self.reach = 0
        self.is_over = False
        # How many messages have been read, and how many the open question is for.
        self._count, self._limit = 0, MESSAGES_FIRST
        self._is_answered = False
        self._ask()

    def read(self, most: int) -> list[bytes]:
        """Messages that have arrived, at most this number; none when there are none yet, or it is over.

        Raises psycopg's errors when the link breaks, Malformed when an answer is none.
        """
        found: list[bytes] = []
        self._pq.consume_input()
        while not self.is_over and len(found) < most:
            if not (self._take(found, most) if self._is_answered else self._begin()):
                break
        self._count += len(found)
        commits = (message for message in reversed(found) if message[0] == pgoutput.COMMIT)
        if (last := next(commits, None)) is not None:
            self.end_lsn = pgoutput.end_of_commit(last)
        if self._is_complete:
            self._go_on()
        return found

    def _ask(self) -> None:
        self._is_answered = self._is_complete = False
        self._is_first = True
        # As far as the server has written by now: what it writes meanwhile the stream brings soon.
        limit = f"{self._limit_lsn >> 32:X}/{self._limit_lsn & 0xFFFFFFFF:X}"
        upto = f"least(pg_current_wal_flush_lsn(), '{limit}')"
        options = (
            f"'proto_version', '1', 'publication_names', '{self._slot}', "
            f"'messages', '{self._messages}'"
        )
        peek = (
            f"pg_logical_slot_peek_binary_changes('{self._slot}', {upto}, {self._limit}, {options})"
        )
        new = f"SELECT data FROM pg_catalog.{peek} OFFSET {self._count}"
        copy = f"COPY ({new}) TO STDOUT (FORMAT binary)"
        self._pq.send_query(f"SELECT {upto} - '0/0'; {copy}".encode())
        self._pq.flush()

    def _begin(self) -> bool:
        """Whether the answer has begun to arrive, or never will."""
        if self._pq.is_busy():
            return False
        result = self._pq.get_result()
        if result is not None and result.status == pq.ExecStatus.TUPLES_OK:
            self.reach = int(result.get_value(0, 0) or 0)
            return True
        self._is_answered = result is not None and result.status == pq.ExecStatus.COPY_OUT
        if not self._is_answered:
            # A role that may not ask may still stream; if it may not either, the stream says why.
            self.is_over, self.reach = True, self.end_lsn
        return True

    def _take(self, found: list[bytes], most: int) -> bool:
        """Add what has arrived; False when that was all."""
        get, add = self._pq.get_copy_data, found.append
        while len(found) < most:
            size, line = get(1)
            if size <= 0:
                self._is_complete = size < 0
                return False
            if self._is_first:
                self._is_first = False
                if line[: len(_SIGNATURE)] != _SIGNATURE:
                    raise Malformed("an answer does not begin as COPY's binary format does")
                line = line[len(_SIGNATURE) :]
                if not line:
                    continue
            if line != _LAST:
                add(_payload(line))
        return True

    def _go_on(self) -> None:
        """The answer is complete: ask for more, unless that was all there is."""
        while self._pq.get_result() is not None:
            pass
        self.is_over = self._count < self._limit
        if not self.is_over:
            self._limit *= MESSAGES_TIMES
            self._ask()


def _payload(line: memoryview) -> bytes:
    """A line's only value, which is as long as it says and not empty."""
    size = len(line) - _LINE.size
    if size < 1 or _LINE.unpack_from(line) != (1, size):
        raise Malformed(f"a line of {len(line)} bytes in COPY's binary format has no message")
    return line[_LINE.size :].tobytes()
