"""Header comments: what the user declares about a view, in the comment lines above its SELECT.

A header is a line ``-- word: value`` before the first line that is neither blank nor a ``--`` comment,
whose word is one of the known ones. A word that is nearly a known one is an error, for it is surely a
slip; any other word makes the line an ordinary comment. A remark in parentheses after the value is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from viewkeeper.errors import UsageError, did_you_mean, nearest
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.keeping import kept_relations
from viewkeeper.views.level import DECLARABLE, Level
from viewkeeper.views.names import listed

# The names of the registry's records that keep views live, which is above us: a test holds them together.
PROTOCOLS = (
    "batched-sweep", "sweep", "nested-sweep", "parallel-sweep", "recompute", "eca", "strobe", "c-strobe", "ring",
    "quiescent-ring", "ring-terms", "medwrap", "mre", "simplistic", "periodic", "virtual",
)  # fmt: skip
REFRESH = ("auto", "incremental", "incremental-strict", "full")
PUBLISH = ("table", "no")
# A view may have one state for this many transactions.
BLOCK_MAX = 10_000
SETTINGS = (
    "refresh", "every", "block", "publish", "keep", "evolve", "freshness", "dispensable", "irreplaceable", "extent",
)  # fmt: skip
_KNOWN = ("consistency", "protocol", *SETTINGS)

_HEADER = re.compile(r"\s*--\s*([A-Za-z][\w-]*)\s*:(.*)")
_REMARK = re.compile(r"\s\(")
# How alike a word must be to a known one to be taken for a slip rather than for prose.
_SLIP = 0.8


@dataclass(frozen=True)
class Headers:
    """What the headers of one view say."""

    level: Level = Level.COMPLETE
    protocol: str | None = None
    settings: tuple[tuple[str, str], ...] = ()


def read_headers(text: SqlText) -> Headers:
    """The headers of the text; raises UsageError on a bad value, a slip or a repetition."""
    level, protocol = Level.COMPLETE, None
    settings: list[tuple[str, str]] = []
    seen: set[str] = set()
    for word, value, offset in _lines(text):
        if word in seen:
            raise text.error(
                "repeated-header", f"{word} is declared twice", offset, hint="keep one of the lines"
            )
        seen.add(word)
        match word:
            case "consistency":
                level = _level(text, value, offset)
            case "protocol":
                protocol = _protocol(text, value, offset)
            case "refresh":
                settings.append((word, _refresh(text, value, offset)))
            case "publish":
                settings.append((word, _publish(text, value, offset)))
            case "block":
                settings.append((word, _block(text, value, offset)))
            case _:
                settings.append((word, value))
    if "block" in seen and level is not Level.COMPLETE:
        raise text.error(
            "bad-header",
            f"a block of transactions means nothing for a view that is {level}",
            0,
            detail="only a complete view has a state for every transaction, or for every block of them",
            hint="leave out -- block, or write -- consistency: complete",
        )
    return Headers(level, protocol, tuple(settings))


def _without_remark(value: str) -> str:
    """The value without what stands in parentheses behind it."""
    remark = _REMARK.search(value) if value.endswith(")") else None
    return value if remark is None else value[: remark.start()].rstrip()


def _lines(text: SqlText) -> Iterator[tuple[str, str, int]]:
    """Word, value and offset of each header line."""
    offset = 0
    for line in text.text.splitlines(keepends=True):
        start, offset = offset, offset + len(line)
        if line.strip() and not line.lstrip().startswith("--"):
            return
        header = _HEADER.match(line)
        if header is None:
            continue
        word = header[1].lower()
        at = start + header.start(1)
        if word not in _KNOWN:
            close = nearest(word, _KNOWN, closeness=_SLIP)
            if close is None:
                continue
            raise text.error(
                "unknown-header",
                f"there is no header {header[1]}",
                at,
                detail=f"the headers are {listed(_KNOWN)}",
                hint=f"did you mean {close}? An ordinary comment must not begin like a header",
            )
        value = _without_remark(header[2].strip())
        if not value:
            raise text.error(
                "bad-header", f"{word} has no value", at, hint=f"write -- {word}: value"
            )
        yield word, value, at


def _level(text: SqlText, value: str, offset: int) -> Level:
    for level in DECLARABLE:
        if value.lower() == str(level):
            return level
    raise _bad_value(text, "consistency", value, [str(level) for level in DECLARABLE], offset)


def _protocol(text: SqlText, value: str, offset: int) -> str:
    name = value.lower().replace("_", "-")
    if name in PROTOCOLS:
        return name
    raise _bad_value(text, "protocol", value, PROTOCOLS, offset)


def _block(text: SqlText, value: str, offset: int) -> str:
    if value.isascii() and value.isdigit() and 0 < int(value[:9]) <= BLOCK_MAX:
        return str(int(value))
    raise _bad_value(
        text, "block", value, [f"a number of transactions from 1 to {BLOCK_MAX}"], offset
    )


def _refresh(text: SqlText, value: str, offset: int) -> str:
    name = value.lower().replace("_", "-")
    if name in REFRESH:
        return name
    raise _bad_value(text, "refresh", value, REFRESH, offset)


def _publish(text: SqlText, value: str, offset: int) -> str:
    if value.lower() in PUBLISH:
        return value.lower()
    raise _bad_value(text, "publish", value, PUBLISH, offset)


def require_kept_relations(text: SqlText, definition: ViewDefinition) -> None:
    """Refuse a header ``keep`` that names what the view does not read."""
    places = {word: offset for word, _, offset in _lines(text)}
    with text.locating(places.get("keep")):
        kept_relations(definition)


def _bad_value(
    text: SqlText, word: str, value: str, known: list[str] | tuple[str, ...], offset: int
) -> UsageError:
    return text.error(
        "bad-header",
        f"{value} is no {word}",
        offset,
        detail=f"{word} is one of {listed(known, most=20)}",
        hint=did_you_mean(value, known, f"write -- {word}: {known[0]}"),
    )
