"""Bars side by side in one SVG, each with its figure and a line from its smallest to its largest."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.simulator import svg

_WIDTH, _LEFT, _RIGHT = 420, 130, 80
_ROW, _HEAD, _FOOT = 24, 76, 16

_INKS: dict[str, svg.Ink] = {
    "ours": ("fill", "#0969da", "#58a6ff"),
    "theirs": ("fill", "#8c959f", "#6e7681"),
    "whisker": ("stroke", "#1f2328", "#e6e8eb"),
}
_CSS = (
    ".title{font-size:18px;font-weight:600}.panel{font-size:14px;font-weight:600}"
    ".figure{font-size:12px}.whisker{stroke-width:1.5}"
)


@dataclass(frozen=True)
class Bar:
    """One system's figure, with the smallest and the largest it was taken from."""

    name: str
    value: float
    smallest: float
    largest: float
    is_ours: bool = False


@dataclass(frozen=True)
class Panel:
    """Bars that share a scale, which begins at zero."""

    title: str
    bars: tuple[Bar, ...]


def drawn(title: str, panels: tuple[Panel, ...]) -> str:
    """A standalone SVG."""
    rows = max((len(panel.bars) for panel in panels), default=0)
    body = [svg.text(20, 34, title, "ink title")]
    for index, panel in enumerate(panels):
        elements = "".join(_elements(panel))
        body.append(svg.element("g", elements, transform=f"translate({index * _WIDTH},0)"))
    height = _HEAD + rows * _ROW + _FOOT
    return svg.document(max(len(panels), 1) * _WIDTH, height, title, body, _INKS, _CSS)


def _elements(panel: Panel) -> list[str]:
    largest = max((bar.largest for bar in panel.bars), default=1.0) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / largest
    found = [svg.text(20, _HEAD - 14, panel.title, "ink panel")]
    for row, bar in enumerate(panel.bars):
        top = _HEAD + row * _ROW
        middle = top + _ROW / 2 - 2
        ink = "ours" if bar.is_ours else "theirs"
        found += [
            svg.text(_LEFT - 8, middle + 4, bar.name, "ink figure", text_anchor="end"),
            svg.element(
                "rect",
                x=_LEFT,
                y=float(top),
                width=bar.value * scale,
                height=_ROW - 6,
                rx=2,
                class_=ink,
            ),
            svg.element(
                "line",
                x1=_LEFT + bar.smallest * scale,
                x2=_LEFT + bar.largest * scale,
                y1=middle,
                y2=middle,
                class_="whisker",
            ),
            svg.text(
                _LEFT + bar.largest * scale + 6, middle + 4, f"{bar.value:,.0f}", "soft figure"
            ),
        ]
    return found
