"""What a feed makes of the time in which its server says nothing."""

from __future__ import annotations

from viewkeeper.sources.postgres.stream import ReplicationStream


class Arrived:
    """A connection that a whole message has come in on, and nothing after it."""

    def __init__(self) -> None:
        self._messages = [b"w" + bytes(24) + b"B"]

    def get_copy_data(self, _: int) -> tuple[int, memoryview]:
        if not self._messages:
            return 0, memoryview(b"")
        message = self._messages.pop()
        return len(message), memoryview(message)

    def consume_input(self) -> None: ...


def test_whatever_is_read_is_a_sign_of_life() -> None:
    """Also what came while the feed did not wait for it: a group may have had no room for long."""
    stream = ReplicationStream.__new__(ReplicationStream)
    stream._pq = Arrived()
    stream._unanswered_since = 1.0
    stream._backlog = None
    assert stream.read(10) == [b"B"]
    assert stream._unanswered_since is None
    assert stream.read(10) == []
