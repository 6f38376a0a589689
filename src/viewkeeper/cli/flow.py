"""The data flow of a view, drawn with boxes: sources, the join that is maintained, the view.

```
┌ shop (postgres) ───────┐
│ orders o               │◀─┐  ┌ batched-sweep ┐   ┌ sales ────┐
└────────────────────────┘  ├─▶│ o ⋈ c         ├──▶│ 5 columns │
┌ crm (postgres) ────────┐  │  └───────────────┘   └───────────┘
│ customers c            │◀─┘
└────────────────────────┘
▶ changes and rows   ◀ keys, at exact cuts
```
"""

from __future__ import annotations

from typing import Any

# The three columns of boxes and what lies between them stay within 100 characters.
SOURCE_WIDTH_MAX, JOIN_WIDTH_MAX, VIEW_WIDTH_MAX = 34, 28, 24

_LEGEND = "▶ changes and rows   ◀ keys, at exact cuts"
_LEGEND_UNASKED = "▶ changes (no source is asked anything)"


def flow_lines(document: dict[str, Any]) -> list[str]:
    """The drawing of one explained view, at most 100 wide."""
    sources = _source_boxes(document)
    left = [line for box in sources for line in box]
    ports = _middles([len(box) for box in sources])
    right = _beside(_join_box(document), _view_box(document))
    height = max(len(left), len(right))
    # Both sides are centred on each other, so that the way is short.
    down_left, down_right = (height - len(left)) // 2, (height - len(right)) // 2
    left = _padded(left, down_left, height)
    right = _padded(right, down_right, height)
    asked = _asked(document)
    joints = {
        port + down_left: source in asked
        for port, source in zip(ports, document["sources"], strict=True)
    }
    entry = down_right + len(_join_box(document)) // 2
    lines = [
        _open_right(a, not joints.get(n, True)) + b + c
        for n, (a, b, c) in enumerate(zip(left, _bus(height, joints, entry), right, strict=True))
    ]
    return [*(line.rstrip() for line in lines), _LEGEND if asked else _LEGEND_UNASKED]


def _asked(document: dict[str, Any]) -> set[str]:
    asked = {hop["source"] for change in document["changes"] for hop in change["asks"]}
    return asked & set(document["sources"])


def _source_boxes(document: dict[str, Any]) -> list[list[str]]:
    inside: dict[str, list[str]] = {source: [] for source in document["sources"]}
    unread = {read["relation"]: len(read["left_out"]) for read in document["reads"]}
    read = {each["relation"]: len(each["columns"]) for each in document["reads"]}
    for term in _all_terms(document):
        for occurrence in term["occurrences"]:
            if occurrence["source"] not in inside:
                continue  # a step
            name = f"{occurrence['source']}.{occurrence['relation']}"
            of = f"{read[name]} of {read[name] + unread[name]} columns"
            text = f"{_named(occurrence)}: {of}"
            if text not in inside[occurrence["source"]]:
                inside[occurrence["source"]].append(text)
    titles = {s: f"{s} ({document['kinds'][s]})" for s in inside}
    texts = [*titles.values(), *(text for texts in inside.values() for text in texts)]
    width = min(SOURCE_WIDTH_MAX, max(map(len, texts)) + 6)
    return [_box(titles[source], lines, width) for source, lines in inside.items()]


def _all_terms(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The terms of the steps, and the view's own."""
    return [*(term for step in document["steps"] for term in step["terms"]), *document["terms"]]


def _named(occurrence: dict[str, Any]) -> str:
    relation, alias = occurrence["relation"], occurrence["alias"]
    return relation if relation == alias else f"{relation} {alias}"


def _join_box(document: dict[str, Any]) -> list[str]:
    steps = len(document["steps"])
    lines = [f"{steps} step{'s' * (steps != 1)} before it"] if steps else []
    for term in document["terms"]:
        lines += _folded(" ⋈ ".join(o["alias"] for o in term["occurrences"]), JOIN_WIDTH_MAX - 4)
        if term["grouping"] is not None:
            lines.append("grouped")
        if term["distinct"]:
            lines.append("distinct")
    if document["incremental"]:
        lines.append(f"asks at most {max(c['questions'] for c in document['changes'])} a change")
    title = document["reaches"]["protocol"] or "not kept yet"
    return _box(title, lines, min(JOIN_WIDTH_MAX, max(map(len, [title, *lines])) + 4))


def _view_box(document: dict[str, Any]) -> list[str]:
    level = document["reaches"]["level"]
    lines = [f"{len(document['columns'])} columns", *([level] if level else [])]
    title = document["name"]
    return _box(title, lines, min(VIEW_WIDTH_MAX, max(map(len, [title, *lines])) + 5))


def _box(title: str, lines: list[str], width: int) -> list[str]:
    inner = width - 4
    top = f"┌ {_cut(title, inner)} "
    return [
        top.ljust(width - 1, "─") + "┐",
        *(f"│ {_cut(line, inner).ljust(inner)} │" for line in lines),
        "└" + "─" * (width - 2) + "┘",
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _folded(text: str, width: int) -> list[str]:
    """A chain of joins in lines that fit, broken before a ⋈."""
    lines = [""]
    for index, part in enumerate(text.split(" ⋈ ")):
        word = f" ⋈ {part}" if index else part
        if index and len(lines[-1] + word) > width:
            lines.append(word.lstrip())
        else:
            lines[-1] += word
    return lines


def _beside(left: list[str], right: list[str]) -> list[str]:
    """Two boxes, the left one's middle pointing at the right one's."""
    height = max(len(left), len(right))
    middle = len(left) // 2 + (height - len(left)) // 2
    down = middle - len(right) // 2
    height = max(height, down + len(right))
    left, right = _padded(left, (height - len(left)) // 2, height), _padded(right, down, height)
    middle = next(n for n, line in enumerate(left) if line.strip()) + _filled(left) // 2
    return [
        (_open_right(a, True) + "──▶" + b) if n == middle else (a + "   " + b)
        for n, (a, b) in enumerate(zip(left, right, strict=True))
    ]


def _filled(lines: list[str]) -> int:
    return sum(1 for line in lines if line.strip())


def _padded(lines: list[str], down: int, height: int) -> list[str]:
    blank = " " * max(map(len, lines))
    below = height - down - len(lines)
    return [*[blank] * down, *lines, *[blank] * below]


def _middles(heights: list[int]) -> list[int]:
    """The line in the middle of each of some boxes that stand on each other."""
    middles, start = [], 0
    for height in heights:
        middles.append(start + height // 2)
        start += height
    return middles


def _open_right(line: str, is_open: bool) -> str:
    return line[:-1] + "├" if is_open and line.endswith("│") else line


def _bus(height: int, joints: dict[int, bool], entry: int) -> list[str]:
    """The line that gathers the sources' ways and leads into the join; ``joints``: who is asked."""
    first, last = min({*joints, entry}), max({*joints, entry})
    lines = []
    for n in range(height):
        left = ("◀─" if joints[n] else "──") if n in joints else "  "
        right = "─▶" if n == entry else "  "
        lines.append(left + _corner(n, first, last, n in joints, n == entry) + right)
    return lines


def _corner(n: int, first: int, last: int, from_left: bool, to_right: bool) -> str:
    up, down = first < n <= last, first <= n < last
    if not (from_left or to_right):
        return "│" if up and down else " "
    corners = {
        (True, True): {(True, True): "┼", (True, False): "┤", (False, True): "├"},
        (True, False): {(True, True): "┴", (True, False): "┘", (False, True): "└"},
        (False, True): {(True, True): "┬", (True, False): "┐", (False, True): "┌"},
        (False, False): {(True, True): "─", (True, False): "─", (False, True): "─"},
    }
    return corners[up, down][from_left, to_right]
