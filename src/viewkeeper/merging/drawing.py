"""The view update table for people: colours as letters in plain text, as colours in a terminal."""

from __future__ import annotations

from viewkeeper.merging.table import Colour, ViewUpdateTable

# Rich's names; this package does not need Rich itself.
STYLES = {
    Colour.WHITE: "black on white",
    Colour.RED: "white on red",
    Colour.GRAY: "black on grey62",
    Colour.BLACK: "grey50 on black",
}


def cells(table: ViewUpdateTable, row: int, *, states: bool) -> dict[str, tuple[Colour, str]]:
    """One row: for each view the colour, and the text as the paper prints it."""
    found = {}
    for view in table.columns:
        cell = table.cell(row, view)
        letter = cell.colour.value
        found[view] = (cell.colour, f"({letter},{cell.state})" if states else letter)
    return found


def lists_text(table: ViewUpdateTable, row: int) -> str:
    """WT_i: the lists that wait in this row."""
    names = sorted(
        str(action_list)
        for column in table.columns.values()
        for action_list in column.waiting.values()
        if action_list.number == row
    )
    return "{" + ", ".join(names) + "}" if names else "∅"


def drawn(table: ViewUpdateTable, *, states: bool = True, markup: bool = False) -> str:
    """The table as text, a line for each row; with ``markup``, in Rich's colours."""
    views = list(table.columns)
    width = max([len(view) for view in views] + [5 if states else 1])
    lines = ["      " + " ".join(f"{view:<{width}}" for view in views) + "  WT"]
    for number in table.rows:
        parts = []
        for colour, text in cells(table, number, states=states).values():
            padded = f"{text:<{width}}"
            parts.append(f"[{STYLES[colour]}]{padded}[/]" if markup else padded)
        lines.append(f"U_{number:<3} " + " ".join(parts) + f"  {lists_text(table, number)}")
    early = sorted(str(a) for column in table.columns.values() for a in column.early)
    if early:
        lines.append(f"early {', '.join(early)}")
    return "".join(f"{line.rstrip()}\n" for line in lines)
