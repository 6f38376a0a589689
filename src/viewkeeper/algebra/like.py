"""LIKE without backtracking: the pattern's pieces between its `%` are found one after the other.

The leftmost place of a piece leaves most of the text to those that follow, so no other place has to be
tried. A piece has a fixed length, and the next search begins where the last one ended: the steps are at
most the text's length times the longest piece's, whatever the pattern and the text are. A regular
expression with `.*` for each `%` tries every combination of places instead, and a row can hold it up for
minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from viewkeeper.errors import UsageError


@dataclass(frozen=True)
class Piece:
    """Characters in a row: themselves, or None for any one character (`_`)."""

    characters: tuple[str | None, ...]
    regex: re.Pattern[str]

    @classmethod
    def of(cls, characters: list[str | None]) -> Piece:
        # No quantifier in it: at each place it compares its own length at most, and never goes back.
        text = "".join("." if c is None else re.escape(c) for c in characters)
        return cls(tuple(characters), re.compile(text, re.DOTALL))

    def __len__(self) -> int:
        return len(self.characters)

    def stands_at(self, text: str, place: int) -> bool:
        return self.regex.match(text, place) is not None

    def first_place(self, text: str, start: int, end: int) -> int | None:
        """The leftmost place of the piece within ``text[start:end]``."""
        found = self.regex.search(text, start, end)
        return None if found is None else found.start()


@dataclass(frozen=True)
class LikePattern:
    """A pattern as its pieces: the first stands at the text's beginning, the last at its end."""

    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, pattern: str) -> LikePattern:
        """Raises UsageError for a stray backslash."""
        pieces: list[list[str | None]] = [[]]
        for character, is_special in _characters(pattern):
            if is_special and character == "%":
                pieces.append([])
            else:
                pieces[-1].append(None if is_special else character)
        return cls(tuple(Piece.of(piece) for piece in pieces))

    def matches(self, text: str) -> bool:
        first, last = self.pieces[0], self.pieces[-1]
        if not first.stands_at(text, 0):
            return False
        if len(self.pieces) == 1:
            return len(text) == len(first)
        place, end = len(first), len(text) - len(last)
        if end < place or not last.stands_at(text, end):
            return False
        for piece in self.pieces[1:-1]:
            found = piece.first_place(text, place, end)
            if found is None:
                return False
            place = found + len(piece)
        return True


def _characters(pattern: str) -> Iterator[tuple[str, bool]]:
    """The pattern's characters, and whether each is one of the two special ones."""
    characters = iter(pattern)
    for character in characters:
        if character != "\\":
            yield character, character in "%_"
            continue
        escaped = next(characters, None)
        if escaped not in ("%", "_", "\\"):
            raise UsageError(
                "bad-pattern",
                f"the LIKE pattern {pattern!r} has a stray backslash",
                hint=r"write \\ for a backslash, \% and \_ for the characters themselves",
            )
        yield escaped, False
