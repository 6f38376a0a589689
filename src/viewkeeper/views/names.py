"""How names in SQL text meet the names that exist: letter case, quotes, and the nearest one.

A bare name is matched without regard to case, a name in backticks exactly. What is found keeps the
spelling under which it exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    """A name as somebody wrote it."""

    text: str
    quoted: bool = False

    def matches(self, spelling: str) -> bool:
        if self.quoted:
            return self.text == spelling
        return self.text.casefold() == spelling.casefold()

    def among(self, spellings: Iterable[str]) -> list[str]:
        """All spellings that match; one that is written just so beats the others."""
        matching = [spelling for spelling in spellings if self.matches(spelling)]
        return [self.text] if self.text in matching else matching


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """The names for a message, cut off where there are too many to read."""
    all_names = list(names)
    shown = ", ".join(all_names[:most])
    return shown if len(all_names) <= most else f"{shown} and {len(all_names) - most} more"


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or with a number behind it, so that it differs from the folded names ``taken``."""
    name, number = wanted, 1
    while name.casefold() in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
