"""A section of ``lab compare``: what was measured, as text, as JSON and as charts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from viewkeeper.simulator.plots import Panel
from viewkeeper.terminal import Grid, console, write_line

# Behind a protocol's name: what its paper says, where the name alone is what we counted.
PAPER = " (paper)"


class Section(ABC):
    """One paper's figures, measured."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def measured(cls) -> Self:
        """Run what there is to run."""

    @property
    @abstractmethod
    def is_good(self) -> bool:
        """Whether what must hold was found; how much something costs is never wrong."""

    @abstractmethod
    def tell(self) -> None:
        """Write it for people."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Write it for programs."""

    @abstractmethod
    def panels(self) -> list[Panel]:
        """Draw it."""


def new_table(*heads: str, first: str = "protocol") -> Grid:
    """A table of protocols, or of something else; columns of numbers are those with a value in their head."""
    table = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, style="bold", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right" if "=" in head else "left")
    return table


def tell_numbers(
    title: str,
    heads: Sequence[str],
    rows: Iterable[tuple[str, Iterable[float]]],
    first: str = "protocol",
) -> None:
    """A title, and a row of numbers for each name."""
    write_line()
    write_line(title, "dim")
    table = new_table(*heads, first=first)
    for name, values in rows:
        table.add_row(name, *(f"{value:.3g}" for value in values))
    console().print(table)
