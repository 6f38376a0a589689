"""An oracle for promptness, by definition and slowly: the rows that could be applied and are not."""

from __future__ import annotations

from viewkeeper.merging.rows import Colour, Row
from viewkeeper.merging.table import ViewUpdateTable


def could_go(table: ViewUpdateTable) -> set[int]:
    """The largest set of rows that could become visible together now; prompt means that it is empty.

    All lists of its rows are here, and whatever must show before or with one of them is in it too.
    """
    pending = {
        n: row for n, row in table.rows.items() if _colours(row) & {Colour.WHITE, Colour.RED}
    }
    chosen = {n for n, row in pending.items() if Colour.WHITE not in _colours(row)}
    while True:
        kept = {n for n in chosen if _needs(table, pending, n) <= chosen}
        if kept == chosen:
            return chosen
        chosen = kept


def _colours(row: Row) -> set[Colour]:
    return {cell.colour for cell in row.cells.values()}


def _needs(table: ViewUpdateTable, pending: dict[int, Row], number: int) -> set[int]:
    row = pending[number]
    needed: set[int] = set()
    for view, cell in row.cells.items():
        if cell.colour is Colour.RED:
            waiting = table.columns[view].waiting
            needed |= {n for turn, a in waiting.items() if turn <= cell.turn for n in a.rows}
    streams = set(row.streams)
    return needed | {
        n for n, other in pending.items() if n < number and streams & set(other.streams)
    }
