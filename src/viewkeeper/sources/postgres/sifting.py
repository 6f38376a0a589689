"""Which logical messages of a stream are heeded at all.

Who may connect can send them by the million, of any size. So they are dropped as they arrive, before anything
is read of them but their prefix, and rows go on to be read as columns as if the messages were not there.
"""

from __future__ import annotations

import re

from viewkeeper.sources.postgres import pgoutput
from viewkeeper.sources.postgres.notes import TIE_PREFIX, Remarks

_PREFIX_AT = 10  # behind kind, flags and place
# A transaction of nothing but messages.
_LONELY = re.compile(rb"B(M+)C")


class Sieve:
    """Of one feed. ``old_until``: up to this place an older set-up told schema changes by messages."""

    def __init__(self, instance: str, old_until: int, remarks: Remarks) -> None:
        self._instance, self._old_until, self._remarks = instance, old_until, remarks
        self._ours = instance.encode() + b"\0"
        self._tie = TIE_PREFIX.encode() + b"\0"

    def sifted(self, messages: list[bytes]) -> list[bytes]:
        """Without logical messages that are not ours, or tell nothing."""
        return [each for each in messages if each[0] != pgoutput.MESSAGE or self._keeps(each)]

    def _keeps(self, payload: bytes) -> bool:
        is_transactional = payload[1:2] == b"\1"
        if payload.startswith(self._tie, _PREFIX_AT):
            if not is_transactional:
                self.ignore_tie("it is outside any transaction")
            return is_transactional
        if payload.startswith(self._ours, _PREFIX_AT):
            place = int.from_bytes(payload[2:_PREFIX_AT], "big")
            if is_transactional and place < self._old_until:
                return True
            self.ignore()
        return False

    def without_lonely(self, messages: list[bytes], kinds: bytearray) -> list[bytes]:
        """Without ties of transactions that changed nothing; ``kinds``, of each message, is changed too.

        Any role may send those. Who ties a transaction must be able to write what views read.
        """
        if self._old_until or pgoutput.MESSAGE not in kinds:
            return messages
        kept: list[bytes] = []
        at = 0
        for found in _LONELY.finditer(kinds):
            kept += messages[at : found.start(1)]
            at = found.end(1)
            for _ in range(found.start(1), at):
                self.ignore_tie("its transaction changed nothing that is read")
        if not at:
            return messages
        kinds[:] = _LONELY.sub(b"BC", kinds)
        return [*kept, *messages[at:]]

    def ignore(self) -> None:
        """Of a message with our prefix: note that nothing came of it."""
        self._remarks.add(
            "message-ignored",
            f"a message with the prefix {self._instance} was passed over: anybody may send such, and our "
            "event triggers tell schema changes by rows; if it was theirs, set the source up again",
        )

    def ignore_tie(self, reason: str) -> None:
        self._remarks.add(
            "tie-ignored", f"a message with the prefix {TIE_PREFIX} was passed over: {reason}"
        )
