"""What happened in a run, in order, for people: transcripts and message sequence charts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    Event,
    InstallChange,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import Transaction

WAREHOUSE = "warehouse"


@dataclass(frozen=True)
class Entry:
    """One thing that happened at ``place``; ``arrow`` names the other end of a message."""

    kind: str
    place: str
    text: str
    arrow: str | None = None


@dataclass
class Journal:
    """Collects entries; a run without one costs nothing."""

    entries: list[Entry] = field(default_factory=list)

    def committed(self, transaction: Transaction) -> None:
        changes = "; ".join(
            f"{name.relation} {rows_text(rows)}" for name, rows in transaction.changes
        )
        self._add("commit", transaction.source, f"#{transaction.number} {changes}")

    def revealed(self, source: str, number: int) -> None:
        self._add("reveal", source, f"#{number} becomes visible to queries")

    def asked(self, question: AskSource) -> None:
        parts = ", ".join(
            f"{'' if part.given is None else rows_text(part.given) + ' ⊗ '}{' ⊗ '.join(part.asks)}"
            for part in question.parts
        )
        self._add("ask", WAREHOUSE, f"?{question.question} {parts}", question.source)

    def answered(self, source: str, question: AskSource, answer: AnswerArrived) -> None:
        text = f"!{question.question} {', '.join(rows_text(a) for a in answer.answers)}"
        self._add("answer", source, f"{text} (reflects {answer.reflects})", WAREHOUSE)

    def arrived(self, source: str, event: Event) -> None:
        match event:
            case TransactionArrived(transaction):
                self._add("deliver", WAREHOUSE, f"#{transaction.number} arrives", source)
            case AnswerArrived(question):
                self._add("deliver", WAREHOUSE, f"!{question} arrives", source)
            case SourceSettled():
                pass

    def installed(self, install: InstallChange, extent: Any) -> None:
        text = f"ΔV {rows_text(install.change)} at {install.cut}; V is {rows_text(extent)}"
        self._add("install", WAREHOUSE, text)

    def _add(self, kind: str, place: str, text: str, arrow: str | None = None) -> None:
        self.entries.append(Entry(kind, place, text, arrow))

    def transcript(self) -> str:
        """The entries as text, a line each, in columns."""
        width = max((len(entry.place) for entry in self.entries), default=0)
        return "".join(
            f"{number:>4}  {entry.kind:<8} {entry.place:<{width}}  {_direction(entry)}{entry.text}\n"
            for number, entry in enumerate(self.entries, 1)
        )


def _direction(entry: Entry) -> str:
    if entry.arrow is None:
        return ""
    return f"{'←' if entry.kind == 'deliver' else '→'} {entry.arrow}: "


def rows_text(rows: Any) -> str:
    """A small relation in the papers' notation: ``{(5, 6)[2], −(7, 8)}``; ⊥ when empty."""
    bag: Bag = rows.to_bag()
    if bag.is_empty():
        return "⊥"
    return "{" + ", ".join(_signed_row(row, count) for row, count in bag.sorted()) + "}"


def _signed_row(row: tuple[Any, ...], count: int) -> str:
    sign = "−" if count < 0 else ""
    times = f"[{abs(count)}]" if abs(count) > 1 else ""
    values = ", ".join("NULL" if value is None else str(value) for value in row)
    return f"{sign}({values}){times}"
