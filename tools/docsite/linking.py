"""Where a link of a page leads, and whether something is there: files and anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docsite.markdown import headings, links, tokens_of

_ELSEWHERE = re.compile(r"^(https?:|mailto:)")


def problems_in(page: Path, root: Path) -> Iterator[str]:
    """A line for every link of the page that leads nowhere."""
    for link in links(page.read_text(encoding="utf-8")):
        if _ELSEWHERE.match(link):
            continue
        problem = _problem(page, link, root)
        if problem:
            yield f"{page.relative_to(root)}: {link}: {problem}"


def _problem(page: Path, link: str, root: Path) -> str | None:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page.resolve()
    if not target.is_relative_to(root.resolve()):
        return "it leads out of the repository"
    if not target.exists():
        return "there is no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors_of(target):
        return "the page has no such heading"
    return None


@cache
def anchors_of(page: Path) -> frozenset[str]:
    found = headings(tokens_of(page.read_text(encoding="utf-8")))
    return frozenset(heading.anchor for heading in found)
