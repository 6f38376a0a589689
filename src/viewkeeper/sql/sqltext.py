"""The user's text, and how an error points into it: line and column, counted from 1.

Positions come from the leaves of the syntax tree (names, literals), which remember where they stood;
a keyword is found by walking back over the tokens before the first leaf it governs.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import Token, exp

from viewkeeper.errors import UsageError
from viewkeeper.views.names import Name

Place = exp.Expr | int | None


@dataclass
class SqlText:
    """The text of one view, and its tokens once they are known."""

    view: str
    text: str
    tokens: list[Token] = field(default_factory=list)

    def error(
        self, code: str, what: str, at: Place = None, *, detail: str = "", hint: str = ""
    ) -> UsageError:
        """An error that says where in the text it arose."""
        line, column = self.position(self.offset(at))
        message = f"view {self.view}, line {line}, column {column}: {what}"
        return UsageError(code, message, detail=detail, hint=hint)

    @contextmanager
    def locating(self, at: Place | Callable[[], Place]) -> Iterator[None]:
        """Give errors from inside, which know nothing of the text, the place ``at``."""
        try:
            yield
        except UsageError as error:
            if re.match(r"view .+?, line \d+, column \d+: ", error.message):
                raise  # also from the text of another view that this one reads
            place = at() if callable(at) else at
            raise self.error(
                error.code, error.message, place, detail=error.detail, hint=error.hint
            ) from error

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at ``offset``."""
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0] + [index + 1 for index, character in enumerate(self.text) if character == "\n"]

    def offset(self, at: Place) -> int:
        """Where ``at`` begins; the first token when nothing is known."""
        if isinstance(at, int):
            return at
        found = None if at is None else _start(at)
        return found if found is not None else self._beginning

    @property
    def _beginning(self) -> int:
        return self.tokens[0].start if self.tokens else 0

    def keyword(self, at: Place, *words: str) -> int:
        """Where the last of ``words`` before ``at`` stands; ``at`` itself when there is none."""
        if isinstance(at, exp.Expr) and _start(at) is None:
            return self.first(*words)
        offset = self.offset(at)
        for token in reversed(self.tokens):
            if token.start < offset and token.text.upper() in words:
                return token.start
        return offset

    def first(self, *words: str) -> int:
        """Where the first of ``words`` stands in the whole text."""
        return next((t.start for t in self.tokens if t.text.upper() in words), self._beginning)

    def raw(self, node: exp.Expr) -> str | None:
        """The leaf's characters as written; None where the parser made it up."""
        if "start" not in node.meta:
            return None
        return self.text[node.meta["start"] : node.meta["end"] + 1]


def _start(node: exp.Expr) -> int | None:
    return min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=None)


def name_of(identifier: exp.Expr) -> Name:
    """An identifier of the syntax tree as a `Name`."""
    return Name(identifier.name, bool(identifier.args.get("quoted")))
