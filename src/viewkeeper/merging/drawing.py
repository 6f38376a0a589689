"""The view update table for people: colours as letters in plain text, as colours in a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.merging.rows import Colour
from viewkeeper.merging.table import ViewUpdateTable

# Rich's names; this package does not need Rich itself.
STYLES = {
    Colour.WHITE: "black on white",
    Colour.RED: "white on red",
    Colour.GRAY: "black on grey62",
    Colour.BLACK: "grey50 on black",
}


@dataclass(frozen=True)
class DrawnRow:
    """One update: a colour and its text for each view, and the lists that wait (WT_i)."""

    number: int
    cells: tuple[tuple[Colour, str], ...]
    lists: tuple[str, ...]

    @property
    def lists_text(self) -> str:
        return "{" + ", ".join(self.lists) + "}" if self.lists else "∅"


@dataclass(frozen=True)
class Drawing:
    """A table at one moment; ``early`` are lists whose relevance has not arrived."""

    views: tuple[str, ...]
    rows: tuple[DrawnRow, ...]
    early: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.early

    def text(self, *, markup: bool = False) -> str:
        """A line for each row; with ``markup``, in Rich's colours."""
        texts = [text for row in self.rows for _, text in row.cells]
        width = max([len(name) for name in (*self.views, *texts)], default=1)
        lines = ["      " + " ".join(f"{view:<{width}}" for view in self.views) + "  WT"]
        for row in self.rows:
            cells = []
            for colour, text in row.cells:
                padded = f"{text:<{width}}"
                cells.append(f"[{STYLES[colour]}]{padded}[/]" if markup else padded)
            lines.append(f"U_{row.number:<3} " + " ".join(cells) + f"  {row.lists_text}")
        if self.early:
            lines.append(f"early {', '.join(self.early)}")
        return "".join(f"{line.rstrip()}\n" for line in lines)


def drawing_of(table: ViewUpdateTable, *, states: bool) -> Drawing:
    """The table as it is now; ``states`` beside the colours, as the paper has it for PA."""
    waiting: dict[int, list[str]] = {}
    for column in table.columns.values():
        for action_list in column.waiting.values():
            waiting.setdefault(action_list.number, []).append(str(action_list))
    rows = []
    for number in table.rows:
        found = [table.cell(number, view) for view in table.columns]
        cells = tuple(
            (c.colour, f"({c.colour.value},{c.state})" if states else c.colour.value) for c in found
        )
        rows.append(DrawnRow(number, cells, tuple(sorted(waiting.get(number, ())))))
    early = sorted(str(a) for column in table.columns.values() for a in column.early)
    return Drawing(tuple(table.columns), tuple(rows), tuple(early))


def drawn(table: ViewUpdateTable, *, states: bool = True, markup: bool = False) -> str:
    """The table as text."""
    return drawing_of(table, states=states).text(markup=markup)
