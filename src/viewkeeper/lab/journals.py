"""Journals that remember beside the words what a page draws: rows, cuts, tokens, messages on their way."""

from __future__ import annotations

from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.ring_messages import TokenArrived
from viewkeeper.protocols.tokens import Token
from viewkeeper.simulator.journal import Journal, rows_text
from viewkeeper.simulator.medwrap.journal import MedwrapJournal
from viewkeeper.simulator.rings.journal import Envelope, RingJournal
from viewkeeper.timeline import Transaction

Facts = dict[str, Any]


class FactsJournal(Journal):
    """A journal whose entries carry facts, by the entry's index."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[int, Facts] = {}

    def begun(self, assemblies: Any, extent: Any) -> None:
        super().begun(assemblies, extent)
        self._note(extent=extent.to_bag())

    def committed(self, transaction: Transaction) -> None:
        super().committed(transaction)
        self._note(
            transaction={"source": transaction.source, "number": transaction.number},
            changes={name.relation: rows.to_bag() for name, rows in transaction.changes},
        )

    def installed(self, install: InstallChange, extent: Any) -> None:
        super().installed(install, extent)
        change, bag = install.change.to_bag(), extent.to_bag()
        self._note(change=change, extent=bag, cut=dict(install.cut))

    def _note(self, **facts: Any) -> None:
        self.facts.setdefault(len(self.entries) - 1, {}).update(facts)


class MedwrapFactsJournal(FactsJournal, MedwrapJournal):
    """The same among wrappers and a mediator."""


class RingFactsJournal(FactsJournal, RingJournal):
    """The same round a ring, with its token and with all that is on its way."""

    def __init__(self) -> None:
        super().__init__()
        self._on_the_way: list[tuple[Envelope, dict[str, str]]] = []

    def sent(self, envelope: Envelope) -> None:
        super().sent(envelope)
        entry = self.entries[-1]
        label = {"label": _label(envelope), "from": entry.place, "to": str(entry.arrow)}
        self._on_the_way.append((envelope, label))
        self._moved(envelope)

    def delivered(self, envelope: Envelope) -> None:
        super().delivered(envelope)
        found = next(n for n, (e, _) in enumerate(self._on_the_way) if e is envelope)
        del self._on_the_way[found]
        self._moved(envelope)

    def _moved(self, envelope: Envelope) -> None:
        self._note(on_the_way=[label for _, label in self._on_the_way])
        if isinstance(envelope.event, TokenArrived):
            entry = self.entries[-1]
            at, to = (entry.place, entry.arrow) if entry.kind == "send" else (entry.place, None)
            self._note(token=_token(envelope.event.token) | {"at": at, "to": to})


def _label(envelope: Envelope) -> str:
    match envelope.event:
        case TokenArrived(token):
            return "token" if token.is_empty else "token with changes"
        case _:
            return type(envelope.event).__name__.removesuffix("Arrived").removesuffix("ed").lower()


def _token(token: Token) -> Facts:
    carried = zip(token.ring, token.entries, strict=True)
    return {
        "ring": list(token.ring),
        "carries": {s: None if e is None else rows_text(e.rows) for s, e in carried},
        "cut": dict(token.cut),
        "term": token.term,
    }


def rows_document(bag: Bag) -> Facts:
    """A small relation as columns and signed rows, in a fixed order."""
    return {
        "columns": list(bag.schema.names),
        "rows": [
            {"values": [None if v is None else str(v) for v in row], "count": count}
            for row, count in bag.sorted()
        ],
    }
