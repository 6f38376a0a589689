"""Message sequence charts of a run: lines of text for a terminal, and SVG.

One lane per source and one for the warehouse. In the terminal an arrow stands where its message
arrives, and a mark where it left; in SVG the arrow goes from the one moment to the other, so that a
message that was overtaken shows.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from viewkeeper.simulator import svg
from viewkeeper.simulator.kernel.journal import WAREHOUSE, Entry

LANE_WIDTH_MIN = 8
TEXT_WIDTH_MIN = 30

_MARKS = {"start": "◆", "commit": "●", "reveal": "○", "ask": "□", "install": "◆"}


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart: what stands in the lanes, and the words beside it."""

    kind: str
    lanes: str
    text: str


def lanes_of(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The sources in order, and the warehouse last."""
    places = {p for e in entries for p in (e.place, e.arrow) if p not in (None, WAREHOUSE)}
    return (*sorted(place for place in places if place is not None), WAREHOUSE)


def words(entry: Entry) -> str:
    """What is said beside an entry; its lane says where it happened."""
    match entry.kind:
        case "commit":
            return f"{entry.place} commits {entry.text}"
        case "reveal":
            return f"{entry.place}: {entry.text}"
        case "ask":
            return f"ask {entry.arrow}: {entry.text}"
        case "answer":
            return f"{entry.place} answers {entry.text}"
        case "note":
            return f"» {entry.text}"
        case "deliver":
            if entry.receives.startswith("#"):
                return f"{entry.receives} of {entry.arrow} arrives"
            # The arrow of an answer says it.
            return "" if entry.receives.startswith("!") else entry.text
        case _:
            return entry.text


def wrapped(entry: Entry, width: int) -> list[str]:
    """The words in lines; rows are not taken apart, and a new state begins a new line."""
    # Spaces inside a row are hidden from the wrapper.
    kept = re.sub(r"\([^()]*\)", lambda m: m[0].replace(" ", "\u00a0"), words(entry))
    pieces = kept.replace("; V is ", "\nV is ").split("\n")
    lines = [line for piece in pieces for line in textwrap.wrap(piece, width)]
    return [line.replace("\u00a0", " ") for line in lines] or [""]


# -- in a terminal ----------------------------------------------------------------------------------


def chart_lines(entries: Sequence[Entry], width: int = 100) -> list[ChartLine]:
    """The chart as lines that are at most ``width`` wide, if the lanes leave room for words."""
    lanes = lanes_of(entries)
    columns = _columns(lanes)
    lanes_width = columns[WAREHOUSE] + len(WAREHOUSE) // 2 + 3
    text_width = max(width - lanes_width, TEXT_WIDTH_MIN)
    found = [ChartLine("head", _heads(columns), "")]
    for entry in entries:
        first, *rest = wrapped(entry, text_width)
        found.append(ChartLine(entry.kind, _drawn(entry, columns).ljust(lanes_width), first))
        blank = _empty(columns).ljust(lanes_width)
        found += [ChartLine(entry.kind, blank, line) for line in rest]
    return found


def _columns(lanes: Sequence[str]) -> dict[str, int]:
    """Where each lane's line stands."""
    step = max(LANE_WIDTH_MIN, *(len(lane) + 2 for lane in lanes))
    if len(lanes) > 5:
        step = LANE_WIDTH_MIN
    return {lane: 2 + index * step for index, lane in enumerate(lanes)}


def _heads(columns: dict[str, int]) -> str:
    line = ""
    for lane, column in columns.items():
        # Centred on its line where there is room, never into the name before it.
        start = max(column - len(lane) // 2, len(line) + 1 if line else 0)
        line = line.ljust(start) + lane
    return line


def _empty(columns: dict[str, int]) -> str:
    line = [" "] * (max(columns.values()) + 1)
    for column in columns.values():
        line[column] = "│"
    return "".join(line)


def _drawn(entry: Entry, columns: dict[str, int]) -> str:
    line = list(_empty(columns))
    if entry.kind in _MARKS:
        line[columns[entry.place]] = _MARKS[entry.kind]
    elif entry.receives:
        source = entry.place if entry.kind == "answer" else entry.arrow or ""
        _draw_arrow(line, columns[source], columns[WAREHOUSE], entry)
    return "".join(line)


def _draw_arrow(line: list[str], source: int, warehouse: int, entry: Entry) -> None:
    for column in range(source + 1, warehouse):
        line[column] = "┼" if line[column] == "│" else "─"
    to_source = entry.kind == "answer"
    line[source] = "◀" if to_source else "├"
    line[warehouse] = "┤" if to_source else "▶"
    line[source + 2 : source + 2 + len(entry.receives)] = entry.receives


# -- as SVG -----------------------------------------------------------------------------------------

_LANE_STEP, _MARGIN, _TOP = 92, 60, 96
_ROW, _LINE = 30, 18
_TEXT_CHARACTERS, _CHARACTER = 78, 7.3

_INKS: dict[str, svg.Ink] = {
    "lane": ("stroke", "#c9d0d8", "#3d444d"),
    "tag": ("fill", "#f3f5f8", "#20252c"),
    "notification": ("stroke", "#0969da", "#58a6ff"),
    "question": ("stroke", "#9a6700", "#e3b341"),
    "answer": ("stroke", "#1a7f37", "#56d364"),
    "notification-ink": ("fill", "#0969da", "#58a6ff"),
    "question-ink": ("fill", "#9a6700", "#e3b341"),
    "answer-ink": ("fill", "#1a7f37", "#56d364"),
    "install": ("fill", "#8250df", "#bc8cff"),
    "wrong": ("fill", "#cf222e", "#ff7b72"),
    "note": ("fill", "#fff6d6", "#2f2a17"),
}
_CSS = (
    f".mono{{font-family:{svg.MONO};font-size:12px}}.title{{font-size:18px;font-weight:600}}"
    ".head{font-weight:600;text-anchor:middle}.label{font-size:11px;font-weight:600;"
    "text-anchor:middle;paint-order:stroke;stroke-width:4px;stroke-linejoin:round}"
    ".label{stroke:#ffffff}@media (prefers-color-scheme: dark){.label{stroke:#15181d}}"
    ".lane,.notification,.question,.answer{fill:none;stroke-width:1.6}.remark{font-style:italic}"
)
_MESSAGES = {"#": "notification", "?": "question", "!": "answer"}


@dataclass
class _Rows:
    """Where every entry stands."""

    tops: list[int] = field(default_factory=list)
    lines: list[list[str]] = field(default_factory=list)
    bottom: int = _TOP


def svg_chart(entries: Sequence[Entry], title: str, ending: str, *, is_good: bool) -> str:
    """The chart as a standalone file; ``ending`` is its last line."""
    lanes = {name: _MARGIN + i * _LANE_STEP for i, name in enumerate(lanes_of(entries))}
    rows = _placed(entries)
    text_left = lanes[WAREHOUSE] + 64
    width = text_left + _TEXT_CHARACTERS * _CHARACTER + 16
    body = [svg.text(24, 38, title, "ink title")]
    body += _markers()
    for name, x in lanes.items():
        body.append(svg.element("line", x1=x, x2=x, y1=_TOP - 20, y2=rows.bottom, class_="lane"))
        body.append(svg.text(x, _TOP - 28, name, "ink head"))
    body += _notes(entries, rows, text_left, width)
    body += _arrows(entries, rows, lanes)
    for entry, top, lines in zip(entries, rows.tops, rows.lines, strict=True):
        body.append(_mark(entry, lanes[entry.place], top))
        style = "ink remark" if entry.kind == "note" else "ink mono"
        body += [
            svg.text(text_left, top + 4 + i * _LINE, line, style) for i, line in enumerate(lines)
        ]
    body.append(svg.text(24, rows.bottom + 34, ending, "install" if is_good else "wrong"))
    return svg.document(width, rows.bottom + 56, title, body, _INKS, _CSS)


def _placed(entries: Sequence[Entry]) -> _Rows:
    rows = _Rows()
    for entry in entries:
        lines = wrapped(entry, _TEXT_CHARACTERS)
        rows.tops.append(rows.bottom)
        rows.lines.append(lines)
        rows.bottom += _ROW + (len(lines) - 1) * _LINE
    return rows


def _markers() -> list[str]:
    """Arrow heads, in the colour of each kind of message."""
    heads = [
        svg.element(
            "marker",
            svg.element("path", d="M0,0 L9,4 L0,8 z", class_=f"{kind}-ink"),
            id=f"to-{kind}",
            markerWidth=9,
            markerHeight=8,
            refX=9,
            refY=4,
            orient="auto",
            markerUnits="userSpaceOnUse",
        )
        for kind in _MESSAGES.values()
    ]
    return [svg.element("defs", "".join(heads))]


def _notes(entries: Sequence[Entry], rows: _Rows, left: float, width: float) -> list[str]:
    return [
        svg.element(
            "rect",
            x=left - 10,
            y=top - 14,
            width=width - left,
            height=_ROW - 6 + (len(lines) - 1) * _LINE,
            rx=6,
            class_="note",
        )
        for entry, top, lines in zip(entries, rows.tops, rows.lines, strict=True)
        if entry.kind == "note"
    ]


def _arrows(entries: Sequence[Entry], rows: _Rows, lanes: dict[str, int]) -> list[str]:
    """A line from the moment a message left to the moment it arrived."""
    left: dict[tuple[str, str], tuple[int, int]] = {}
    drawn = []
    for entry, y in zip(entries, rows.tops, strict=True):
        source = entry.place if entry.place != WAREHOUSE else entry.arrow or ""
        here = lanes[entry.place]
        if entry.receives and (source, entry.receives) in left:
            x, since = left[source, entry.receives]
            kind = _MESSAGES[entry.receives[0]]
            drawn.append(
                svg.element(
                    "line",
                    x1=x,
                    y1=since,
                    x2=here + (5 if here < x else -5),
                    y2=y,
                    class_=kind,
                    marker_end=f"url(#to-{kind})",
                )
            )
            # Near its end, where few lines meet.
            at_x, at_y = x + (here - x) * 0.62, since + (y - since) * 0.62
            drawn.append(svg.text(at_x, at_y - 4, entry.receives, f"label {kind}-ink"))
        if entry.sends:
            left[source, entry.sends] = (here, y)
    return drawn


def _mark(entry: Entry, x: int, y: int) -> str:
    match entry.kind:
        case "commit":
            return svg.element("circle", cx=x, cy=y, r=5, class_="notification-ink")
        case "reveal":
            return svg.element("circle", cx=x, cy=y, r=4, class_="notification")
        case "ask":
            return svg.element("circle", cx=x, cy=y, r=3.5, class_="question-ink")
        case "answer":
            return svg.element("circle", cx=x, cy=y, r=3.5, class_="answer-ink")
        case "install" | "start":
            return svg.element("path", d=f"M{x},{y - 8} l8,8 l-8,8 l-8,-8 z", class_="install")
        case _:
            return ""
