"""What happened in a run, in order, for people: transcripts and message sequence charts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Column, Comparison
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    Event,
    InstallChange,
    KeyedPart,
    Part,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import Assembly

WAREHOUSE = "warehouse"


@dataclass(frozen=True)
class Entry:
    """One thing that happened at ``place``; ``arrow`` names the other end of a message.

    ``sends`` and ``receives`` name the message that leaves or comes in here: ``#1`` a transaction,
    ``?1`` a question, ``!1`` its answer. A transaction's number counts at its source.
    """

    kind: str
    place: str
    text: str
    arrow: str | None = None
    sends: str = ""
    receives: str = ""


@dataclass
class Journal:
    """Collects entries; a run without one costs nothing."""

    entries: list[Entry] = field(default_factory=list)
    _assemblies: tuple[Assembly, ...] = ()

    def begun(self, assemblies: tuple[Assembly, ...], extent: Any) -> None:
        self._assemblies = assemblies
        self._add("start", WAREHOUSE, f"V is {rows_text(extent)}")

    def noted(self, text: str) -> None:
        """A remark to the reader: nothing happened."""
        self._add("note", WAREHOUSE, text)

    def committed(self, transaction: Transaction) -> None:
        number = f"#{transaction.number}"
        changes = "; ".join(
            f"{name.relation} {rows_text(rows)}" for name, rows in transaction.changes
        )
        self._add("commit", transaction.source, f"{number} {changes}", sends=number)

    def revealed(self, source: str, number: int) -> None:
        self._add("reveal", source, f"#{number} becomes visible to queries")

    def asked(self, question: AskSource) -> None:
        label = f"?{question.question}"
        parts = ", ".join(self._part_text(part) for part in question.parts)
        self._add("ask", WAREHOUSE, f"{label} {parts}", question.source, sends=label)

    def answered(self, source: str, question: AskSource, answer: AnswerArrived) -> None:
        label = f"!{question.question}"
        rows = ", ".join(
            self._partial_text(part.term, rows, part.covers | set(part.asks))
            for part, rows in zip(question.parts, answer.answers, strict=True)
        )
        text = f"{label} {rows} (reflects {answer.reflects})"
        asked = f"?{question.question}"
        self._add("answer", source, text, WAREHOUSE, sends=label, receives=asked)

    def arrived(self, source: str, event: Event) -> None:
        match event:
            case TransactionArrived(transaction):
                label = f"#{transaction.number}"
            case AnswerArrived(question):
                label = f"!{question}"
            case SourceSettled():
                return
        self._add("deliver", WAREHOUSE, f"{label} arrives", source, receives=label)

    def installed(self, install: InstallChange, extent: Any) -> None:
        text = f"ΔV {rows_text(install.change)} at {install.cut}; V is {rows_text(extent)}"
        self._add("install", WAREHOUSE, text)

    def _add(
        self,
        kind: str,
        place: str,
        text: str,
        arrow: str | None = None,
        *,
        sends: str = "",
        receives: str = "",
    ) -> None:
        self.entries.append(Entry(kind, place, text, arrow, sends, receives))

    def _part_text(self, part: Part | KeyedPart) -> str:
        asks = " ⊗ ".join(part.asks)
        if isinstance(part, KeyedPart) and part.keys is not None:
            return f"{rows_text(part.keys)} ⋉ {asks}"
        if part.given is None:
            return asks
        return f"{self._partial_text(part.term, part.given, part.covers)} ⊗ {asks}"

    def _partial_text(self, term: int, rows: Any, covers: frozenset[str]) -> str:
        """A partial as the papers write it: in the view's order, joined columns once."""
        assembly = self._assemblies[term]
        # A wrapper may have dropped columns that nobody needs any more.
        names = [name for name in _distinct_columns(assembly, covers) if name in rows.schema]
        return rows_text(rows.only(names))

    def transcript(self) -> str:
        """The entries as text, a line each, in columns."""
        width = max((len(entry.place) for entry in self.entries), default=0)
        return "".join(
            f"{number:>4}  {entry.kind:<8} {entry.place:<{width}}  {direction(entry)}{entry.text}\n"
            for number, entry in enumerate(self.entries, 1)
        )


def direction(entry: Entry) -> str:
    """Where a message comes from or goes to."""
    if entry.arrow is None:
        return ""
    return f"{'←' if entry.kind == 'deliver' else '→'} {entry.arrow}: "


def _distinct_columns(assembly: Assembly, covers: frozenset[str]) -> tuple[str, ...]:
    """The columns of a partial, without those that a join made equal to an earlier one."""
    term = assembly.term
    names = [
        name
        for occurrence in term.occurrences
        if occurrence.alias in covers
        for name in occurrence.qualified_schema.names
    ]
    for predicate in term.predicates:
        match predicate:
            case Comparison("=", Column(left), Column(right)) if left in names and right in names:
                if left != right:
                    names.remove(max(left, right, key=names.index))
            case _:
                pass
    return tuple(names)


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
