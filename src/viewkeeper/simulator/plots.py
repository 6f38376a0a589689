"""Small multiples of line charts in one SVG; every line carries its name at its end.

Knows numbers and names, not what they mean. Only this of names: what stands in brackets behind one is a
remark. Such a line is dashed, in the colour of the name without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.simulator import svg

Points = tuple[tuple[float, float], ...]

_WIDTH, _HEIGHT = 500, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 150, 58, 46
_HEAD = 84
_LABEL_STEP = 15

# One colour for each line of a panel, told apart also by those who see red and green alike.
_COLOURS = (
    ("#0969da", "#58a6ff"),
    ("#bc4c00", "#f0883e"),
    ("#1a7f37", "#56d364"),
    ("#8250df", "#bc8cff"),
    ("#bf3989", "#f778ba"),
    ("#57606a", "#9aa4af"),
    ("#9a6700", "#e3b341"),
)


@dataclass(frozen=True)
class Panel:
    """One chart: lines by name, all over the same x. ``logarithmic`` is about y."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Points]
    logarithmic: bool = False


def small_multiples(title: str, subtitle: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """All panels in one standalone SVG; a name has the same colour in every panel."""
    classes = _classes(panels)
    rows = math.ceil(len(panels) / columns)
    body = [svg.text(24, 38, title, "ink title"), svg.text(24, 62, subtitle, "soft")]
    for index, panel in enumerate(panels):
        x, y = (index % columns) * _WIDTH, _HEAD + (index // columns) * _HEIGHT
        drawn = "".join(_Drawing(panel, classes).elements())
        body.append(svg.element("g", drawn, transform=f"translate({x},{y})"))
    inks: dict[str, svg.Ink] = {}
    for number, (day, night) in enumerate(_COLOURS):
        inks[f"line{number}"] = ("stroke", day, night)
        inks[f"line{number}-ink"] = ("fill", day, night)
    css = (
        ".title{font-size:18px;font-weight:600}.panel{font-size:14px;font-weight:600}"
        ".tick{font-size:11px}.name{font-size:12px;font-weight:600}.rule{stroke-width:1}"
        ".curve{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}"
        ".dashed{stroke-dasharray:5 5;stroke-width:1.6}"
    )
    return svg.document(columns * _WIDTH, _HEAD + rows * _HEIGHT + 12, title, body, inks, css)


def _classes(panels: Sequence[Panel]) -> dict[str, str]:
    """A colour for each line; one that stands for several has that of the first."""
    joined = dict.fromkeys(name for panel in panels for name in panel.lines)
    single = list(dict.fromkeys(_plain(name) for names in joined for name in names.split(", ")))
    return {
        names: f"line{single.index(_plain(names.split(', ')[0])) % len(_COLOURS)}"
        for names in joined
    }


def _plain(name: str) -> str:
    """The name without its remark."""
    return name.split(" (")[0]


def _is_remark(names: str) -> bool:
    """Whether a line stands for nothing but names with remarks."""
    return all(_plain(name) != name for name in names.split(", "))


def merged(lines: Mapping[str, Points]) -> dict[str, Points]:
    """Lines that coincide become one, with both names."""
    names: dict[Points, list[str]] = {}
    for name, points in lines.items():
        names.setdefault(points, []).append(name)
    return {", ".join(together): points for points, together in names.items()}


class _Drawing:
    """One panel: where a value stands, and everything drawn there."""

    def __init__(self, panel: Panel, classes: Mapping[str, str]) -> None:
        self.panel = panel
        self.classes = classes
        points = [point for line in panel.lines.values() for point in line]
        self.xs = sorted({x for x, _ in points})
        highest = max((y for _, y in points), default=1.0)
        lowest = min((y for _, y in points), default=0.0)
        self.ticks = log_ticks(lowest, highest) if panel.logarithmic else linear_ticks(highest)

    def x(self, value: float) -> float:
        first, last = self.xs[0], self.xs[-1]
        share = (value - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        if self.panel.logarithmic:
            share = math.log(value / low) / math.log(high / low)
        else:
            share = (value - low) / (high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def elements(self) -> list[str]:
        return [*self._frame(), *self._curves(), *self._names()]

    def _frame(self) -> list[str]:
        panel = self.panel
        scale = " (logarithmic)" if panel.logarithmic else ""
        drawn = [
            svg.text(24, 20, panel.title, "ink panel"),
            svg.text(24, 38, panel.y_label + scale, "soft tick"),
            svg.text(_LEFT, _HEIGHT - 10, panel.x_label, "soft tick"),
        ]
        right = _WIDTH - _RIGHT
        for tick in self.ticks:
            y = self.y(tick)
            drawn.append(svg.element("line", x1=_LEFT, x2=right, y1=y, y2=y, class_="rule"))
            label = f"{tick:g}"
            drawn.append(svg.text(_LEFT - 8, y + 4, label, "soft tick", text_anchor="end"))
        drawn += [
            svg.text(self.x(x), _HEIGHT - _BOTTOM + 18, f"{x:g}", "soft tick", text_anchor="middle")
            for x in self.xs
        ]
        return drawn

    def _curves(self) -> list[str]:
        drawn = []
        for name, points in self.panel.lines.items():
            places = [(self.x(x), self.y(y)) for x, y in points]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            style = "curve dashed" if _is_remark(name) else "curve"
            drawn.append(
                svg.element("polyline", points=path, class_=f"{self.classes[name]} {style}")
            )
            drawn += [
                svg.element("circle", cx=x, cy=y, r=3.0, class_=f"{self.classes[name]}-ink")
                for x, y in places
            ]
        return drawn

    def _names(self) -> list[str]:
        """Each name beside the end of its line, pushed apart where ends are close."""
        ends = sorted((self.y(points[-1][1]), name) for name, points in self.panel.lines.items())
        drawn: list[str] = []
        lowest_free = float("-inf")
        for wanted, name in ends:
            words = _broken(name)
            y = max(wanted + 4, lowest_free)
            lowest_free = y + _LABEL_STEP * len(words)
            ink = f"{self.classes[name]}-ink name"
            drawn += [
                svg.text(_WIDTH - _RIGHT + 12, y + i * _LABEL_STEP, word, ink)
                for i, word in enumerate(words)
            ]
        return drawn


def _broken(name: str, characters: int = 18) -> list[str]:
    """A long list of names in lines; a long remark gets a line of its own."""
    lines = [""]
    for word in name.split(", "):
        longer = f"{lines[-1]}, {word}" if lines[-1] else word
        if len(longer) <= characters:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines[-1] += ","
            lines.append("")
        plain = _plain(word)
        has_room = len(word) <= characters
        lines[-1:] = [word] if has_room or plain == word else [plain, word[len(plain) + 1 :]]
    return lines


def linear_ticks(highest: float) -> list[float]:
    """From 0 in even, round steps to at least ``highest``; at most eight of them."""
    magnitude = 10.0 ** math.floor(math.log10(max(highest, 1e-9)))
    step = next(s for s in (magnitude * m for m in (0.2, 0.5, 1.0, 2.0)) if highest / s <= 8)
    return [step * i for i in range(math.ceil(highest / step - 1e-9) + 1)]


def log_ticks(lowest: float, highest: float) -> list[float]:
    """1, 2, 5 of every power of ten, around the values."""
    ticks = [
        m * 10.0**power
        for power in range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
        for m in (1, 2, 5)
    ]
    first = max(i for i, tick in enumerate(ticks) if tick <= lowest)
    last = min(i for i, tick in enumerate(ticks) if tick >= highest)
    return ticks[first : last + 1]
