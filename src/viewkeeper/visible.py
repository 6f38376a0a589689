"""Texts that others wrote, made safe to show: what would steer a terminal is shown as an escape.

Values, names and statements come from databases, and may hold anything: sequences that move the cursor or
rewrite a title, characters that turn the direction of reading, halves of a character that no file can
hold. Shown as `\\x1b` or `\\u202e` they are seen, and do nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

# C0, DEL and C1; then what has no look of its own: directions of reading, invisible marks, separators of
# lines, lone surrogates, tags. The two joiners stay (U+200C, U+200D): scripts and emoji are written with them.
_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    r"\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_UNSEEN}]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    """The text on one line, with a visible escape for each character that has no look of its own."""
    return _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines: its line ends stay, and tabs become spaces."""
    return "\n".join(visible(line) for line in text.expandtabs().split("\n"))


def json_text(document: Any, default: Callable[[Any], Any] = str) -> str:
    """A document as JSON on one line: the same values exactly, and safe to show on a terminal."""
    return _HIDDEN.sub(_json_escape, json.dumps(document, ensure_ascii=False, default=default))


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: re.Match[str]) -> str:
    # Such characters stand only inside JSON's strings, where an escape means the same.
    return json.dumps(found[0])[1:-1]
