"""Markdown to HTML: headings with anchors, links between pages, code in colours.

Anchors are made as GitHub makes them, so that a link works in both places.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_LEXERS = {"sh": "bash", "bash": "bash", "console": "console"}


@dataclass(frozen=True)
class Heading:
    level: int
    title: str
    anchor: str


@dataclass(frozen=True)
class Page:
    """A page read: its title, its headings, its body as HTML and as plain words."""

    title: str
    headings: tuple[Heading, ...]
    html: str
    words: str


def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True, "highlight": _coloured}).enable("table")


def tokens_of(text: str) -> list[Token]:
    return parser().parse(text)


def rendered(text: str, target_of: Callable[[str], str]) -> Page:
    """The page that ``text`` is; every link and picture goes through ``target_of``."""
    markdown = parser()
    tokens = markdown.parse(text)
    found = list(headings(tokens))
    opened = iter(found)
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", next(opened).anchor)
        for child in token.children or ():
            for name in ("href", "src"):
                if name in child.attrs:
                    child.attrSet(name, target_of(str(child.attrs[name])))
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    html = html.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
    title = found[0].title if found else "Viewkeeper"
    return Page(title, tuple(found), html, " ".join(_words(tokens)))


def headings(tokens: list[Token]) -> Iterator[Heading]:
    """All headings in order; one that comes again gets a number behind its anchor."""
    seen: dict[str, int] = {}
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        title = "".join(child.content for child in inline.children or ())
        anchor = anchor_of(title)
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield Heading(int(opening.tag[1]), title, f"{anchor}-{count}" if count else anchor)


def anchor_of(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def links(text: str) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    for token in tokens_of(text):
        for child in token.children or ():
            for name in ("href", "src"):
                if name in child.attrs:
                    yield str(child.attrs[name])


def code_styles() -> str:
    """The colours of code, for a light and for a dark page."""
    light = HtmlFormatter(style="default").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _coloured(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(_LEXERS.get(language, language or "text"))
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return (
        f'<pre class="code"><code>{highlight(code, lexer, HtmlFormatter(nowrap=True))}</code></pre>'
    )


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "fence":
            yield token.content
        for child in token.children or ():
            if child.content:
                yield child.content
