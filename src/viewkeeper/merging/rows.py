"""What the view update table is made of: rows, their cells, and the views' columns."""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field

from viewkeeper.merging.messages import ActionList


class Colour(enum.Enum):
    WHITE = "w"
    RED = "r"
    GRAY = "g"
    BLACK = "b"


@dataclass(frozen=True)
class Cell:
    """``turn`` counts the lists of the view: a list is applied when all earlier turns have been."""

    colour: Colour
    state: int = 0
    turn: int = 0


WHITE, BLACK = Cell(Colour.WHITE), Cell(Colour.BLACK)


@dataclass
class Row:
    """One update. ``after``: the rows of its streams that must show no later than it."""

    number: int
    cells: dict[str, Cell]
    streams: tuple[str, ...] = ()
    after: tuple[int, ...] = ()
    followers: list[int] = field(default_factory=list)
    # Views by colour, in the order of painting: asked much more often than changed.
    white: set[str] = field(init=False)
    red: dict[str, None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.white = set(self.cells)

    @property
    def is_white(self) -> bool:
        return bool(self.white)

    @property
    def is_gray(self) -> bool:
        """Whether nothing of it is left to apply."""
        return not self.white and not self.red

    def paint(self, view: str, cell: Cell) -> None:
        self.cells[view] = cell
        self.white.discard(view)
        if cell.colour is Colour.RED:
            self.red[view] = None
        else:
            self.red.pop(view, None)


@dataclass
class Column:
    """One view's lists: those that came before the relevance of their rows, then the red ones."""

    early: deque[ActionList] = field(default_factory=deque)
    waiting: dict[int, ActionList] = field(default_factory=dict)
    turns: int = 0
