"""``viewkeeper`` as it must not be, for a storm that has to find it out. Run as ``python -m chaos.hostile_run run …``."""

from __future__ import annotations

from viewkeeper.cli import main
from viewkeeper.sources.postgres import pgoutput
from viewkeeper.sources.postgres.feed import PostgresFeed
from viewkeeper.sources.postgres.notes import note_of
from viewkeeper.sources.postgres.sifting import Sieve


def believe_messages() -> None:
    """Logical messages with our prefix are schema changes, though any role may send them."""
    right = Sieve._keeps

    def keeps(self: Sieve, payload: bytes) -> bool:
        is_ours = payload[1:2] == b"\1" and payload.startswith(self._ours, 10)
        return is_ours or right(self, payload)

    def on_message(self: PostgresFeed, payload: bytes) -> None:
        note = note_of(pgoutput.decode_message(payload).content.decode(errors="replace"))
        if note is not None and self._transaction is not None:
            self._add_changes(self._relations.noted(note, self._transaction.xid))

    Sieve._keeps = keeps  # type: ignore[method-assign]
    Sieve.without_lonely = lambda self, messages, kinds: messages  # type: ignore[method-assign]
    PostgresFeed._on_message = on_message  # type: ignore[method-assign]


if __name__ == "__main__":
    believe_messages()
    main()
