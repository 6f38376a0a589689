"""How the session wrote that a statement of the log is from: its quotes, its escapes, its character set. Pure.

All three decide where a text in quotes ends. Read otherwise than the server did, a comment that somebody
gave his own table could look like a clause that renames columns of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from viewkeeper.sources.wire import ByteReader

_SQL_MODE, _CHARSET = 1, 4
# Sizes of what stands behind these codes in an event; from 5 and 6 on, a length tells it.
_SIZES = {0: 4, _SQL_MODE: 8, 3: 4, _CHARSET: 6, 7: 2, 8: 2}
_WITH_LENGTH = frozenset({5, 6})
_ANSI_QUOTES, _NO_BACKSLASH_ESCAPES = 1 << 2, 1 << 20

# Character sets of clients in which a backslash or a quote may be the second half of another character.
_PAIRS = {
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "shift_jis": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
}
_COLLATIONS = {
    1: "big5", 84: "big5", 13: "shift_jis", 88: "shift_jis", 28: "gbk", 87: "gbk", 95: "cp932",
    96: "cp932",
}  # fmt: skip
_WITHOUT_PADDING = 1024  # further up, the same collations without padding


@dataclass(frozen=True)
class Dialect:
    """``ansi_quotes``: double quotes are around names, not texts."""

    ansi_quotes: bool = False
    backslash_escapes: bool = True

    @property
    def tokens(self) -> re.Pattern[str]:
        """Finds comments (no group), names in quotes, texts, words and signs."""
        return _tokens(self.ansi_quotes, self.backslash_escapes)

    def masked(self, statement: str) -> str:
        """A statement without its comments and texts: they may hold anybody's secrets."""
        return " ".join(self.tokens.sub(_mask, statement).split())


@cache
def _tokens(ansi_quotes: bool, backslash_escapes: bool) -> re.Pattern[str]:
    # Without a way back: to try others, a pattern keeps a hundred bytes for each character of a text.
    inside = r"(?:[^{0}\\]++|{0}{0}|\\.)*+" if backslash_escapes else r"(?:[^{0}]++|{0}{0})*+"
    names, texts = [r"`(?:[^`]++|``)*+`"], [f"'{inside.format(chr(39))}'"]
    (names if ansi_quotes else texts).append(
        r'"(?:[^"]++|"")*+"' if ansi_quotes else f'"{inside.format(chr(34))}"'
    )
    return re.compile(
        rf"""
          /\*(?!!|M!).*?\*/ | (?:--(?=\s|$)|\#)[^\n]*      # comments, but not those that are executed
        | /\*M?!\d* | \*/
        | (?P<quoted>{" | ".join(names)})
        | (?P<text>{" | ".join(texts)})
        | (?P<word>[\w$@]+)
        | (?P<sign>[^\s\w])
        """,
        re.VERBOSE | re.DOTALL,
    )


def _mask(found: re.Match[str]) -> str:
    if found["text"]:
        return "'…'"
    return found[0] if found.lastgroup else " "


@dataclass(frozen=True)
class Logged:
    """A statement of the log, with its default database."""

    database: str
    text: str
    dialect: Dialect


def logged(body: bytes) -> Logged:
    """From the body of a query event; raises Malformed."""
    data = ByteReader(body, "little", 8)  # behind the thread and the time it took
    database_bytes, _, status_bytes = data.number(1), data.number(2), data.number(2)
    said = dict(_status(data.take(status_bytes)))
    database = data.take(database_bytes).decode(errors="replace")
    data.take(1)  # a zero byte
    mode = int.from_bytes(said.get(_SQL_MODE, b""), "little")
    return Logged(
        database,
        _decoded(data.rest(), int.from_bytes(said.get(_CHARSET, b"")[:2], "little")),
        Dialect(bool(mode & _ANSI_QUOTES), not mode & _NO_BACKSLASH_ESCAPES),
    )


def _status(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What an event says of its session, up to the first code that is not known here."""
    at = 0
    while at < len(data):
        code, at = data[at], at + 1
        if code in _WITH_LENGTH:
            size, at = int.from_bytes(data[at : at + 1], "little"), at + 1
        elif code in _SIZES:
            size = _SIZES[code]
        else:
            return
        yield code, data[at : at + size]
        at += size


def _decoded(text: bytes, collation: int) -> str:
    charset = _COLLATIONS.get(collation % _WITHOUT_PADDING)
    if charset is None:
        return text.decode(errors="replace")
    # Pair by pair: one that has no character must not leave its second half behind.
    pieces = re.split(b"(" + _PAIRS[charset] + b")", text)
    return "".join(
        piece.decode(charset, "replace")[:1] if index % 2 else piece.decode(errors="replace")
        for index, piece in enumerate(pieces)
    )
