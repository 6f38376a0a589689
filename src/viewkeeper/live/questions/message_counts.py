"""What a view manager sent and got, to be held against the figures of the papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class MessageCounts:
    """Counted since the manager began. ``reads``: queries that sources had to answer for it all.

    A ring's data node is played beside its source, so what it reads there is no message.
    """

    transactions: int = 0
    questions: int = 0
    answers: int = 0
    tokens: int = 0
    increments: int = 0
    requests: int = 0
    reads: int = 0
    rows: int = 0
    # MEDWRAP's questions by what they are for: LMQ, GMQ, CQ.
    purposes: Counter[str] = field(default_factory=Counter)

    @property
    def messages(self) -> int:
        """Between the warehouse's side and the sources', and from node to node."""
        return self.questions + self.answers + self.tokens + self.increments + self.requests

    def as_dict(self) -> dict[str, object]:
        return {**vars(self), "purposes": dict(self.purposes), "messages": self.messages}


def counted_together(several: Iterable[MessageCounts]) -> MessageCounts:
    """What several managers counted, added up."""
    total = MessageCounts()
    for each in several:
        for name, value in vars(each).items():
            setattr(total, name, getattr(total, name) + value)
    return total
