"""What happened in a run of a ring, for people: a transcript with every message and what it carries."""

from __future__ import annotations

from dataclasses import dataclass, field

from viewkeeper.protocols.ring_messages import (
    WAREHOUSE,
    Event,
    IncrementArrived,
    TokenArrived,
    TokenRequested,
)
from viewkeeper.protocols.tokens import Token
from viewkeeper.simulator.journal import WAREHOUSE as WAREHOUSE_NAME
from viewkeeper.simulator.journal import Entry, Journal, rows_text


@dataclass(frozen=True)
class Envelope:
    """A message on its way to a source or to the warehouse, and when it was sent."""

    sender: str
    to: str
    event: Event
    # When a message was sent makes no difference to what it does.
    sent_at: int = field(default=0, compare=False)


class RingJournal(Journal):
    """Collects what the machines of a ring send each other."""

    def sent(self, envelope: Envelope) -> None:
        text = _text(envelope.event)
        self.entries.append(Entry("send", _place(envelope.sender), text, _place(envelope.to)))

    def delivered(self, envelope: Envelope) -> None:
        text = f"{_subject(envelope.event)} arrives"
        self.entries.append(Entry("deliver", _place(envelope.to), text, _place(envelope.sender)))


def _place(name: str) -> str:
    return WAREHOUSE_NAME if name == WAREHOUSE else name


def _subject(event: Event) -> str:
    match event:
        case TokenArrived(token):
            return "token" if token.term == 0 else f"token of term {token.term + 1}"
        case IncrementArrived(increment):
            return f"increment {increment.number} of term {increment.term + 1}"
        case TokenRequested(source, upto):
            return f"request for {source}#{upto}"
        case _:
            return type(event).__name__


def _text(event: Event) -> str:
    match event:
        case TokenArrived(token):
            return f"{_subject(event)} {token_text(token)} at {token.cut}"
        case IncrementArrived(increment):
            return f"{_subject(event)}: Δ_F {rows_text(increment.change)} to {increment.cut}"
        case _:
            return _subject(event)


def token_text(token: Token) -> str:
    """The token in the paper's notation: one entry for each node, ⊥ where there is none."""
    entries = zip(token.ring, token.entries, strict=True)
    return (
        "[" + ", ".join(f"{s}: {'⊥' if e is None else rows_text(e.rows)}" for s, e in entries) + "]"
    )
