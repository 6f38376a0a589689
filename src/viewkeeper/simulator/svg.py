"""Just enough SVG: elements as text, and a frame whose colours follow the reader's light or dark theme."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape, quoteattr

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# A class of the style sheet: how it is drawn, and its colour on light and on dark paper.
Ink = tuple[str, str, str]

FRAME_INKS: dict[str, Ink] = {
    "paper": ("fill", "#ffffff", "#15181d"),
    "ink": ("fill", "#1f2328", "#e6e8eb"),
    "soft": ("fill", "#636c76", "#9aa4af"),
    "rule": ("stroke", "#d5dae0", "#363c45"),
}


def element(name: str, content: str = "", **attributes: object) -> str:
    """One element; an underscore in an attribute's name stands for a hyphen, ``class_`` for class."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_number(value))}"
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, content: str, class_: str = "ink", **attributes: object) -> str:
    """A line of text with its base line at ``y``."""
    return element("text", escape(content), x=x, y=y, class_=class_, **attributes)


def document(
    width: float, height: float, title: str, body: Iterable[str], inks: Mapping[str, Ink], css: str
) -> str:
    """A standalone file with a title for screen readers."""
    everything = {**FRAME_INKS, **inks}
    light = "".join(f".{n}{{{kind}:{day}}}" for n, (kind, day, _) in everything.items())
    dark = "".join(f".{n}{{{kind}:{night}}}" for n, (kind, _, night) in everything.items())
    style = f"text{{font-family:{FONT};font-size:13px}}{light}{css}"
    style += f"@media (prefers-color-scheme: dark){{{dark}}}"
    lines = [
        element("title", escape(title)),
        element("style", style),
        element("rect", class_="paper", width="100%", height="100%"),
        *body,
    ]
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_number(width)}" '
        f'height="{_number(height)}" viewBox="0 0 {_number(width)} {_number(height)}" role="img">'
    )
    return opening + "\n" + "\n".join(lines) + "\n</svg>\n"


def _number(value: object) -> str:
    return f"{round(value, 2):g}" if isinstance(value, float) else str(value)
