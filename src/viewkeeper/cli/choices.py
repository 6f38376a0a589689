"""What it costs to ask for a relation and to keep it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def choice_lines(choices: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Three lines for each relation that is joined; the first is its name."""
    for each in choices:
        most = max(each["questions"].values(), default=0)
        rows = "all of its rows" if each["whole_relation"] else "rows by key"
        now = "kept" if each["kept"] else "asked for"
        yield f"{each['relation']}, {now} now"
        yield (
            f"  ask: up to {many(most, 'question')} a change, {rows}, "
            f"about {size(each['row_bytes'])} a row"
        )
        yield f"  keep: no question, a copy of {copy_text(each)}"


def copy_text(each: dict[str, Any]) -> str:
    """How large a copy is."""
    if each["rows"] is None:
        return f"{size(each['row_bytes'])} a row; how many, its source does not say"
    return f"about {many(each['rows'], 'row')}, {size(each['copy_bytes'])}"


def many(number: int, thing: str, ending: str = "s") -> str:
    """A number of things, in words."""
    return f"{number:,} {thing}{ending * (number != 1)}"


def size(number: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"
