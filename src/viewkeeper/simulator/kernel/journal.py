"""What happened in a run, in order, for people: transcripts and message sequence charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag

WAREHOUSE = "warehouse"


@dataclass(frozen=True)
class Told:
    """Something in words, the one way in which a world describes it.

    ``label`` names a message where it leaves and where it arrives: ``#1`` a transaction, ``?1`` a question, ``!1``
    its answer. ``answers`` is the label of the message that this one answers; ``to`` where an act sends its
    message; ``facts`` are what a picture is drawn from.
    """

    kind: str
    label: str
    text: str = ""
    answers: str = ""
    to: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One thing that happened at ``place``; ``arrow`` names the other end of a message.

    ``sends`` and ``receives`` name the message that leaves or comes in here. A transaction's number counts at
    its source.
    """

    kind: str
    place: str
    text: str
    arrow: str | None = None
    sends: str = ""
    receives: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The entry without its facts, for JSON."""
        return {name: value for name, value in vars(self).items() if name != "facts"}


@dataclass
class Journal:
    """Collects entries; a run without one costs nothing."""

    entries: list[Entry] = field(default_factory=list)

    def begun(self, extent: Any) -> None:
        text, facts = f"V is {rows_text(extent)}", {"extent": extent}
        self.entries.append(Entry("start", WAREHOUSE, text, facts=facts))

    def noted(self, text: str) -> None:
        """A remark to the reader: nothing happened."""
        self.entries.append(Entry("note", WAREHOUSE, text))

    def happened(self, node: str, told: Told | None) -> None:
        """A node did something by itself."""
        if told is not None:
            self._add(node, told, told.to)

    def sent(self, sender: str, to: str, told: Told | None) -> None:
        """A message leaves."""
        if told is not None:
            self._add(sender, told, _place(to))

    def arrived(self, node: str, sender: str, told: Told | None) -> None:
        """A message is taken in."""
        if told is not None:
            entry = Entry(
                "deliver",
                _place(node),
                f"{told.label} arrives",
                _place(sender),
                receives=told.label,
                facts=told.facts,
            )
            self.entries.append(entry)

    def installed(self, change: Any, cut: Any, extent: Any) -> None:
        """The view has another state."""
        text = f"ΔV {rows_text(change)} at {cut}; V is {rows_text(extent)}"
        facts = {"change": change, "extent": extent, "cut": cut}
        self.entries.append(Entry("install", WAREHOUSE, text, facts=facts))

    def _add(self, node: str, told: Told, to: str | None) -> None:
        text = f"{told.label} {told.text}".strip()
        entry = Entry(told.kind, _place(node), text, to, told.label, told.answers, told.facts)
        self.entries.append(entry)

    def transcript(self) -> str:
        """The entries as text, a line each, in columns."""
        width = max((len(entry.place) for entry in self.entries), default=0)
        return "".join(
            f"{number:>4}  {entry.kind:<8} {entry.place:<{width}}  {direction(entry)}{entry.text}\n"
            for number, entry in enumerate(self.entries, 1)
        )


def _place(node: str) -> str:
    return node or WAREHOUSE


def direction(entry: Entry) -> str:
    """Where a message comes from or goes to."""
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
