"""The view update table after each message, as SVG: the cells in the paper's colours."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.merging.drawing import Drawing
from viewkeeper.merging.rows import Colour
from viewkeeper.simulator import svg
from viewkeeper.simulator.merging.journal import MergeEntry

MARGIN, LINE, CELL_HEIGHT = 20.0, 22.0, 24.0
CHARACTER = 8.0
LABEL_WIDTH, NUMBER_WIDTH = 56.0, 32.0
LEGEND = "white: awaited · red: here, waits · gray: applied now · black: nothing to do · WT: the lists that wait"

# White stays white and black stays black on any paper: these are the algorithm's colours.
INKS: dict[str, svg.Ink] = {
    "white": ("fill", "#ffffff", "#ffffff"),
    "red": ("fill", "#c8322b", "#d8433b"),
    "gray": ("fill", "#b4bac2", "#8b939d"),
    "black": ("fill", "#24292f", "#0b0d10"),
    "on-white": ("fill", "#1f2328", "#1f2328"),
    "on-red": ("fill", "#ffffff", "#ffffff"),
    "on-gray": ("fill", "#1f2328", "#0b0d10"),
    "on-black": ("fill", "#9aa4af", "#9aa4af"),
}
CSS = f"text.cell{{font-family:{svg.MONO};text-anchor:middle}}rect.cell{{stroke:#8b939d}}"
NAMES = {colour: colour.name.lower() for colour in Colour}


def tables_svg(title: str, entries: Sequence[MergeEntry]) -> str:
    """One picture of a whole run, top to bottom."""
    body = [
        svg.text(MARGIN, MARGIN + 6, title, font_weight="bold"),
        svg.text(MARGIN, MARGIN + 6 + LINE, LEGEND, "soft"),
    ]
    y = MARGIN + 3 * LINE
    for number, entry in enumerate(entries, 1):
        body.append(svg.text(MARGIN, y, str(number), "soft"))
        body.append(svg.text(MARGIN + NUMBER_WIDTH, y, entry.message))
        y += LINE / 2
        for heading, drawing in entry.drawings:
            if heading:
                body.append(svg.text(MARGIN, y + LINE / 2, heading, "soft"))
                y += LINE
            body += _table(drawing, y)
            y += _height(drawing)
        for commit in entry.commits:
            y += LINE
            body.append(svg.text(MARGIN, y, commit, "soft"))
        y += 1.5 * LINE
    return svg.document(_width(title, entries), y, title, body, INKS, CSS)


def _cell_width(drawing: Drawing) -> float:
    texts = [text for row in drawing.rows for _, text in row.cells]
    return CHARACTER * (max([len(t) for t in (*drawing.views, *texts)], default=1) + 2)


def _height(drawing: Drawing) -> float:
    return CELL_HEIGHT * (1 + len(drawing.rows)) + (LINE if drawing.early else 0)


def _width(title: str, entries: Sequence[MergeEntry]) -> float:
    widths = [CHARACTER * len(title), CHARACTER * len(LEGEND)]
    for entry in entries:
        widths.append(NUMBER_WIDTH + CHARACTER * len(entry.message))
        widths += [CHARACTER * len(line) for line in entry.commits]
        for _, drawing in entry.drawings:
            lists = max([len(row.lists_text) for row in drawing.rows], default=0)
            cells = _cell_width(drawing) * len(drawing.views)
            widths.append(LABEL_WIDTH + cells + CHARACTER * (lists + 2))
    return max(widths) + 2 * MARGIN


def _table(drawing: Drawing, top: float) -> list[str]:
    width, left = _cell_width(drawing), MARGIN + LABEL_WIDTH
    body = []
    for column, view in enumerate(drawing.views):
        x = left + (column + 0.5) * width
        body.append(svg.text(x, top + 17, view, "soft", text_anchor="middle"))
    beside = left + len(drawing.views) * width + CHARACTER
    body.append(svg.text(beside, top + 17, "WT", "soft"))
    for index, row in enumerate(drawing.rows, 1):
        y = top + index * CELL_HEIGHT
        body.append(svg.text(MARGIN, y + 17, f"U_{row.number}", "soft"))
        for column, (colour, text) in enumerate(row.cells):
            body += _cell(left + column * width, y, width, colour, text)
        body.append(svg.text(beside, y + 17, row.lists_text, "soft"))
    if drawing.early:
        y = top + CELL_HEIGHT * (1 + len(drawing.rows)) + 15
        body.append(svg.text(MARGIN, y, f"early {', '.join(drawing.early)}", "soft"))
    return body


def _cell(x: float, y: float, width: float, colour: Colour, text: str) -> list[str]:
    name = NAMES[colour]
    return [
        svg.element("rect", x=x, y=y, width=width, height=CELL_HEIGHT, class_=f"cell {name}"),
        svg.text(x + width / 2, y + 17, text, f"cell on-{name}"),
    ]
