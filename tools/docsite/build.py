"""The site: every page of ``docs/``, a way through them, a search that needs no server."""

from __future__ import annotations

import html
import json
import os
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from docsite.linking import problems_in
from docsite.markdown import Page, code_styles, rendered

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Section:
    """A part of the way through the pages: its title, and its pages as paths below ``docs``."""

    title: str
    pages: tuple[str, ...]


def sections(root: Path) -> tuple[Section, ...]:
    """The way through the pages as ``docs/site.toml`` has it; the others follow, decisions last."""
    docs = root / "docs"
    document = tomllib.loads((docs / "site.toml").read_text(encoding="utf-8"))
    written = [Section(s["title"], tuple(s["pages"])) for s in document["sections"]]
    there = sorted(str(file.relative_to(docs)) for file in docs.rglob("*.md"))
    decisions = tuple(page for page in there if page.startswith("decisions/"))
    named = {page for section in written for page in (*section.pages, *decisions)}
    others = tuple(page for page in there if page not in named)
    more = [Section("More", others)] if others else []
    return (*written, *more, Section("Decisions", decisions))


def build(root: Path, target: Path) -> list[str]:
    """Write the site; what is wrong with it, a line each: dead links, pages that are not there."""
    docs = root / "docs"
    parts = sections(root)
    order = [page for part in parts for page in part.pages]
    there = sorted(str(file.relative_to(docs)) for file in docs.rglob("*.md"))
    problems = [f"docs/site.toml names {page}: no such page" for page in order if page not in there]
    if problems:
        return problems
    for page in there:
        problems += problems_in(docs / page, root)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(docs / "images", target / "images")
    for asset in ASSETS.iterdir():
        if asset.suffix != ".html":
            shutil.copyfile(asset, target / asset.name)
    (target / "code.css").write_text(code_styles(), encoding="utf-8")
    pages = {name: _read(docs, name) for name in order}
    frame = (ASSETS / "page.html").read_text(encoding="utf-8")
    for place, name in enumerate(order):
        around = (order[place - 1] if place else None, *order[place + 1 : place + 2])
        file = target / _address(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_framed(frame, parts, pages, name, around), encoding="utf-8")
    found = [
        {"title": page.title, "address": _address(name), "words": page.words.lower()}
        for name, page in pages.items()
    ]
    script = f"window.searchIndex = {json.dumps(found, ensure_ascii=False)};\n"
    (target / "search-index.js").write_text(script, encoding="utf-8")
    return problems


def _address(name: str) -> str:
    return name.removesuffix(".md") + ".html"


def _read(docs: Path, name: str) -> Page:
    here = (docs / name).parent

    def target_of(link: str) -> str:
        path, mark, anchor = link.partition("#")
        if "://" in link or not path:
            return link
        leads_to = (here / path).resolve()
        if not leads_to.is_relative_to(docs.resolve()):
            # Code and tests are not part of the site; their path is in the text already.
            return "#"
        return (
            (path.removesuffix(".md") + ".html" if path.endswith(".md") else path) + mark + anchor
        )

    return rendered((docs / name).read_text(encoding="utf-8"), target_of)


def _framed(
    frame: str,
    parts: tuple[Section, ...],
    pages: dict[str, Page],
    name: str,
    around: tuple[str | None, ...],
) -> str:
    folder = Path(_address(name)).parent
    up = os.path.relpath(".", folder)

    def to(page: str) -> str:
        return html.escape(os.path.relpath(_address(page), folder))

    menu = []
    for part in parts:
        inside = name in part.pages
        entries = "".join(
            f'<li><a href="{to(page)}"{" aria-current=page" if page == name else ""}>'
            f"{html.escape(pages[page].title)}</a></li>"
            for page in part.pages
        )
        is_open = inside or part.title != "Decisions"
        menu.append(
            f"<details{' open' if is_open else ''}><summary>{html.escape(part.title)}</summary>"
            f"<ul>{entries}</ul></details>"
        )
    inner = "".join(
        f'<li><a href="#{h.anchor}">{html.escape(h.title)}</a></li>'
        for h in pages[name].headings
        if h.level == 2
    )
    before, after = (*around, None)[:2]
    ways = "".join(
        f'<a class="{kind}" href="{to(page)}">{html.escape(pages[page].title)}</a>'
        for kind, page in (("before", before), ("after", after))
        if page
    )
    values = {
        "title": html.escape(pages[name].title),
        "up": up,
        "menu": "".join(menu),
        "inner": f"<ul>{inner}</ul>" if inner else "",
        "body": pages[name].html,
        "ways": ways,
    }
    for key, value in values.items():
        frame = frame.replace("{{" + key + "}}", value)
    return frame
